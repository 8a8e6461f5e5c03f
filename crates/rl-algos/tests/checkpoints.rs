//! A checkpoint comes back bit for bit, or not at all.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use rl_algos::checkpoint::{Checkpoint, CheckpointError};
use serde_json::json;

fn sample() -> Checkpoint {
    let tensors = BTreeMap::from([
        ("model".to_owned(), vec![1.5, -0.0, f32::MIN_POSITIVE, f32::INFINITY]),
        ("adam.m".to_owned(), vec![0.1; 7]),
        ("empty".to_owned(), vec![]),
    ]);
    Checkpoint { state: json!({ "update": 3, "beta": 0.1 + 0.2, "word": "KL(π ‖ π₀)" }), tensors }
}

proptest! {
    #[test]
    fn every_float_comes_back_with_its_bits(bits in prop::collection::vec(any::<u32>(), 0..40), x in any::<f64>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let values: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
        prop_assume!(x.is_finite());
        let saved = Checkpoint { state: json!({ "x": x }), tensors: BTreeMap::from([("v".to_owned(), values)]) };
        saved.save(&path).unwrap();
        let loaded = Checkpoint::load(&path).unwrap();
        let back: Vec<u32> = loaded.tensors["v"].iter().map(|v| v.to_bits()).collect();
        prop_assert_eq!(back, bits);
        prop_assert_eq!(loaded.state["x"].as_f64().unwrap().to_bits(), x.to_bits());
    }
}

#[test]
fn equal_checkpoints_are_equal_files() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<Vec<u8>> = (0..8)
        .map(|i| {
            let path = folder.path().join(format!("{i}.safetensors"));
            sample().save(&path).unwrap();
            fs::read(path).unwrap()
        })
        .collect();
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_flipped_or_missing_byte_anywhere_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    sample().save(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    for i in 0..whole.len() {
        for damaged in [[&whole[..i], &[whole[i] ^ 0x10], &whole[i + 1..]].concat(), whole[..i].to_vec()] {
            fs::write(&path, &damaged).unwrap();
            match Checkpoint::load(&path) {
                Err(error) => assert!(error.to_string().contains("a.safetensors"), "{error}"),
                // A flipped space in the header's padding changes nothing that the file says.
                Ok(loaded) => assert!(damaged.len() == whole.len() && loaded == sample(), "byte {i}"),
            }
        }
    }
}

#[test]
fn a_failed_write_leaves_the_old_checkpoint_and_no_scraps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    sample().save(&path).unwrap();
    // The partial file cannot be created where a folder has its name.
    fs::create_dir(path.with_extension("partial")).unwrap();
    let error = Checkpoint { state: json!(1), tensors: BTreeMap::new() }.save(&path).unwrap_err();
    assert!(
        matches!(error, CheckpointError::Io { .. }) && error.to_string().contains("cannot write checkpoint")
    );
    assert_eq!(Checkpoint::load(&path).unwrap(), sample());
}

#[test]
fn a_missing_file_and_a_foreign_format_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.safetensors");
    assert!(Checkpoint::load(&path).unwrap_err().to_string().starts_with("cannot read checkpoint"));
    fs::write(&path, b"not a checkpoint at all").unwrap();
    assert!(Checkpoint::load(&path).unwrap_err().to_string().contains("is damaged"));
}

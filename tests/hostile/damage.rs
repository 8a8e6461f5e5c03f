//! A byte that flips, an end that is missing: found by a checksum, with the file named.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::checkpoint::Checkpoint;
use rl_models::lm::{FloatFormat, NonFinite, Transformer};

use crate::{model, refused, weights, write};

/// Copies of `whole` that are damaged once: each of the first `dense` bytes flipped and cut off, and `sampled` others.
fn damaged(whole: &[u8], dense: usize, sampled: usize) -> Vec<(usize, Vec<u8>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let others = (0..sampled).map(|_| rng.random_range(dense..whole.len())).collect::<Vec<_>>();
    let places = (0..dense).chain(others);
    let mut bit = ChaCha8Rng::seed_from_u64(8);
    places
        .flat_map(|at| {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 1 << (bit.next_u32() % 8);
            [(at, flipped), (at, whole[..at].to_vec())]
        })
        .collect()
}

#[test]
fn damaged_weights_are_found_by_their_checksum_and_the_file_is_named() {
    let (folder, model) = model(1);
    let path = weights(&folder);
    let whole = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let want = model.named_tensors();
    let mut found = 0;
    for (at, bytes) in damaged(&whole, header, 400) {
        write(&path, &bytes);
        match Transformer::load(folder.path(), &Device::flex()) {
            Err(error) => {
                assert!(error.to_string().contains("model.safetensors"), "byte {at}: {error}");
                found += 1;
            }
            // The header's padding and the name of its other entry say nothing about the weights.
            Ok(loaded) => {
                assert!(bytes.len() == whole.len() && at < header && loaded.named_tensors() == want)
            }
        }
    }
    assert!(found > header + 800 - 64, "only {found} damages were found");
}

#[test]
fn equal_models_are_equal_files() {
    let files: Vec<Vec<u8>> = (0..8).map(|_| fs::read(weights(&model(1).0)).unwrap()).collect();
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
    assert_ne!(files[0], fs::read(weights(&model(2).0)).unwrap());
}

#[test]
fn a_checkpoint_damaged_anywhere_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("00000007.safetensors");
    let numbers = |n: usize, seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| rng.random::<f32>()).collect::<Vec<_>>()
    };
    let names = ["adam.m", "adam.v", "model"];
    let tensors =
        names.iter().zip(0..).map(|(name, seed)| ((*name).to_owned(), numbers(5000, seed))).collect();
    let state = serde_json::json!({"update": 7, "rng": numbers(40, 9), "config": "seed = 1\n"});
    let saved = Checkpoint { state, tensors };
    saved.save(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    for (at, bytes) in damaged(&whole, header, 600) {
        match Checkpoint::parse(&bytes, &path) {
            Err(error) => assert!(error.to_string().contains("00000007.safetensors"), "byte {at}: {error}"),
            Ok(loaded) => assert!(bytes.len() == whole.len() && at < header && loaded == saved, "byte {at}"),
        }
    }
}

#[test]
fn a_checkpoint_of_another_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    Checkpoint { state: serde_json::json!({"update": 1}), tensors: [].into() }.save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(15).position(|it| it == b"rl-checkpoint-1").expect("its format stands in it");
    for (format, kind) in [("rl-checkpoint-0", "older"), ("rl-checkpoint-7", "newer")] {
        let mut other = bytes.clone();
        other[at..at + 15].copy_from_slice(format.as_bytes());
        let error = Checkpoint::parse(&other, &path).unwrap_err().to_string();
        let words = ["a.safetensors", format, "rl-checkpoint-1"];
        assert!(words.iter().all(|word| error.contains(word)), "{kind}: {error}");
    }
}

#[test]
fn weights_that_are_not_finite_are_refused_unless_asked_for() {
    for (format, bits) in [
        (FloatFormat::F32, &f32::NAN.to_le_bytes()[..]),
        (FloatFormat::F32, &f32::INFINITY.to_le_bytes()),
        (FloatFormat::Bf16, &[0x80, 0xff]),
    ] {
        let (folder, model) = model(1);
        model.save(folder.path(), format).unwrap();
        let path = weights(&folder);
        let mut bytes = fs::read(&path).unwrap();
        // As a stranger writes it, without a checksum.
        let entry = bytes.windows(9).position(|it| it == b"rl-sha256").unwrap();
        bytes[entry] = b'x';
        let end = bytes.len() - bits.len();
        bytes[end..].copy_from_slice(bits);
        write(&path, &bytes);
        refused(folder.path(), &["tensor `model.norm.weight`", "the weights are broken"]);
        let kept = Transformer::load_with(folder.path(), NonFinite::Kept, &Device::flex()).unwrap();
        assert!(kept.named_tensors()["model.norm.weight"].0.iter().any(|x| !x.is_finite()));
    }
}

#[test]
fn a_missing_checkpoint_names_its_place() {
    let error = Checkpoint::load(Path::new("/nowhere/1.safetensors")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/1.safetensors"), "{error}");
}

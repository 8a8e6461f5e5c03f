//! Model folders that claim much, point elsewhere, or nest without end.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use rl_models::lm::{LmConfig, Transformer};
use rl_models::text::{ChatTemplate, HfTokenizer, TextTokenizer};

use crate::{model, refused, safetensors, weights, write};

#[test]
fn tensors_that_claim_more_than_the_file_holds_are_refused() {
    let claim = |shape: &str, ends: &str| {
        format!(r#"{{"model.norm.weight":{{"dtype":"F32","shape":{shape},"data_offsets":{ends}}}}}"#)
    };
    let huge = u64::MAX.to_string();
    for (header, data) in [
        (claim("[1000000000]", "[0,4000000000]"), 64),
        (claim("[1000000000]", "[0,64]"), 64),
        (claim(&format!("[{huge},{huge}]"), "[0,64]"), 64),
        (claim("[4294967296,4294967296]", "[0,0]"), 0),
        (claim("[0,1000000000000]", "[0,0]"), 0),
        (claim("[16]", "[64,0]"), 64),
        (claim("[16]", &format!("[0,{huge}]")), 64),
        (claim("[1e9]", "[0,64]"), 64),
        (claim("[-1]", "[0,64]"), 64),
    ] {
        let (folder, _) = model(1);
        write(&weights(&folder), safetensors(&header, data));
        let error = Transformer::load(folder.path(), &Device::flex()).expect_err(&header).to_string();
        assert!(error.contains("model.safetensors") || error.contains("tensor `model."), "{header}: {error}");
    }
}

#[test]
fn a_header_that_claims_to_be_endless_is_refused() {
    let (folder, _) = model(1);
    for length in [u64::MAX, 1 << 62, 1 << 32, 1000] {
        write(&weights(&folder), [&length.to_le_bytes()[..], b"{}"].concat());
        refused(folder.path(), &["model.safetensors"]);
    }
}

#[test]
fn a_config_of_impossible_size_is_refused_before_anything_is_made() {
    let (folder, _) = model(1);
    let path = folder.path().join("config.json");
    let good = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"hidden_size\": 8", "\"hidden_size\": 1e999"),
        ("\"hidden_size\": 8", "\"hidden_size\": 99999999999999999999999"),
        ("\"hidden_size\": 8", "\"hidden_size\": 16777216"),
        ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 16777216"),
        ("\"head_dim\": 4", "\"head_dim\": 9007199254740992"),
        ("\"head_dim\": 4", "\"head_dim\": 16777216"),
        ("\"num_attention_heads\": 2", "\"num_attention_heads\": 18446744073709551615"),
        ("\"rms_norm_eps\": ", "\"rms_norm_eps\": -"),
        ("\"vocab_size\": 7", "\"vocab_size\": 0"),
        ("\"intermediate_size\": 8", "\"intermediate_size\": 0"),
    ] {
        assert!(good.contains(from), "config.json has no {from}");
        write(&path, good.replace(from, to));
        assert!(Transformer::load(folder.path(), &Device::flex()).is_err(), "{to}");
    }
}

#[test]
fn json_that_nests_without_end_is_an_error_and_no_overflow() {
    let (folder, _) = model(1);
    let deep = "[".repeat(1_000_000);
    for bomb in [deep.clone(), format!("{{\"weight_map\": {deep}"), format!("{{\"model_type\": {deep}")] {
        assert!(LmConfig::parse(&bomb).unwrap_err().to_string().contains("recursion limit"));
        let index = folder.path().join("model.safetensors.index.json");
        write(&index, &bomb);
        let _ = fs::remove_file(weights(&folder));
        refused(folder.path(), &["index.json", "recursion limit"]);
        assert!(HfTokenizer::parse(bomb.as_bytes()).is_err());
    }
    write(&folder.path().join("tokenizer_config.json"), &deep);
    assert!(ChatTemplate::load(folder.path()).unwrap_err().to_string().contains("tokenizer_config.json"));
    let nested = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(
        ChatTemplate::new(&format!("{{{{ {nested} }}}}")).render(&[], rl_models::text::Prompt::Open).is_err()
    );
}

#[test]
fn a_settings_file_that_is_too_large_is_refused_unread() {
    let (folder, _) = model(1);
    let file = fs::File::create(folder.path().join("config.json")).unwrap();
    file.set_len(1 << 40).unwrap(); // a hole: a terabyte that takes no room
    refused(folder.path(), &["config.json", "has 1099511627776 bytes; at most 16777216 are read"]);
    let file = fs::File::create(folder.path().join("tokenizer.json")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(
        TextTokenizer::load(folder.path()).unwrap_err().to_string().contains("at most 268435456 are read")
    );
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_not_followed() {
    use std::os::unix::fs::symlink;
    let ((folder, _), (other, _)) = (model(1), model(2));
    let replace = |target: &Path| {
        fs::remove_file(weights(&folder)).unwrap();
        symlink(target, weights(&folder)).unwrap();
    };
    replace(&weights(&other));
    refused(folder.path(), &["model.safetensors", "is a link to", "outside the folder"]);
    // A link within the folder is as good as a file.
    fs::copy(weights(&other), folder.path().join("real.bin")).unwrap();
    replace(Path::new("real.bin"));
    Transformer::load(folder.path(), &Device::flex()).unwrap();
    // Devices have no end.
    replace(Path::new("/dev/zero"));
    refused(folder.path(), &["model.safetensors"]);
    let shard = folder.path().join("a.safetensors");
    symlink("/dev/zero", &shard).unwrap();
    fs::remove_file(weights(&folder)).unwrap();
    let index = folder.path().join("model.safetensors.index.json");
    write(&index, r#"{"weight_map": {"x": "a.safetensors"}}"#);
    refused(folder.path(), &["a.safetensors", "not a regular file"]);
    for shard in ["../a.safetensors", "/etc/passwd", "b/../../a", "..", ".", "", "a/b", "a\\0b"] {
        write(&index, format!(r#"{{"weight_map": {{"x": "{shard}"}}}}"#));
        assert!(Transformer::load(folder.path(), &Device::flex()).is_err(), "{shard}");
    }
}

#[cfg(unix)]
#[test]
fn the_hub_cache_with_its_links_is_a_model_folder() {
    use std::os::unix::fs::symlink;
    let (good, want) = model(3);
    let cache = tempfile::tempdir().unwrap();
    let (blobs, snapshot) = (cache.path().join("blobs"), cache.path().join("snapshots/abc"));
    fs::create_dir_all(&blobs).unwrap();
    fs::create_dir_all(&snapshot).unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(good.path().join(name), blobs.join(name)).unwrap();
        symlink(format!("../../blobs/{name}"), snapshot.join(name)).unwrap();
    }
    let loaded = Transformer::load(&snapshot, &Device::flex()).unwrap();
    assert_eq!(loaded.named_tensors(), want.named_tensors());
}

//! Folders that are not what they should be: each fault is named, and nothing panics.

use std::path::Path;

use burn::tensor::Device;
use rl_models::lm::Transformer;

use crate::case::models;

/// A copy of a good folder, without its cases.
fn copy() -> tempfile::TempDir {
    let (_, folder, _) = models().into_iter().find(|(name, ..)| name.contains("llama")).expect("a Llama");
    let copy = tempfile::tempdir().expect("a scratch folder");
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(folder.join(file), copy.path().join(file)).expect("a good folder has both");
    }
    copy
}

#[track_caller]
fn assert_refused(folder: &Path, words: &[&str]) {
    let error = Transformer::load(folder, &Device::flex()).expect_err("the folder is broken").to_string();
    for word in words {
        assert!(error.contains(word), "`{error}` does not say `{word}`");
    }
}

fn edit(folder: &Path, from: &str, to: &str) {
    let path = folder.join("config.json");
    let text = std::fs::read_to_string(&path).expect("config.json is there");
    assert!(text.contains(from), "config.json has no {from}");
    std::fs::write(path, text.replace(from, to)).expect("the scratch folder can be written");
}

#[test]
fn a_config_that_asks_for_more_is_refused_by_name() {
    for (from, to, words) in [
        ("\"llama\"", "\"mamba\"", ["model_type", "mamba", "llama, qwen2 or gpt2"]),
        ("\"silu\"", "\"relu\"", ["hidden_act", "relu", "silu"]),
        (
            "\"rope_type\": \"default\"",
            "\"rope_type\": \"longrope\"",
            ["rope_type", "longrope", "llama3 or yarn"],
        ),
        ("\"rope_type\": \"default\"", "\"rope_type\": \"linear\"", ["factor", "missing", ""]),
        ("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", ["num_key_value_heads", "multiple", ""]),
        ("\"hidden_size\": 64", "\"hidden_size\": \"wide\"", ["hidden_size", "wide", "whole number"]),
        ("\"hidden_size\": 64", "\"hidden_size\": 60", ["embed_tokens", "[300, 64]", "[300, 60]"]),
        ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", ["model.layers.2", "missing", ""]),
        (
            "\"num_hidden_layers\": 2",
            "\"num_hidden_layers\": 1",
            ["model.layers.1", "not in the model", "more"],
        ),
        ("\"vocab_size\": 300", "\"vocab_size\": 99999999999", ["16,777,216", "", ""]),
    ] {
        let folder = copy();
        edit(folder.path(), from, to);
        assert_refused(folder.path(), &words);
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = copy();
    std::fs::remove_file(folder.path().join("model.safetensors")).expect("it is there");
    assert_refused(folder.path(), &["model.safetensors", "no such file"]);
    std::fs::remove_file(folder.path().join("config.json")).expect("it is there");
    assert_refused(folder.path(), &["config.json"]);
}

#[test]
fn no_truncated_file_loads_or_panics() {
    let folder = copy();
    let path = folder.path().join("model.safetensors");
    let whole = std::fs::read(&path).expect("it is there");
    for end in [0, 3, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).expect("the scratch folder can be written");
        assert_refused(folder.path(), &["model.safetensors"]);
    }
    let mut lying = whole.clone();
    lying[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&path, &lying).expect("the scratch folder can be written");
    assert_refused(folder.path(), &["model.safetensors"]);
}

#[test]
fn a_weight_that_is_not_finite_is_refused() {
    let folder = copy();
    let path = folder.path().join("model.safetensors");
    let mut bytes = std::fs::read(&path).expect("it is there");
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, &bytes).expect("the scratch folder can be written");
    assert_refused(folder.path(), &["NaN"]);
}

#[test]
fn shards_are_read_and_stay_in_their_folder() {
    let folder = copy();
    let (shard, index) =
        (folder.path().join("a.safetensors"), folder.path().join("model.safetensors.index.json"));
    std::fs::rename(folder.path().join("model.safetensors"), &shard).expect("it is there");
    std::fs::write(&index, r#"{"weight_map": {"model.norm.weight": "a.safetensors"}}"#).expect("writable");
    Transformer::load(folder.path(), &Device::flex()).expect("one shard holds all");
    for outside in ["../a.safetensors", "/etc/passwd", "b/../../a.safetensors", ".."] {
        std::fs::write(&index, format!(r#"{{"weight_map": {{"x": "{outside}"}}}}"#)).expect("writable");
        assert_refused(folder.path(), &["outside the folder", outside]);
    }
}

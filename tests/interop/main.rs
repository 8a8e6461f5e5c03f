//! Folders that we write, read by the transformers library, and folders that it writes in shards, read by us.
//!
//! Runs where `RL_PYTHON` (or `python3`) can import torch and transformers; elsewhere it says that it was skipped.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use burn::tensor::{Device, Tensor, TensorData};
use rl_models::flat_params::flatten;
use rl_models::lm::{FloatFormat, Transformer};
use rl_tests::numbers;
use rl_tests::small_models::{V, model, shapes};
use serde_json::Value;

const IDS: [[i64; 6]; 2] = [[1, 5, 16, 0, 3, 3], [7, 2, 9, 11, 4, 8]];

/// A Python with transformers. One that `RL_PYTHON` names must have it.
fn python() -> Option<OsString> {
    let named = std::env::var_os("RL_PYTHON");
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import torch, transformers"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(named.is_none(), "RL_PYTHON is {python:?}, which cannot import torch and transformers");
    println!("skipped: no Python with torch and transformers; set RL_PYTHON to one");
    None
}

fn logits(model: &Transformer) -> Vec<f64> {
    let (device, shape) = (Device::flex(), [IDS.len(), IDS[0].len()]);
    let ids = Tensor::from_data(TensorData::new(IDS.concat(), shape), &device);
    let real = Tensor::from_data(TensorData::new(vec![true; shape[0] * shape[1]], shape), &device);
    let hidden = model.hidden(&ids, &real);
    numbers(model.logits(hidden.reshape([shape[0] * shape[1], model.config().hidden])))
}

fn load(folder: &Path) -> Transformer {
    Transformer::load(folder, &Device::flex()).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

#[test]
fn transformers_reads_what_we_write_and_we_read_its_shards() {
    let Some(python) = python() else { return };
    let root = tempfile::tempdir().expect("a scratch folder");
    std::fs::write(root.path().join("ids.json"), serde_json::to_string(&IDS).expect("numbers"))
        .expect("the scratch folder can be written");
    let formats =
        [("float32", FloatFormat::F32), ("float16", FloatFormat::F16), ("bfloat16", FloatFormat::Bf16)];
    let mut written = Vec::new();
    for (family, config) in ["llama", "qwen2", "gpt2"].into_iter().zip(shapes()) {
        let model = model(&config, 7);
        for (dtype, format) in formats {
            let folder = root.path().join(format!("{family}-{dtype}"));
            model.save(&folder, format).expect("the folder can be written");
            written.push((folder, dtype));
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/read_folders.py");
    let output = Command::new(python).arg(script).arg(root.path()).output().expect("it ran a moment ago");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    for (folder, dtype) in written {
        let text = std::fs::read_to_string(folder.join("seen.json")).expect("the script writes one a folder");
        let seen: Value = serde_json::from_str(&text).expect("JSON");
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(seen["amiss"], serde_json::json!([]), "{name}: tensors");
        assert_eq!(seen["dtypes"], serde_json::json!([dtype]), "{name}: tensors");
        assert_eq!(seen["config_dtype"], dtype, "{name}: config.json");
        let theirs: Vec<f64> =
            seen["logits"].as_array().expect("numbers").iter().flat_map(Value::as_f64).collect();
        let ours = load(&folder);
        let found = logits(&ours);
        assert_eq!((theirs.len(), found.len()), (12 * V, 12 * V), "{name}");
        for (i, (ours, theirs)) in found.iter().zip(&theirs).enumerate() {
            assert!(
                (ours - theirs).abs() <= 2e-4 * (1.0 + theirs.abs()),
                "{name}, logit {i}: {ours}, {theirs}"
            );
        }
        let shards = folder.join("sharded");
        assert!(shards.join("model.safetensors.index.json").is_file(), "{name} fits into one shard");
        assert_eq!(numbers(flatten(&load(&shards))), numbers(flatten(&ours)), "{name}: shards");
    }
}

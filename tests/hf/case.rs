//! Reading the vector files: folders, batches, numbers.

use std::path::PathBuf;

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use rl_models::lm::Transformer;
use serde_json::Value;

/// The folder that holds `hf/`.
pub fn golden() -> PathBuf {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/golden");
    std::env::var_os("RL_GOLDEN_DIR").map_or_else(|| own.into(), PathBuf::from)
}

/// The model folders with a language-model head, by name, with their cases.
pub fn models() -> Vec<(String, PathBuf, Value)> {
    folders(|function| function.starts_with("hf_") && function != "hf_llama_reward")
}

/// The folders of `hf/` whose cases name a function that `wanted` likes.
pub fn folders(wanted: impl Fn(&str) -> bool) -> Vec<(String, PathBuf, Value)> {
    let hf = golden().join("hf");
    let mut found: Vec<_> = std::fs::read_dir(&hf)
        .unwrap_or_else(|error| panic!("{}: {error}", hf.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter_map(|path| {
            let text = std::fs::read_to_string(path.join("cases.json")).ok()?;
            let cases: Value = serde_json::from_str(&text).expect("cases.json is JSON");
            let name = path.file_name().expect("entries have names").to_string_lossy().into_owned();
            wanted(cases["function"].as_str().unwrap_or_default()).then_some((name, path, cases))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The model in `folder`.
pub fn load(folder: &std::path::Path, device: &Device) -> Transformer {
    Transformer::load(folder, device).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Every number of a nested list, in order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(many) => many.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))],
    }
}

/// A list of lists of tokens.
pub fn token_rows(value: &Value) -> Vec<Vec<u32>> {
    let row = |row: &Value| numbers(row).into_iter().map(|x| x as u32).collect();
    value.as_array().expect("a list of rows").iter().map(row).collect()
}

/// Ids and which of them are real, `[R, S]`.
pub fn batch(case: &Value, device: &Device) -> (Tensor<2, Int>, Tensor<2, Bool>) {
    let shape = [
        case["input_ids"].as_array().expect("rows").len(),
        case["input_ids"][0].as_array().expect("a row").len(),
    ];
    let ids: Vec<i64> = numbers(&case["input_ids"]).into_iter().map(|x| x as i64).collect();
    let real: Vec<bool> = numbers(&case["attention_mask"]).into_iter().map(|x| x != 0.0).collect();
    (
        Tensor::from_data(TensorData::new(ids, shape), device),
        Tensor::from_data(TensorData::new(real, shape), device),
    )
}

/// Asserts that two lists agree to `tolerance`, absolute and relative, wherever `counts` says so.
#[track_caller]
pub fn assert_near(what: &str, got: &[f64], want: &[f64], tolerance: f64, counts: impl Fn(usize) -> bool) {
    assert_eq!(got.len(), want.len(), "{what}: another number of numbers");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let near = (got - want).abs() <= tolerance * (1.0 + want.abs());
        assert!(near || !counts(i), "{what}, number {i}: {got} is not {want}");
    }
}

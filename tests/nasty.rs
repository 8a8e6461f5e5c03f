//! Malformed preference files, each with the outcome it must have in strict and in lenient reading.
//!
//! The folder is `nasty` in `RL_DATA_DIR`, by default `tests/data`; any folder with the same `expected.json` schema will
//! do. Where several outcomes are sound ours is: two identical answers are a tie, kept and counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rl_envs::preference::{DataError, Dataset, Layout, OnBad, Position, Prompt, ReadOptions};
use serde_json::Value;

/// What a load came to.
type Outcome = Result<Dataset, DataError>;

fn folder() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    std::env::var_os("RL_DATA_DIR").map_or_else(default, PathBuf::from).join("nasty")
}

/// The number by which the schema calls a row.
fn numbers(position: Position) -> Vec<u64> {
    match position {
        Position::Line(n) | Position::Row(n) => vec![n],
        Position::Element { number, line } => vec![number, line],
    }
}

fn place(error: &DataError) -> Option<Vec<u64>> {
    match error {
        DataError::Row { place, .. } | DataError::Damaged { place, .. } => Some(numbers(place.position)),
        _ => None,
    }
}

/// Why `outcome` is not what `want` asks for.
fn fault(outcome: &Outcome, want: &Value, file: &str) -> Option<String> {
    match (want["outcome"].as_str().expect("an outcome"), outcome) {
        ("any_of", _) => {
            let of = want["of"].as_array().expect("outcomes");
            let faults: Vec<String> = of.iter().map_while(|want| fault(outcome, want, file)).collect();
            (faults.len() == of.len()).then(|| faults.join("; or "))
        }
        ("ok", Err(error)) => Some(format!("should load, but: {error}")),
        ("error", Ok(data)) => Some(format!("should be refused, but gave {} rows", data.rows())),
        ("ok", Ok(data)) => unlike(data, want),
        ("error", Err(error)) => {
            let text = error.to_string();
            let said =
                |word: &Value| text.to_lowercase().contains(&word.as_str().unwrap_or("").to_lowercase());
            let words = want["mentions_any"].as_array().map_or(&[][..], Vec::as_slice);
            if !text.contains(file) {
                return Some(format!("the error does not name the file: {text}"));
            }
            if !words.is_empty() && !words.iter().any(said) {
                return Some(format!("the error mentions none of {words:?}: {text}"));
            }
            let line = want["line"].as_u64()?;
            let named = place(error).is_some_and(|numbers| numbers.contains(&line));
            (!named).then(|| format!("the error does not name line {line}: {text}"))
        }
        (other, _) => Some(format!("unknown outcome `{other}`")),
    }
}

/// Where a loaded file differs from what is wanted.
fn unlike(data: &Dataset, want: &Value) -> Option<String> {
    if let Some(accepted) = want["accepted"].as_u64().filter(|n| *n != data.rows() as u64) {
        return Some(format!("{} rows instead of {accepted}", data.rows()));
    }
    let skipped: Vec<u64> =
        want["skipped_lines"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let ours: Vec<Vec<u64>> = data.skipped.listed.iter().map(|(place, _)| numbers(place.position)).collect();
    if ours.len() != skipped.len() || !ours.iter().zip(&skipped).all(|(ours, line)| ours.contains(line)) {
        return Some(format!("skipped {ours:?} instead of {skipped:?}"));
    }
    let identical = want["flagged"]["identical"].as_u64();
    if let Some(n) = identical.filter(|n| *n != data.ties() as u64) {
        return Some(format!("{} ties instead of {n}", data.ties()));
    }
    let first = data.pairs.first();
    let prompt = first.and_then(|pair| match &pair.prompt {
        Prompt::Text(text) => Some(text.as_str()),
        Prompt::Messages(_) => None,
    });
    let texts = [
        ("first_prompt", prompt),
        ("first_chosen", first.map(|pair| pair.chosen.as_str())),
        ("first_rejected", first.map(|pair| pair.rejected.as_str())),
    ];
    let differs =
        |(key, ours): &(&str, Option<&str>)| want[*key].as_str().is_some_and(|it| Some(it) != *ours);
    texts.into_iter().find(differs).map(|(key, ours)| format!("{key} is {ours:?}"))
}

/// Runs every case in one mode, with the layout named or told by the rows.
fn run(mode: &str, on_bad: OnBad, named: bool) {
    let folder = folder();
    let text = std::fs::read_to_string(folder.join("expected.json")).expect("a readable expected.json");
    let expected: Value = serde_json::from_str(&text).expect("expected.json is JSON");
    let cases = expected["cases"].as_array().expect("cases");
    assert!(!cases.is_empty(), "{} has no cases", folder.display());
    let mut faults = Vec::new();
    for case in cases {
        let file = case["file"].as_str().expect("a file");
        let layout: Option<Layout> =
            named.then(|| serde_json::from_value(case["format"].clone()).expect("a known format"));
        let options = ReadOptions { layout, on_bad, ..ReadOptions::default() };
        let load = || Dataset::load(&folder.join(file), &options);
        match catch_unwind(AssertUnwindSafe(load)) {
            Ok(outcome) => {
                faults.extend(fault(&outcome, &case[mode], file).map(|it| format!("{file}: {it}")))
            }
            Err(_) => faults.push(format!("{file}: panicked")),
        }
    }
    assert!(faults.is_empty(), "{} of {} cases:\n{}", faults.len(), cases.len(), faults.join("\n"));
}

#[test]
fn strict_reading_stops_at_the_first_bad_row_and_names_it() {
    run("strict", OnBad::Error, true);
}

#[test]
fn lenient_reading_skips_bad_rows_and_lists_them() {
    run("lenient", OnBad::Skip, true);
}

#[test]
fn strict_reading_tells_the_layout_by_itself() {
    run("strict", OnBad::Error, false);
}

#[test]
fn lenient_reading_tells_the_layout_by_itself() {
    run("lenient", OnBad::Skip, false);
}

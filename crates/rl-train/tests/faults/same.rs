//! One seed gives one run: on any number of threads the same bits, on another device nearly the same numbers.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::place::{Place, RUNS};

/// Runs `line` on so many threads and returns the name of its folder.
fn on_threads(place: &Place, line: &str, threads: usize) -> String {
    let out = format!("on-{threads}");
    let _ = fs::remove_dir_all(place.path(&out));
    let mut command = place.command(&format!("train {line} --out {out}"));
    let output = command.env("RAYON_NUM_THREADS", threads.to_string()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", crate::place::said(&output));
    out
}

#[test]
fn every_kind_of_run_is_the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    // A model whose products are worth sharing between threads: 2 layers of width 128, 32 rows of 96 tokens.
    let large = "sft-stories --set total_steps=64 --set corpus.stories=300 --set eval.every_steps=0";
    let lines = RUNS.iter().map(|(kind, ..)| format!("{kind}.toml")).chain([large.to_owned()]);
    for line in lines {
        let one = on_threads(&place, &line, 1);
        for threads in [2, 5] {
            place.assert_same(&one, &on_threads(&place, &line, threads));
        }
    }
}

fn rows(place: &Place, out: &str) -> Vec<BTreeMap<String, f64>> {
    let text = fs::read_to_string(place.path(out).join("metrics.jsonl")).unwrap();
    let row = |line: &str| -> BTreeMap<String, f64> {
        let row: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        row.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect()
    };
    text.lines().map(row).collect()
}

/// The largest difference of two rows in units of the larger of 1 and the number, and the metric that has it. Shares of
/// pairs whose rewards are equal or in order are left out: where policy and reference agree, rounding decides them.
fn apart(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> (f64, String) {
    let one = |(name, x): (&String, &f64)| ((x - b[name]).abs() / x.abs().max(1.0), name.clone());
    let smooth = a.iter().filter(|(name, _)| !matches!(name.as_str(), "rewards/ties" | "rewards/accuracies"));
    smooth.map(one).max_by(|a, b| a.0.total_cmp(&b.0)).expect("a row has numbers")
}

/// How far the first update may differ between two CPU devices.
const FIRST: f64 = 1e-3;

/// Prints the table of docs/survives.md: `cargo test … --test faults same -- --nocapture`.
#[test]
fn the_first_update_on_another_device_is_the_same_to_rounding() {
    let place = Place::new();
    for (kind, ..) in RUNS {
        for device in ["flex", "ndarray"] {
            place.succeeds(&format!("train {kind}.toml --device {device} --out {kind}-{device}"));
        }
        let (a, b) = (rows(&place, &format!("{kind}-flex")), rows(&place, &format!("{kind}-ndarray")));
        let (first, name) = apart(&a[0], &b[0]);
        let near = a.iter().zip(&b).take_while(|(a, b)| apart(a, b).0 < FIRST).count();
        println!("| {kind} | {first:.0e} ({name}) | {near} of {} |", a.len());
        assert!(first <= FIRST, "{kind}: `{name}` differs by {first:e} after the first update");
    }
}

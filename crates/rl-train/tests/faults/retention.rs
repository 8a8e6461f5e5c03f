//! Which checkpoints stay: the last few, and those of the best evaluations.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::place::{Place, checkpoints};

fn updates(folder: &Path) -> Vec<u64> {
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().parse().unwrap();
    checkpoints(folder).iter().map(|path| stem(path)).collect()
}

#[test]
fn the_last_and_the_best_checkpoints_stay_and_the_summary_names_the_best() {
    let place = Place::new();
    place.succeeds(
        "train ppo.toml --out run --set total_steps=4800 --set checkpoint.keep=3 --set checkpoint.keep_best=2 \
         --set checkpoint.every_updates=10 --set eval.every_steps=480",
    );
    assert_eq!(updates(&place.path("run/checkpoint")), [130, 140, 150]);

    let metrics = fs::read_to_string(place.path("run/metrics.jsonl")).unwrap();
    let rows = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut evaluated: Vec<(f64, u64)> =
        rows.filter_map(|row| Some((row["eval/return_mean"].as_f64()?, row["update"].as_u64()?))).collect();
    assert_eq!(evaluated.len(), 10);
    // The highest first; of equal ones the earliest.
    evaluated.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut best = [evaluated[0].1, evaluated[1].1];
    best.sort_unstable();
    assert_eq!(updates(&place.path("run/best")), best);

    let said = &place.json("run/summary.json")["best"];
    let (score, update) = evaluated[0];
    assert_eq!((said["metric"].as_str(), said["score"].as_f64()), (Some("eval/return_mean"), Some(score)));
    assert_eq!(said["update"].as_u64(), Some(update));
    assert!(place.path("run").join(said["checkpoint"].as_str().unwrap()).is_file(), "{said}");
    let words = place.succeeds("eval run --best");
    assert!(words.contains(&format!("after update {update} ")), "{words}");
    assert!(words.contains(&format!("return {score} ±")), "{words}");
}

#[test]
fn without_keep_best_there_is_none_and_the_command_says_so() {
    let place = Place::new();
    place.succeeds("train ppo.toml --out run --set total_steps=640 --set checkpoint.keep_best=0");
    assert!(!place.path("run/best").exists());
    assert!(place.json("run/summary.json")["best"].is_null());
    let said = place.fails("eval run --best", 2);
    assert!(said.contains("`checkpoint.keep_best`"), "{said}");
}

//! `train rlhf` from outside, in its tiny size: every stage, resuming, and what is refused.

use std::fs;

use crate::{Place, checkpoints, text};

#[test]
fn the_tiny_pipeline_ends_in_a_table_and_a_resumed_one_in_the_same() {
    let place = Place::new();
    let said = place.succeeds("train rlhf-tiny --out p");
    for stage in ["== base", "== preferences", "== reward", "== ppo", "== dpo", "| PPO |", "| DPO |"] {
        assert!(said.contains(stage), "{stage} in {said}");
    }
    let table = place.json("p/table.json");
    let lines = table.as_array().unwrap();
    let methods: Vec<&str> = lines.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["base", "PPO", "DPO"]);
    for line in lines {
        for key in ["gold", "proxy", "kl", "token_entropy", "distinct_2"] {
            assert!(line[key].as_f64().is_some_and(f64::is_finite), "{key} in {line}");
        }
    }
    assert!(lines[0]["kl"].as_f64().unwrap().abs() < 1e-6, "the base model is at itself: {}", lines[0]);
    assert!(lines[1]["kl"].as_f64().unwrap() > 1e-6, "PPO has moved: {}", lines[1]);
    for stage in ["base", "reward", "ppo", "dpo"] {
        assert!(
            place.path(&format!("p/{stage}/model")).is_dir()
                && place.path(&format!("p/{stage}/report.html")).is_file()
        );
    }
    let openings = text(&place.bytes("p/openings.txt"));
    let comparisons = text(&place.bytes("p/preferences.jsonl"));
    assert!(
        openings.lines().all(|line| !comparisons.contains(line)),
        "an opening of the table was trained on"
    );

    // As if it had been killed in the middle of PPO.
    let (whole, base) = (place.bytes("p/table.json"), place.bytes("p/base/metrics.jsonl"));
    fs::remove_file(place.path("p/ppo/summary.json")).unwrap();
    fs::remove_file(checkpoints(&place.path("p/ppo")).last().unwrap()).unwrap();
    fs::remove_dir_all(place.path("p/dpo")).unwrap();
    fs::remove_file(place.path("p/table.json")).unwrap();
    let said = place.succeeds("train --resume p");
    assert!(said.contains("done before: `p/base`") && said.contains("done before: `p/reward`"), "{said}");
    assert_eq!((place.bytes("p/table.json"), place.bytes("p/base/metrics.jsonl")), (whole, base));
}

#[test]
fn a_setting_reaches_its_stage_and_one_of_none_is_refused() {
    let place = Place::new();
    let said = place.fails("train rlhf-tiny --out p --set algo.gamma=0.9", 2);
    assert!(said.contains("one of its stages") && !place.path("p").exists(), "{said}");
    place.succeeds("train rlhf-tiny --out p --set ppo.algo.gae_lambda=0.5 --seed 2");
    let config = |stage: &str| text(&place.bytes(&format!("p/{stage}/config.toml")));
    assert!(
        config("ppo").contains("gae_lambda = 0.5") && config("ppo").contains("seed = 2"),
        "{}",
        config("ppo")
    );
    let said = place.fails("train rlhf-tiny --out p", 2);
    assert!(said.contains("not empty") && said.contains("--resume"), "{said}");
}

#[test]
fn what_belongs_to_a_single_run_is_refused_before_anything_is_written() {
    let place = Place::new();
    for view in ["--tui", "--serve", "--log tensorboard", "--devices flex,flex"] {
        let said = place.fails(&format!("train rlhf-tiny --out p {view}"), 2);
        let option = view.split(' ').next().unwrap();
        assert!(said.contains(option) && said.contains("rl-train watch"), "{said}");
        assert!(!place.path("p").exists(), "{view} left something behind");
    }
}

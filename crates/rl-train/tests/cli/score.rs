//! `rl-train score`: reward models of the golden vectors on a file made here.

use std::fs;
use std::path::Path;

use super::Place;

/// A place with a reward model in `rm` and a file of pairs.
fn place() -> Place {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/hf");
    let place = Place::new();
    fs::create_dir(place.path("rm")).unwrap();
    for file in
        ["llama_reward/config.json", "llama_reward/model.safetensors", "tokenizer_bpe300_gpt2/tokenizer.json"]
    {
        let from = golden.join(file);
        fs::copy(&from, place.path("rm").join(from.file_name().unwrap())).unwrap();
    }
    let pairs = r#"{"prompt": "two", "chosen": " and two", "rejected": " or three"}
{"prompt": "a", "chosen": " b", "rejected": " b"}
"#;
    fs::write(place.path("p.jsonl"), pairs).unwrap();
    place
}

fn lines(place: &Place, name: &str) -> Vec<serde_json::Value> {
    let text = String::from_utf8(place.bytes(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_answer_gets_a_score_and_a_tie_is_no_success() {
    let place = place();
    let report = place.succeeds("score rm p.jsonl --out s.jsonl");
    assert!(report.contains("2 pairs: accuracy") && report.contains("ties 0.500"), "{report}");
    assert!(report.contains("calibration"), "{report}");
    let scores = lines(&place, "s.jsonl");
    assert_eq!(scores.len(), 2);
    assert!(scores[0]["score_chosen"] != scores[0]["score_rejected"]);
    assert_eq!(scores[1]["score_chosen"], scores[1]["score_rejected"]);
}

#[test]
fn an_ensemble_of_one_model_twice_is_that_model_under_every_rule() {
    let place = place();
    place.succeeds("score rm p.jsonl --out one.jsonl");
    for rule in ["mean", "min", "mean-minus-std"] {
        place.succeeds(&format!("score rm p.jsonl --with rm --ensemble {rule} --out two.jsonl"));
        assert_eq!(lines(&place, "one.jsonl"), lines(&place, "two.jsonl"), "{rule}");
    }
}

#[test]
fn the_normalisation_beside_a_model_is_taken() {
    let place = place();
    place.succeeds("score rm p.jsonl --out raw.jsonl");
    fs::write(place.path("rm/reward_model.json"), r#"{"mean": 1.0, "std": 2.0}"#).unwrap();
    place.succeeds("score rm p.jsonl --out normal.jsonl");
    let score = |name: &str| lines(&place, name)[0]["score_chosen"].as_f64().unwrap();
    assert!((score("normal.jsonl") - (score("raw.jsonl") - 1.0) / 2.0).abs() < 1e-6);
    fs::write(place.path("rm/reward_model.json"), r#"{"mean": 1.0, "std": 0.0}"#).unwrap();
    let error = place.fails("score rm p.jsonl", 1);
    assert!(error.contains("reward_model.json") && error.contains("std 0"), "{error}");
}

#[test]
fn what_is_no_reward_model_or_no_rule_is_named() {
    let place = place();
    let error = place.fails("score nowhere p.jsonl", 1);
    assert!(error.contains("no reward model in `nowhere`") && error.contains("rm-stories"), "{error}");
    let causal = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/hf/llama_tied");
    let error = place.fails(&format!("score {} p.jsonl", causal.display()), 1);
    assert!(error.contains("score.weight") && error.contains("missing"), "{error}");
    let error = place.fails("score rm p.jsonl --ensemble median", 2);
    assert!(error.contains("median") && error.contains("mean-minus-std"), "{error}");
    let error = place.fails("score rm p.jsonl --k=-1", 2);
    assert!(error.contains("--k"), "{error}");
    let error = place.fails("score rm nowhere.jsonl", 1);
    assert!(error.contains("cannot read `nowhere.jsonl`"), "{error}");
}

//! A real story model of 260,000 parameters against its oracle.

use std::path::PathBuf;

use rl_models::Tokens;
use rl_models::lm::score;
use rl_tests::{devices, numbers as read};
use serde_json::Value;

use crate::case::{assert_near, load, numbers};
use crate::writing::greedy;

/// `RL_DATA_DIR/models`, or a line that says what is skipped.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("RL_DATA_DIR").map(|dir| PathBuf::from(dir).join("models"));
    let there = folder.filter(|folder| folder.join("stories260K-hf").is_dir());
    if there.is_none() {
        println!("skipped: RL_DATA_DIR names no folder with models/stories260K-hf");
    }
    there
}

#[test]
fn the_story_model_scores_and_writes_as_in_transformers() {
    let Some(data) = data() else { return };
    let oracle = std::fs::read_to_string(data.join("oracles/stories260K.json")).expect("the oracle is there");
    let oracle: Value = serde_json::from_str(&oracle).expect("the oracle is JSON");
    for (device_name, device) in devices() {
        let model = load(&data.join("stories260K-hf"), &device);
        for case in oracle["texts"].as_array().expect("a list of texts") {
            let what = format!("{}, {device_name}", case["text"]);
            let ids: Vec<u32> = numbers(&case["ids"]).into_iter().map(|x| x as u32).collect();
            let tokens = Tokens::new(&[(&ids[..1], &ids[1..])], model.config().pad, &device);
            let scores = score(&model, &tokens, 16);
            assert_near(&what, &read(scores.log_prob.clone()), &numbers(&case["logprobs"]), 2e-4, |_| true);
            let sum = read(scores.sequence_log_prob(&tokens));
            assert_near(&what, &sum, &numbers(&case["sum"]), 2e-4, |_| true);
            let want: Vec<u32> = numbers(&case["greedy_ids"]).into_iter().map(|x| x as u32).collect();
            let written = greedy(&model, &[ids], want.len(), &[]);
            assert_eq!(written[0], want, "{what}");
        }
    }
}

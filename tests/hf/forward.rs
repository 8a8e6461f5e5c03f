//! Logits, log-probs and entropies of batches with padding on either side.

use burn::tensor::Tensor;
use rl_core::dist::{Categorical, Distribution};
use rl_models::Tokens;
use rl_models::lm::score;
use rl_tests::{devices, numbers as read};

use crate::case::{assert_near, batch, load, models, numbers};

const TOLERANCE: f64 = 2e-4;

#[test]
fn logits_and_log_probs_are_those_of_transformers() {
    let mut compared = 0;
    for (device_name, device) in devices() {
        for (name, folder, cases) in models() {
            let model = load(&folder, &device);
            for case in cases["logits"].as_array().expect("a list of cases") {
                let what = format!("{name}, {}, {device_name}", case["name"]);
                let (ids, real) = batch(case, &device);
                let ([rows, s], d, v) = (ids.dims(), model.config().hidden, model.config().vocabulary);
                let mask = numbers(&case["attention_mask"]);
                let hidden = model.hidden(&ids, &real).reshape([rows * s, d]);
                let logits = model.logits(hidden);
                if !case["logits"].is_null() {
                    let counts = |i: usize| mask[i / v] != 0.0;
                    assert_near(&what, &read(logits.clone()), &numbers(&case["logits"]), TOLERANCE, counts);
                    compared += rows * s * v;
                }
                let law = Categorical::new(logits.clone());
                let entropy = read(law.entropy());
                assert_near(&what, &entropy, &numbers(&case["entropy"]), TOLERANCE, |i| mask[i] != 0.0);
                let best: Vec<f64> = read(logits.argmax(1).float());
                assert_near(&what, &best, &numbers(&case["logits_argmax"]), 0.0, |i| mask[i] != 0.0);
                if s > 1 {
                    let want = numbers(&case["token_logprobs"]);
                    let counts = numbers(&case["token_logprob_mask"]);
                    let tokens = Tokens { ids, real, prompt: 1 };
                    let got = read(score(&model, &tokens, 5).log_prob);
                    assert_near(&what, &got, &want, TOLERANCE, |i| counts[i] != 0.0);
                    compared += want.len();
                }
            }
        }
    }
    println!("hf logits: {compared} numbers");
    assert!(compared > 0, "no numbers were compared");
}

#[test]
fn scores_of_a_reward_head_are_those_of_transformers() {
    for (device_name, device) in devices() {
        for (name, folder, cases) in crate::case::folders(|function| function == "hf_llama_reward") {
            let (model, head) = rl_models::lm::Transformer::load_with_score(&folder, &device)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            for case in cases["cases"].as_array().expect("a list of cases") {
                let (ids, real) = batch(case, &device);
                let hidden = model.last_states(&ids, &real);
                let scores: Tensor<2> = hidden.matmul(head.clone().transpose());
                let what = format!("{name}, {}, {device_name}", case["name"]);
                assert_near(&what, &read(scores), &numbers(&case["scores"]), TOLERANCE, |_| true);
            }
        }
    }
}

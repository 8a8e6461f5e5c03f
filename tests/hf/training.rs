//! Gradients and losses of fine-tuning equal those of PyTorch.

use burn::tensor::{Bool, Tensor};
use rl_algos::adam::{Adam, AdamConfig, AdamKind};
use rl_core::dist::Distribution;
use rl_core::masked::masked_mean;
use rl_core::preference;
use rl_core::schedule::Schedule;
use rl_models::flat_params::{flatten, unflatten};
use rl_models::lm::{Transformer, score};
use rl_models::{Policy, Tokens};
use rl_tests::{devices, numbers as read};
use serde_json::Value;

use crate::case::{assert_near, batch, load, models, numbers, token_rows};

const TOLERANCE: f64 = 2e-4;

fn adamw() -> Adam {
    Adam::new(AdamConfig {
        kind: AdamKind::Adamw,
        learning_rate: Schedule::Constant(1e-3),
        eps: 1e-8,
        ..AdamConfig::default()
    })
}

/// The mean negative log-prob of targets whose own and previous token are real, and its gradient.
fn sft(model: &Transformer, tokens: &Tokens) -> (f64, Tensor<1>) {
    let s = tokens.ids.dims()[1];
    let (before, own) = (tokens.real.clone().narrow(1, 0, s - 1), tokens.real.clone().narrow(1, 1, s - 1));
    let counts: Tensor<1, Bool> = before.bool_and(own).reshape([tokens.mask().dims()[0]]);
    let mut value = 0.0;
    let grad = model.gradient(tokens, &mut rand::rng(), |law| {
        let loss = masked_mean(law.log_prob(&tokens.actions()), &counts).neg();
        value = read(loss.clone())[0];
        loss
    });
    (value, grad)
}

#[test]
fn fine_tuning_has_the_gradients_and_losses_of_pytorch() {
    for (device_name, device) in devices() {
        for (name, folder, cases) in models() {
            let (mut model, case) = (load(&folder, &device), &cases["sft"]);
            let (ids, real) = batch(case, &device);
            let tokens = Tokens { ids, real, prompt: 1 };
            let what = format!("{name}, sft, {device_name}");

            let (loss, grad) = sft(&model, &tokens);
            assert_near(&what, &[loss], &numbers(&case["sft_loss"]), TOLERANCE, |_| true);
            let norm = |numbers: &[f32]| numbers.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let total = read(grad.clone().square().sum().sqrt());
            assert_near(&what, &total, &numbers(&case["total_grad_norm"]), TOLERANCE, |_| true);
            let by_name = unflatten(model.clone(), &grad).named_tensors();
            let norms = case["grad_norms"].as_object().expect("a norm per tensor");
            assert_eq!(by_name.len(), norms.len(), "{what}: another number of tensors");
            for (tensor, want) in norms {
                let (gradient, _) = by_name.get(tensor).unwrap_or_else(|| panic!("{what}: no {tensor}"));
                assert_near(
                    &format!("{what}, {tensor}"),
                    &[norm(gradient)],
                    &numbers(want),
                    TOLERANCE,
                    |_| true,
                );
            }

            let (mut adam, mut theta, mut losses) = (adamw(), flatten(&model), vec![]);
            for _ in 0..numbers(&case["adamw_losses"]).len() {
                let (loss, grad) = sft(&model, &tokens);
                losses.push(loss);
                theta = adam.step(theta, grad, 1e-3);
                model = unflatten(model, &theta);
            }
            assert_near(&what, &losses, &numbers(&case["adamw_losses"]), 1e-3, |_| true);
        }
    }
}

fn pairs(case: &Value, side: &str, model: &Transformer) -> Tokens {
    let (prompts, answers) = (token_rows(&case["prompt_ids"]), token_rows(&case[side]));
    let pairs: Vec<(&[u32], &[u32])> =
        prompts.iter().zip(&answers).map(|(p, a)| (p.as_slice(), a.as_slice())).collect();
    Tokens::new(&pairs, model.config().pad, &model.embedding.val().device())
}

/// The batch of both sides, chosen first.
fn both(chosen: &Tokens, rejected: &Tokens) -> Tokens {
    Tokens {
        ids: Tensor::cat(vec![chosen.ids.clone(), rejected.ids.clone()], 0),
        real: Tensor::cat(vec![chosen.real.clone(), rejected.real.clone()], 0),
        prompt: chosen.prompt,
    }
}

#[test]
fn direct_preference_optimisation_has_the_losses_of_pytorch() {
    for (device_name, device) in devices() {
        for (name, folder, cases) in models() {
            let (mut model, case) = (load(&folder, &device), &cases["dpo"]);
            let what = format!("{name}, dpo, {device_name}");
            let (chosen, rejected) = (pairs(case, "chosen_ids", &model), pairs(case, "rejected_ids", &model));
            let reference = [&chosen, &rejected].map(|side| score(&model, side, 64).sequence_log_prob(side));
            assert_near(
                &what,
                &read(reference[0].clone()),
                &numbers(&case["ref_chosen_logps"]),
                TOLERANCE,
                |_| true,
            );
            assert_near(
                &what,
                &read(reference[1].clone()),
                &numbers(&case["ref_rejected_logps"]),
                TOLERANCE,
                |_| true,
            );

            let (tokens, beta) = (both(&chosen, &rejected), numbers(&case["beta"])[0]);
            let (rows, l) = (tokens.ids.dims()[0], tokens.response());
            let (mut adam, mut theta) = (adamw(), flatten(&model));
            let (mut losses, mut norms) = (vec![], vec![]);
            for _ in 0..numbers(&case["losses"]).len() {
                let grad = model.gradient(&tokens, &mut rand::rng(), |law| {
                    let log_probs =
                        law.log_prob(&tokens.actions()).reshape([rows, l]).sum_dim(1).reshape([rows]);
                    let side = |i: usize| log_probs.clone().narrow(0, i * rows / 2, rows / 2);
                    let ratio = |i: usize| side(i) - reference[i].clone();
                    let margin = (ratio(0) - ratio(1)) * beta;
                    let loss = preference::log_sigmoid(margin).mean().neg();
                    losses.push(read(loss.clone())[0]);
                    loss
                });
                norms.push(read(grad.clone().square().sum().sqrt())[0]);
                theta = adam.step(theta, grad, 1e-3);
                model = unflatten(model, &theta);
            }
            assert_near(&what, &losses, &numbers(&case["losses"]), 1e-3, |_| true);
            assert_near(&what, &norms, &numbers(&case["grad_norms"]), 5e-3, |_| true);
            assert!((losses[0] - 2f64.ln()).abs() < 1e-6, "{what}: the first loss is {}", losses[0]);
        }
    }
}

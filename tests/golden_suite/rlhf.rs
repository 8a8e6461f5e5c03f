//! Token rewards and log-probabilities, the exact optimum, reward-model and GRPO losses.

use burn::tensor::Tensor;
use rl_core::dist::Distribution;
use rl_core::grpo::{
    TokenLogProbs, TokenLoss, mean_over_budget, mean_over_sequences, mean_over_tokens, per_token,
};
use rl_core::kl::KlEstimator;
use rl_core::preference::{accuracy, bradley_terry, bradley_terry_with_margin, centring, preference_prob};
use rl_core::tilt::{objective, tilt};
use rl_core::token_log_prob::{mean_log_prob, next_token_laws, sequence_log_prob, token_log_probs};
use rl_core::token_reward::{ShapedRewards, shaped_rewards};

use crate::compare::{Answers, Scalar, answers};
use crate::on_device::{TensorInputs, gradient, gradients};
use crate::suite::{
    Formula::{Host, HostDouble, Tensors},
    Formulas,
};
use crate::vectors::Inputs;

pub const FORMULAS: Formulas = &[
    ("rlhf_reward_shaping", Host(rlhf_reward_shaping::<f32>, rlhf_reward_shaping::<f64>)),
    ("rlhf_optimum", HostDouble(rlhf_optimum)),
    ("token_logprobs", Tensors(token_logprobs)),
    ("bradley_terry", Tensors(reward_model)),
    ("grpo_loss", Tensors(grpo_loss)),
];

fn rlhf_reward_shaping<F: Scalar>(x: &Inputs) -> Answers {
    let estimator = match x.word("kl_estimator") {
        "k1" => KlEstimator::K1,
        "k2" => KlEstimator::K2,
        "k3" => KlEstimator::K3,
        other => panic!("no KL estimator is called `{other}`"),
    };
    let (log_probs, reference) = (x.rows::<F>("logprobs"), x.rows("ref_logprobs"));
    let (mask, scores) = (x.rows::<f64>("mask"), x.numbers("scores"));
    let sequence = |b: usize| {
        let mask: Vec<bool> = mask[b].iter().map(|&real| real != 0.0).collect();
        shaped_rewards(&log_probs[b], &reference[b], &mask, scores[b], x.real("beta"), estimator)
    };
    let shaped: Vec<ShapedRewards<F>> = (0..scores.len()).map(sequence).collect();
    let each = |of: fn(&ShapedRewards<F>) -> F| shaped.iter().map(of).collect::<Vec<F>>();
    answers()
        .with("kl_sum", each(|of| of.kl))
        .with("non_score_reward", each(|of| of.penalty))
        .with("rlhf_reward", each(|of| of.total))
        .with("rewards", shaped.into_iter().map(|of| of.rewards).collect::<Vec<_>>())
}

fn rlhf_optimum(x: &Inputs) -> Answers {
    let (reference, rewards, beta) = (x.numbers("pi_ref"), x.numbers("rewards"), x.number("beta"));
    let best = tilt(&reference, &rewards, beta);
    let reached = objective(&x.numbers("pi"), &reference, &rewards, beta);
    answers()
        .with("pi_star", best.policy)
        .with("log_z", best.log_z)
        .with("value", best.value)
        .with("expected_reward", best.expected_reward)
        .with("kl_star", best.kl)
        .with("objective", reached)
        .with("gap", best.value - reached)
}

fn token_logprobs(x: &TensorInputs) -> Answers {
    let (logits, ids, mask) = (x.tensor::<3>("logits"), x.indices("ids"), x.mask("mask", "mask"));
    let (laws, _) = next_token_laws(logits.clone(), ids.clone());
    let token_logp = token_log_probs(logits, ids);
    answers()
        .with("entropy", laws.entropy())
        .with("seq_logp", sequence_log_prob(token_logp.clone(), &mask))
        .with("mean_logp", mean_log_prob(token_logp.clone(), &mask))
        .with("token_logp", token_logp)
}

/// The mean Bradley–Terry loss, plus the weighted centring term.
fn reward_model(x: &TensorInputs) -> Answers {
    let (chosen, rejected) = (x.variable::<1>("chosen"), x.variable("rejected"));
    let per_pair = match x.has("margin") {
        true => bradley_terry_with_margin(chosen.clone(), rejected.clone(), x.tensor("margin")),
        false => bradley_terry(chosen.clone(), rejected.clone()),
    };
    let centre = centring(chosen.clone(), rejected.clone()).mean() * x.number("center");
    let loss = per_pair.clone().mean() + centre;
    let [grad_chosen, grad_rejected] = gradients(&loss, [&chosen, &rejected]);
    answers()
        .with("loss", loss)
        .with("per_pair", per_pair)
        .with("accuracy", accuracy(&chosen, &rejected))
        .with("prob", preference_prob(chosen, rejected))
        .with("grad_chosen", grad_chosen)
        .with("grad_rejected", grad_rejected)
}

fn grpo_loss(x: &TensorInputs) -> Answers {
    let settings =
        TokenLoss { clip_low: x.number("eps_low"), clip_high: x.number("eps_high"), beta: x.number("beta") };
    let logps = x.variable::<2>("logps");
    let [rows, tokens] = logps.dims();
    let flat = |table: Tensor<2>| table.reshape([rows * tokens]);
    let log_probs = TokenLogProbs {
        current: flat(logps.clone()),
        old: x.flat("old_logps"),
        reference: x.flat("ref_logps"),
    };
    let mask = x.mask::<2>("mask", "logps").reshape([rows * tokens]);
    let loss = settings.per_token(log_probs, per_token(x.tensor("advantages"), tokens), &mask);
    let over_tokens = mean_over_tokens(loss.clone(), &mask);
    answers()
        .with("grad_token", gradient(&over_tokens, &logps))
        .with("loss_token", over_tokens)
        .with("loss_grpo", mean_over_sequences(loss.clone(), &mask, rows))
        .with("loss_dr", mean_over_budget(loss, &mask, rows, x.whole("max_completion_length")))
}

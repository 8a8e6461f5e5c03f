//! PPO's losses and their gradients by autodiff.

use rl_core::diagnostics::{approx_kl, approx_kl_k1, clip_fraction};
use rl_core::dist::{Categorical, Distribution};
use rl_core::kl::exact_kl_mean;
use rl_core::masked::standardise;
use rl_core::surrogate::{clipped, importance_weighted, kl_penalised, ratio};
use rl_core::value_loss::{clipped_max, clipped_sb3, squared};

use crate::compare::{Answers, answers};
use crate::on_device::{TensorInputs, gradient};
use crate::suite::{Formula::Tensors, Formulas};

pub const FORMULAS: Formulas = &[
    ("ppo_clip_loss", Tensors(ppo_clip_loss)),
    ("ppo_kl_penalty_loss", Tensors(ppo_kl_penalty_loss)),
    ("ppo_value_loss", Tensors(ppo_value_loss)),
];

fn ppo_clip_loss(x: &TensorInputs) -> Answers {
    let (logits, log_prob_old, clip) =
        (x.variable("logits"), x.tensor("old_log_probs"), x.number("clip_eps"));
    let log_prob = Categorical::new(logits.clone()).log_prob(&x.indices("actions"));
    let advantage = x.tensor("advantages");
    let advantage = if x.flag("normalize_advantages") { standardise(advantage) } else { advantage };

    let ratio = ratio(log_prob.clone(), log_prob_old.clone());
    let loss = clipped(ratio.clone(), advantage, clip).mean().neg();
    let log_ratio = log_prob - log_prob_old;
    answers()
        .with("grad_logits", gradient(&loss, &logits))
        .with("loss", loss)
        .with("clip_fraction", clip_fraction(&ratio, clip))
        .with("ratio", ratio)
        .with("approx_kl_k1", approx_kl_k1(&log_ratio))
        .with("approx_kl_k3", approx_kl(&log_ratio))
}

fn ppo_kl_penalty_loss(x: &TensorInputs) -> Answers {
    let (logits, actions, beta) = (x.variable("logits_new"), x.indices("actions"), x.number("beta"));
    let (old, new) = (Categorical::new(x.tensor("logits_old")), Categorical::new(logits.clone()));
    let ratio = ratio(new.log_prob(&actions), old.log_prob(&actions));
    let surrogate = importance_weighted(ratio, x.tensor("advantages"));
    let loss = kl_penalised(surrogate.clone(), old.kl(&new), beta).mean().neg();
    answers()
        .with("grad_logits_new", gradient(&loss, &logits))
        .with("loss", loss)
        .with("surrogate", surrogate.mean())
        .with("kl_old_new", exact_kl_mean(&old, &new))
}

fn ppo_value_loss(x: &TensorInputs) -> Answers {
    let value = x.variable::<1>("values");
    let (old, target, range) = (x.tensor("old_values"), x.tensor("returns"), x.number("clip_range_vf"));
    let max = clipped_max(value.clone(), old.clone(), target.clone(), range).mean();
    let sb3 = clipped_sb3(value.clone(), old, target.clone(), range).mean();
    let plain = squared(value.clone(), target).mean();
    answers()
        .with("grad_clip_max", gradient(&max, &value))
        .with("loss_clip_max", max)
        .with("grad_sb3", gradient(&sb3, &value))
        .with("loss_sb3", sb3)
        .with("grad_mse_half", gradient(&plain, &value))
        .with("loss_mse_half", plain)
}

//! The DPO family: losses, implicit rewards, gradients by autodiff.

use burn::tensor::Tensor;
use rl_core::preference::{self, PairLogProb, accuracy, batch_kl, implicit_reward};

use crate::compare::{Answers, answers};
use crate::on_device::{TensorInputs, gradients};
use crate::suite::{Formula::Tensors, Formulas};

pub const FORMULAS: Formulas = &[
    ("dpo_sigmoid", Tensors(|x| family(x, |p, r, x| preference::dpo(p, r, beta(x))))),
    ("dpo_cdpo", Tensors(|x| family(x, |p, r, x| preference::cdpo(p, r, beta(x), smoothing(x))))),
    ("dpo_robust", Tensors(|x| family(x, |p, r, x| preference::robust(p, r, beta(x), smoothing(x))))),
    ("dpo_ipo", Tensors(|x| family(x, |p, r, x| preference::ipo(p, r, beta(x))))),
    ("dpo_ipo_norm", Tensors(|x| family(x, |p, r, x| preference::ipo_norm(p, r, lengths(x), beta(x))))),
    ("dpo_hinge", Tensors(|x| family(x, |p, r, x| preference::hinge(p, r, beta(x))))),
    ("dpo_sppo_hard", Tensors(|x| family(x, |p, r, x| preference::sppo_hard(p, r, beta(x))))),
    ("dpo_nca_pair", Tensors(|x| family(x, |p, r, x| preference::nca_pair(p, r, beta(x))))),
    ("dpo_bco_pair", Tensors(|x| family(x, |p, r, x| preference::bco_pair(p, r, beta(x))))),
    ("dpo_apo_zero", Tensors(|x| family(x, |p, r, x| preference::apo_zero(p, r, beta(x))))),
    ("dpo_apo_down", Tensors(|x| family(x, |p, r, x| preference::apo_down(p, r, beta(x))))),
    ("dpo_exo_pair", Tensors(|x| family(x, |p, r, x| preference::exo_pair(p, r, beta(x), smoothing(x))))),
    ("kto_pair", Tensors(kto_pair)),
];

fn beta(x: &TensorInputs) -> f64 {
    x.number("beta")
}

fn smoothing(x: &TensorInputs) -> f64 {
    x.number("label_smoothing")
}

fn lengths(x: &TensorInputs) -> PairLogProb {
    PairLogProb::new(x.tensor("chosen_lengths"), x.tensor("rejected_lengths"))
}

/// The policy's log-probabilities as variables, and the reference's.
fn pair(x: &TensorInputs) -> (PairLogProb, PairLogProb) {
    let policy = PairLogProb::new(x.variable("policy_chosen_logps"), x.variable("policy_rejected_logps"));
    (policy, PairLogProb::new(x.tensor("ref_chosen_logps"), x.tensor("ref_rejected_logps")))
}

/// The losses of one variant, their mean and its gradients, and what every variant shares.
fn family(x: &TensorInputs, loss: fn(PairLogProb, PairLogProb, &TensorInputs) -> Tensor<1>) -> Answers {
    let (policy, reference) = pair(x);
    let chosen_rewards = implicit_reward(policy.chosen.clone(), reference.chosen.clone(), beta(x));
    let rejected_rewards = implicit_reward(policy.rejected.clone(), reference.rejected.clone(), beta(x));
    with_losses(&policy, loss(policy.clone(), reference, x))
        .with("accuracy", accuracy(&chosen_rewards, &rejected_rewards))
        .with("margins", chosen_rewards.clone() - rejected_rewards.clone())
        .with("chosen_rewards", chosen_rewards)
        .with("rejected_rewards", rejected_rewards)
}

fn kto_pair(x: &TensorInputs) -> Answers {
    let (policy, reference) = pair(x);
    let log_ratio = policy.clone().log_ratio(reference.clone());
    with_losses(&policy, preference::kto_pair(policy.clone(), reference, beta(x)))
        .with("kl_chosen", batch_kl(&log_ratio.chosen))
        .with("kl_rejected", batch_kl(&log_ratio.rejected))
}

fn with_losses(policy: &PairLogProb, losses: Tensor<1>) -> Answers {
    let loss = losses.clone().mean();
    let [grad_chosen, grad_rejected] = gradients(&loss, [&policy.chosen, &policy.rejected]);
    answers()
        .with("losses", losses)
        .with("loss", loss)
        .with("grad_policy_chosen", grad_chosen)
        .with("grad_policy_rejected", grad_rejected)
}

//! KL from samples, and the controllers of its price.

use rl_core::KlController;
use rl_core::kl::{k1, k2, k3};
use rl_core::masked::masked_mean;

use crate::compare::{Answers, answers};
use crate::on_device::TensorInputs;
use crate::suite::{
    Formula::{HostDouble, Tensors},
    Formulas,
};
use crate::vectors::Inputs;

pub const FORMULAS: Formulas =
    &[("kl_estimators", Tensors(kl_estimators)), ("adaptive_kl", HostDouble(adaptive_kl))];

/// Samples come from q, so π_old is q and π_new is p.
fn kl_estimators(x: &TensorInputs) -> Answers {
    let log_ratio = x.tensor::<1>("logp") - x.tensor("logq");
    let mask = x.mask("mask", "logp");
    answers()
        .with("k1", k1(log_ratio.clone()))
        .with("k2", k2(log_ratio.clone()))
        .with("k3", k3(log_ratio.clone()))
        .with("k1_mean", masked_mean(k1(log_ratio.clone()), &mask))
        .with("k2_mean", masked_mean(k2(log_ratio.clone()), &mask))
        .with("k3_mean", masked_mean(k3(log_ratio), &mask))
}

/// β after each measured KL, without caps.
fn adaptive_kl(x: &Inputs) -> Answers {
    let (beta, target, min, max) = (x.number("beta0"), x.number("target"), 0.0, f64::INFINITY);
    let controller = match x.word("rule") {
        "schulman" => KlController::Schulman { beta, target, min, max },
        "band2" => KlController::Band { beta, target, min, max },
        "ziegler" => KlController::Proportional { beta, target, gain: x.number("k"), min, max },
        other => panic!("no controller follows the rule `{other}`"),
    };
    let betas = x.numbers::<f64>("kls").into_iter().scan(controller, |controller, kl| {
        *controller = controller.after(kl);
        Some(controller.beta())
    });
    answers().with("betas", betas.collect::<Vec<f64>>())
}

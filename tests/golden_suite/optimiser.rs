//! Adam and the global gradient norm, on flat parameters.

use rl_algos::adam::{Adam, AdamConfig, AdamKind};
use rl_models::flat_params;

use crate::compare::{Answers, answers};
use crate::on_device::TensorInputs;
use crate::suite::{Formula::Tensors, Formulas};

pub const FORMULAS: Formulas = &[("adam", Tensors(adam)), ("clip_grad_norm", Tensors(clip_grad_norm))];

/// The parameters after each step.
fn adam(x: &TensorInputs) -> Answers {
    let mut adam = Adam::new(AdamConfig {
        kind: if x.flag("decoupled") { AdamKind::Adamw } else { AdamKind::Adam },
        beta1: x.number("beta1"),
        beta2: x.number("beta2"),
        eps: x.number("eps"),
        weight_decay: x.number("weight_decay"),
        ..AdamConfig::default()
    });
    let grads = x.tensor::<2>("grads");
    let [steps, size] = grads.dims();
    let path = (0..steps).scan(x.tensor::<1>("param"), |theta, step| {
        let grad = grads.clone().narrow(0, step, 1).reshape([size]);
        *theta = adam.step(theta.clone(), grad, x.number("lr"));
        Some(theta.clone())
    });
    answers().with("params", path.collect::<Vec<_>>())
}

fn clip_grad_norm(x: &TensorInputs) -> Answers {
    let (clipped, norm) = flat_params::clip_grad_norm(x.flat("grads"), x.number("max_norm"));
    answers().with("clipped", clipped).with("total_norm", norm)
}

//! Categorical and Gaussian laws: log-probability, entropy, KL both ways.

use burn::tensor::Tensor;
use rl_core::dist::{Categorical, DiagGaussian, Distribution};

use crate::compare::{Answers, answers};
use crate::on_device::TensorInputs;
use crate::suite::{Formula::Tensors, Formulas};

pub const FORMULAS: Formulas = &[
    ("categorical", Tensors(categorical)),
    ("categorical_kl", Tensors(categorical_kl)),
    ("gaussian", Tensors(gaussian)),
    ("diag_gaussian", Tensors(diag_gaussian)),
];

fn categorical(x: &TensorInputs) -> Answers {
    let law = Categorical::new(x.tensor("logits"));
    answers()
        .with("log_softmax", law.log_probs())
        .with("probs", law.probs())
        .with("log_prob", law.log_prob(&x.indices("actions")))
        .with("entropy", law.entropy())
}

fn categorical_kl(x: &TensorInputs) -> Answers {
    let (p, q) = (Categorical::new(x.tensor("logits_p")), Categorical::new(x.tensor("logits_q")));
    answers().with("kl_pq", p.kl(&q)).with("kl_qp", q.kl(&p))
}

/// One dimension, given by its standard deviation.
fn gaussian(x: &TensorInputs) -> Answers {
    let column = |key: &str| -> Tensor<2> { x.tensor::<1>(key).unsqueeze_dim(1) };
    let p = DiagGaussian::new(column("mean_p"), column("std_p").log());
    let q = DiagGaussian::new(column("mean_q"), column("std_q").log());
    gaussians(&p, &q, &column("x"))
}

fn diag_gaussian(x: &TensorInputs) -> Answers {
    let p = DiagGaussian::new(x.tensor("mean_p"), x.tensor("log_std_p"));
    let q = DiagGaussian::new(x.tensor("mean_q"), x.tensor("log_std_q"));
    gaussians(&p, &q, &x.tensor("x"))
}

fn gaussians(p: &DiagGaussian, q: &DiagGaussian, event: &Tensor<2>) -> Answers {
    answers()
        .with("log_prob", p.log_prob(event))
        .with("entropy", p.entropy())
        .with("kl_pq", p.kl(q))
        .with("kl_qp", q.kl(p))
}

//! Whitening, and running means.

use rl_core::running::RunningMeanStd;
use rl_core::whiten::{Variance, moments, whiten, whiten_keeping_mean};

use crate::compare::{Answers, Scalar, answers};
use crate::suite::{Formula::Host, Formulas};
use crate::vectors::Inputs;

pub const FORMULAS: Formulas = &[
    ("whitening", Host(whitening::<f32>, whitening::<f64>)),
    ("running_mean_std", Host(running_mean_std::<f32>, running_mean_std::<f64>)),
];

/// Masked positions are not compared: the file holds zeros there whatever a library does.
fn whitening<F: Scalar>(x: &Inputs) -> Answers {
    let values = x.numbers::<F>("values");
    let mask = if x.has("mask") { x.flags("mask") } else { vec![true; values.len()] };
    let variance = if x.flag("unbiased") { Variance::Unbiased } else { Variance::Biased };
    let formula = if x.flag("shift_mean") { whiten } else { whiten_keeping_mean };
    let of = moments(&values, Some(&mask), variance).expect("the values have a variance");
    answers().with("mean", of.mean).with("var", of.variance).with_masked(
        "whitened",
        formula(&values, Some(&mask), variance),
        mask,
    )
}

/// Statistics after each batch, and rows normalised by the last.
fn running_mean_std<F: Scalar>(x: &Inputs) -> Answers {
    let dims = x.list("batches").shape[2];
    let mut stats = RunningMeanStd::with_prior_count(dims, x.number("epsilon"));
    let (mut means, mut variances, mut counts) = (vec![], vec![], vec![]);
    for batch in x.rows::<F>("batches") {
        stats.update(&batch);
        means.extend_from_slice(stats.mean());
        variances.extend_from_slice(stats.variance());
        counts.push(stats.count());
    }
    let mut rows = x.rows::<F>("query");
    rows.iter_mut().for_each(|row| stats.normalize(row, x.number("clip")));
    answers().with("means", means).with("vars", variances).with("counts", counts).with("normalized", rows)
}

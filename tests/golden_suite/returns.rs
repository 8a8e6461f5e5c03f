//! Returns and advantages along streams of time, and within groups.

use rl_core::End;
use rl_core::group;
use rl_core::real::Real;

use crate::compare::{Answers, Scalar, answers};
use crate::suite::{Formula::Host, Formulas};
use crate::vectors::{Inputs, transposed};

pub const FORMULAS: Formulas = &[
    ("gae", Host(gae::<f32>, gae::<f64>)),
    ("discounted_returns", Host(discounted_returns::<f32>, discounted_returns::<f64>)),
    ("group_advantages", Host(group_advantages::<f32>, group_advantages::<f64>)),
];

/// How each step of each stream ends, `[N][T]`; termination wins over a cut.
fn ends<F: Real>(x: &Inputs) -> Vec<Vec<End<F>>> {
    let (terminated, truncated) = (x.columns::<f64>("terminated"), x.columns::<f64>("truncated"));
    let end = |n: usize, t: usize, bootstrap: F| match (terminated[n][t] != 0.0, truncated[n][t] != 0.0) {
        (true, _) => End::Terminated,
        (false, true) => End::Truncated { bootstrap },
        (false, false) => End::Continues,
    };
    let stream =
        |(n, values): (usize, Vec<F>)| values.into_iter().enumerate().map(|(t, v)| end(n, t, v)).collect();
    x.columns("final_values").into_iter().enumerate().map(stream).collect()
}

fn gae<F: Scalar>(x: &Inputs) -> Answers {
    let (rewards, values, ends) = (x.columns::<F>("rewards"), x.columns("values"), ends(x));
    let (last_values, gamma, lambda) = (x.numbers("last_values"), x.real("gamma"), x.real("lambda"));
    let stream =
        |n: usize| rl_core::returns::gae(&rewards[n], &values[n], &ends[n], last_values[n], gamma, lambda);
    let (advantages, targets): (Vec<_>, Vec<_>) =
        (0..last_values.len()).map(|n| (stream(n).advantages, stream(n).targets)).unzip();
    answers().with("advantages", transposed(&advantages)).with("returns", transposed(&targets))
}

fn discounted_returns<F: Scalar>(x: &Inputs) -> Answers {
    let (rewards, ends) = (x.columns::<F>("rewards"), ends(x));
    let (last_values, gamma) = (x.numbers("last_values"), x.real("gamma"));
    let stream =
        |n: usize| rl_core::returns::discounted_returns(&rewards[n], &ends[n], last_values[n], gamma);
    let returns: Vec<Vec<F>> = (0..last_values.len()).map(stream).collect();
    answers().with("returns", transposed(&returns))
}

fn group_advantages<F: Scalar>(x: &Inputs) -> Answers {
    let (rewards, size) = (x.numbers::<F>("rewards"), x.list("rewards").shape[1]);
    answers()
        .with("grpo", group::grpo(&rewards, size))
        .with("grpo_no_scale", group::grpo_no_scale(&rewards, size))
        .with("rloo", group::rloo(&rewards, size))
}

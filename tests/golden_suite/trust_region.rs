//! The natural gradient in closed form, conjugate gradients, and the trust-region step.

use rl_core::conjugate_gradient::solve;
use rl_core::natural_gradient::{SoftmaxState, trust_region_step};
use rl_core::real::dot;

use crate::compare::{Answers, answers};
use crate::suite::{Formula::HostDouble, Formulas};
use crate::vectors::Inputs;

/// Iterative and ill-conditioned: the files' single-precision tolerances do not cover error growth inside them.
pub const FORMULAS: Formulas = &[
    ("natural_gradient_softmax", HostDouble(natural_gradient_softmax)),
    ("conjugate_gradient", HostDouble(conjugate_gradient)),
    ("trpo_step", HostDouble(trpo_step)),
];

fn natural_gradient_softmax(x: &Inputs) -> Answers {
    let (q, damping) = (x.rows::<f64>("q"), x.number("damping"));
    let weights = x.numbers("state_weights");
    let states =
        x.rows("logits").into_iter().zip(weights).map(|(logits, weight)| SoftmaxState::new(&logits, weight));
    let states: Vec<(SoftmaxState, Vec<f64>)> = states.zip(q).collect();
    let each = |formula: &dyn Fn(&SoftmaxState, &[f64]) -> Vec<f64>| -> Vec<f64> {
        states.iter().flat_map(|(state, q)| formula(state, q)).collect()
    };
    answers()
        .with("grad", each(&|state, q| state.gradient(q)))
        .with("fisher", each(&|state, _| state.fisher().concat()))
        .with("fisher_pinv", each(&|state, _| state.fisher_pinv().concat()))
        .with("natural_grad", each(&|state, q| state.natural_gradient(q)))
        .with("damped_natural_grad", each(&|state, q| state.damped_natural_gradient(q, damping)))
        .with("quad", states.iter().map(|(state, q)| state.quadratic(q)).sum::<f64>())
}

fn conjugate_gradient(x: &Inputs) -> Answers {
    let (a, b) = (x.rows("A"), x.numbers::<f64>("b"));
    let solution = solve(|v| product(&a, v), &b, x.whole("iters"), x.number("residual_tol"));
    answers()
        .with("x_cg", solution.x)
        .with("iterations_done", solution.iterations)
        .with("x_exact", exact_solution(&a, &b))
}

fn trpo_step(x: &Inputs) -> Answers {
    let (mut h, g) = (x.rows("F"), x.numbers::<f64>("g"));
    for (i, row) in h.iter_mut().enumerate() {
        row[i] += x.number("damping"); // H = F + λI
    }
    let direction = exact_solution(&h, &g);
    let step = trust_region_step(&g, &direction, x.number("delta"));
    answers()
        .with("shs", dot(&g, &direction))
        .with("direction", direction)
        .with("step_size", step.scale)
        .with("predicted_improvement", step.predicted_improvement)
        .with("quad_kl", 0.5 * dot(&step.step, &product(&h, &step.step)))
        .with("step", step.step)
}

/// `A⁻¹·b` by conjugate gradients, started again on what rounding left.
fn exact_solution(a: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x = vec![0.0; b.len()];
    for _ in 0..4 {
        let residual: Vec<f64> = b.iter().zip(product(a, &x)).map(|(b, ax)| b - ax).collect();
        let correction = solve(|v| product(a, v), &residual, 4 * b.len(), 0.0);
        x.iter_mut().zip(correction.x).for_each(|(x, more)| *x += more);
    }
    x
}

fn product(a: &[Vec<f64>], v: &[f64]) -> Vec<f64> {
    a.iter().map(|row| dot(row, v)).collect()
}

//! Laws of the natural gradient: its step, and the exact softmax case.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::conjugate_gradient::solve;
use rl_core::natural_gradient::{SoftmaxState, trust_region_step};
use rl_core::real::dot;
use rl_core::tilt::kl;

use crate::conjugate_gradient::{system, times};
use crate::{assert_all_near, assert_near};

/// A state with up to six actions (some forbidden), its visitation weight, and the value of each action.
fn state() -> impl Strategy<Value = (Vec<f64>, f64, Vec<f64>)> {
    let logit = prop_oneof![4 => -2.0..2.0, 1 => Just(f64::NEG_INFINITY)];
    (vec((logit, -5.0..5.0), 0..6), -2.0..2.0, 0.05..2.0).prop_map(|(actions, allowed, weight)| {
        let (mut logits, mut q): (Vec<f64>, Vec<f64>) = actions.into_iter().unzip();
        logits.push(allowed);
        q.push(1.0);
        (logits, weight, q)
    })
}

proptest! {
    #[test]
    fn a_step_costs_exactly_the_kl_that_was_allowed((f, g) in system(), delta in 1e-4..1.0) {
        prop_assume!(dot(&g, &g) > 1e-6);
        let x = solve(|v: &[f64]| times(&f, v), &g, 50, 1e-28).x;
        let step = trust_region_step(&g, &x, delta);
        assert_near(0.5 * dot(&step.step, &times(&f, &step.step)) / delta, 1.0, 1e-6);
        assert_near(step.predicted_improvement, dot(&g, &step.step), 1e-9);
    }

    #[test]
    fn no_other_step_of_the_same_cost_promises_more(
        (f, g) in system(),
        delta in 1e-4..1.0,
        other in vec(-1.0..1.0, 10),
    ) {
        let other = &other[..g.len()];
        let cost = 0.5 * dot(other, &times(&f, other));
        prop_assume!(cost > 1e-9);
        let x = solve(|v: &[f64]| times(&f, v), &g, 50, 1e-28).x;
        let promised = trust_region_step(&g, &x, delta).predicted_improvement;
        let same_cost = (delta / cost).sqrt() * dot(&g, other);
        prop_assert!(same_cost <= promised + 1e-6 * (1.0 + promised), "{same_cost} beats {promised}");
    }

    #[test]
    fn the_fisher_matrix_is_symmetric_and_does_not_see_a_constant((logits, weight, _) in state()) {
        let f = SoftmaxState::new(&logits, weight).fisher();
        assert_all_near(&times(&f, &vec![1.0; f.len()]), &vec![0.0; f.len()], 1e-12);
        for (i, row) in f.iter().enumerate() {
            let column: Vec<f64> = f.iter().map(|row| row[i]).collect();
            prop_assert_eq!(row, &column);
        }
    }

    #[test]
    fn the_natural_gradient_explains_the_gradient((logits, weight, q) in state()) {
        let state = SoftmaxState::new(&logits, weight);
        assert_all_near(&times(&state.fisher(), &state.natural_gradient(&q)), &state.gradient(&q), 1e-10);
        assert_all_near(&times(&state.fisher_pinv(), &state.gradient(&q)), &state.natural_gradient(&q), 1e-8);
        assert_near(dot(&state.gradient(&q), &state.natural_gradient(&q)), state.quadratic(&q), 1e-9);
    }

    #[test]
    fn conjugate_gradients_find_the_damped_natural_gradient((logits, weight, q) in state(), damping in 0.01..1.0) {
        let state = SoftmaxState::new(&logits, weight);
        let f = state.fisher();
        let damped = |v: &[f64]| times(&f, v).iter().zip(v).map(|(fv, v)| fv + damping * v).collect();
        let x = solve(damped, &state.gradient(&q), 50, 1e-28).x;
        assert_all_near(&state.damped_natural_gradient(&q, damping), &x, 1e-8);
    }

    #[test]
    fn half_the_fisher_form_is_the_kl_of_a_small_change((logits, _, dz) in state()) {
        let state = SoftmaxState::new(&logits, 1.0);
        let small: Vec<f64> = dz.iter().map(|dz| 1e-3 * dz).collect();
        let moved: Vec<f64> = logits.iter().zip(&small).map(|(z, dz)| z + dz).collect();
        let exact = kl(state.probs(), SoftmaxState::new(&moved, 1.0).probs());
        let form = 0.5 * dot(&small, &times(&state.fisher(), &small));
        prop_assert!((exact - form).abs() <= 0.02 * form + 1e-13, "{exact} and {form}");
    }
}

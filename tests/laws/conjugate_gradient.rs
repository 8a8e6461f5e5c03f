//! Laws of conjugate gradients on random symmetric positive definite systems.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::conjugate_gradient::{Stop, solve};
use rl_core::real::dot;

use crate::{assert_all_near, assert_near};

/// A matrix by rows.
pub type Matrix = Vec<Vec<f64>>;

/// `A·v`
pub fn times(a: &Matrix, v: &[f64]) -> Vec<f64> {
    a.iter().map(|row| dot(row, v)).collect()
}

/// `M·Mᵀ + I` for a random `M`, with a vector: sizes 1 to 10, condition numbers up to about 100.
pub fn system() -> impl Strategy<Value = (Matrix, Vec<f64>)> {
    (1usize..=10).prop_flat_map(|n| {
        let matrix = vec(vec(-1.0..1.0, n), n).prop_map(move |m| {
            let entry = |i: usize, j: usize| dot(&m[i], &m[j]) + if i == j { 1.0 } else { 0.0 };
            (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
        });
        (matrix, vec(-5.0..5.0, n))
    })
}

proptest! {
    #[test]
    fn as_many_iterations_as_unknowns_solve_any_positive_definite_system((a, b) in system()) {
        let solution = solve(|v: &[f64]| times(&a, v), &b, b.len(), 1e-24);
        assert_all_near(&times(&a, &solution.x), &b, 1e-6);
        prop_assert!(solution.iterations <= b.len());
    }

    #[test]
    fn a_zero_right_side_gives_zero_without_a_product((a, b) in system()) {
        let solution = solve(|_: &[f64]| panic!("no product is needed for {a:?}"), &vec![0.0; b.len()], 10, 1e-10);
        prop_assert_eq!(solution.x, vec![0.0; b.len()]);
        prop_assert_eq!(solution.stop, Stop::Converged);
    }

    #[test]
    fn the_solution_scales_with_the_right_side((a, b) in system(), factor in 0.5..4.0) {
        let scaled: Vec<f64> = b.iter().map(|b| factor * b).collect();
        let one = solve(|v: &[f64]| times(&a, v), &b, 3, 0.0).x;
        let other = solve(|v: &[f64]| times(&a, v), &scaled, 3, 0.0).x;
        assert_all_near(&other, &one.iter().map(|x| factor * x).collect::<Vec<_>>(), 1e-6);
    }

    #[test]
    fn every_iteration_lowers_the_quadratic((a, b) in system()) {
        let mut last = 0.0; // ½·xᵀAx − bᵀx at x = 0
        for iterations in 1..=b.len() {
            let x = solve(|v: &[f64]| times(&a, v), &b, iterations, 1e-24).x;
            let quadratic = 0.5 * dot(&x, &times(&a, &x)) - dot(&b, &x);
            prop_assert!(quadratic <= last + 1e-9, "{quadratic} after {last}");
            last = quadratic;
        }
    }

    #[test]
    fn the_residual_reported_is_the_true_one((a, b) in system(), iterations in 0usize..6) {
        let solution = solve(|v: &[f64]| times(&a, v), &b, iterations, 1e-24);
        let rest: Vec<f64> = b.iter().zip(times(&a, &solution.x)).map(|(b, ax)| b - ax).collect();
        assert_near(solution.residual, dot(&rest, &rest), 1e-9);
    }

    #[test]
    fn every_iterate_points_uphill((a, b) in system(), iterations in 1usize..6) {
        prop_assume!(dot(&b, &b) > 1e-6);
        let solution = solve(|v: &[f64]| times(&a, v), &b, iterations, 1e-24);
        prop_assert!(dot(&b, &solution.x) > 0.0);
    }
}

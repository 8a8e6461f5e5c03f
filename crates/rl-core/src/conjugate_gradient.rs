//! Conjugate gradients: solves `A·x = b` for a symmetric positive definite `A` known only by its products.
//!
//! For the natural gradient `A` is the (damped) Fisher matrix, far too big to be written down, while `A·v` costs two
//! passes through the network.

use crate::real::{Real, dot};

/// Where the iteration got to, and why it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution<F> {
    /// The approximate solution, `[P]`.
    pub x: Vec<F>,
    /// Iterations done: products taken that moved `x`.
    pub iterations: usize,
    /// `‖b − A·x‖²`, as the recursion tracks it.
    pub residual: F,
    /// Why it ended.
    pub stop: Stop,
}

/// Why the iteration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The squared residual fell below the tolerance.
    Converged,
    /// All iterations were spent.
    Spent,
    /// A direction had `pᵀA·p ≤ 0` or not finite: `A` is not positive definite there (too little damping), and `x` is
    /// what the iterations before gave.
    NotPositiveDefinite,
}

/// Solves `A·x = b`, starting from `x = 0`.
///
/// `α = rᵀr/pᵀAp`,   `x ← x + α·p`,   `r ← r − α·Ap`,   `p ← r + (r'ᵀr'/rᵀr)·p`.
/// Hestenes & Stiefel 1952; Shewchuk 1994, §8
///
/// Ends after `max_iterations`, or as soon as `rᵀr < tolerance`, which is checked before the first iteration and after
/// each. `b = 0` gives `x = 0`. In exact arithmetic `P` iterations suffice.
///
/// # Shapes
/// `b: [P]`, `product: [P] → [P]`; another length panics.
///
/// ```
/// use rl_core::conjugate_gradient::solve;
/// let diagonal = |v: &[f64]| vec![2.0 * v[0], 4.0 * v[1]];
/// let solution = solve(diagonal, &[2.0, 8.0], 10, 1e-12);
/// assert!((solution.x[0] - 1.0).abs() < 1e-9 && (solution.x[1] - 2.0).abs() < 1e-9);
/// ```
pub fn solve<F: Real>(
    mut product: impl FnMut(&[F]) -> Vec<F>,
    b: &[F],
    max_iterations: usize,
    tolerance: F,
) -> Solution<F> {
    let mut x = vec![F::ZERO; b.len()];
    let mut r = b.to_vec();
    let mut p = b.to_vec();
    let mut rr = dot(&r, &r);
    let mut iterations = 0;
    let stop = loop {
        if rr < tolerance || rr == F::ZERO {
            break Stop::Converged;
        }
        if iterations == max_iterations {
            break Stop::Spent;
        }
        let ap = product(&p);
        let curvature = dot(&p, &ap);
        let alpha = rr / curvature;
        let positive = curvature > F::ZERO && curvature.is_finite(); // false for NaN, too
        if !(positive && alpha.is_finite()) {
            break Stop::NotPositiveDefinite;
        }
        add_scaled(&mut x, alpha, &p);
        add_scaled(&mut r, -alpha, &ap);
        let rr_next = dot(&r, &r);
        let momentum = rr_next / rr;
        for (p, &r) in p.iter_mut().zip(&r) {
            *p = r + momentum * *p;
        }
        rr = rr_next;
        iterations += 1;
    };
    Solution { x, iterations, residual: rr, stop }
}

/// `y ← y + a·x`
fn add_scaled<F: Real>(y: &mut [F], a: F, x: &[F]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_right_side_has_a_zero_solution() {
        for tolerance in [1e-10, 0.0] {
            let solution = solve(|v: &[f64]| v.to_vec(), &[0.0; 4], 10, tolerance);
            assert_eq!((solution.x, solution.iterations, solution.stop), (vec![0.0; 4], 0, Stop::Converged));
        }
    }

    #[test]
    fn the_identity_takes_one_iteration() {
        let solution = solve(|v: &[f32]| v.to_vec(), &[3.0, -4.0], 10, 1e-10);
        assert_eq!((solution.x, solution.iterations), (vec![3.0, -4.0], 1));
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_reported_and_not_followed() {
        for broken in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
            let solution = solve(|v: &[f64]| v.iter().map(|v| broken * v).collect(), &[1.0], 10, 1e-10);
            assert_eq!((solution.x, solution.iterations), (vec![0.0], 0), "A = {broken}");
            assert_eq!(solution.stop, Stop::NotPositiveDefinite, "A = {broken}");
        }
    }

    #[test]
    fn the_iteration_limit_is_kept() {
        let solution = solve(|v: &[f64]| vec![v[0], 100.0 * v[1]], &[1.0, 1.0], 1, 1e-10);
        assert_eq!((solution.iterations, solution.stop), (1, Stop::Spent));
    }
}

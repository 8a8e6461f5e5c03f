//! The natural gradient: the closed-form trust-region step, and the exact case of a softmax policy in one state.
//!
//! The exact case is the oracle: with one logit per state and action the Fisher matrix can be written down and
//! (pseudo-)inverted by hand, and the natural gradient is the advantage itself.   Kakade 2001, theorem 1
//!
//! ```
//! use rl_core::natural_gradient::{SoftmaxState, trust_region_step};
//!
//! // In the plain gradient a probable action drowns a better one; the natural gradient is the advantage alone.
//! let state = SoftmaxState::new(&[4.0, 0.0], 1.0);
//! let natural = state.natural_gradient(&[1.0, 2.0]);
//! assert!((natural[1] - natural[0] - 1.0).abs() < 1e-9);
//! let step = trust_region_step(&state.gradient(&[1.0, 2.0]), &natural, 0.01);
//! assert!((step.scale.powi(2) * state.quadratic(&[1.0, 2.0]) / 2.0 - 0.01).abs() < 1e-12); // ½·ΔᵀFΔ = δ
//! ```

use crate::real::{Real, dot};

/// The step that the quadratic model of a trust region allows.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustRegionStep<F> {
    /// `scale·x`, `[P]`: add it to the parameters (ascent).
    pub step: Vec<F>,
    /// `√(2δ/gᵀx)`, or 0 where there is no way up.
    pub scale: F,
    /// `gᵀ·step = √(2δ·gᵀx)`: the improvement that the linear model promises.
    pub predicted_improvement: F,
}

/// The longest step along the natural gradient that costs `delta` nats of KL in the quadratic model.
///
/// `Δ = √(2δ/gᵀx)·x` with `x = F⁻¹g`, since `½·ΔᵀFΔ = δ`.   Schulman 2015 (TRPO), appendix C
///
/// `gᵀx = xᵀFx` costs no further product. With damping, `F + λI` takes the place of `F` throughout. If `gᵀx` is not
/// positive (a zero gradient, or a direction spoilt by rounding) the step is zero.
///
/// # Shapes
/// `gradient: [P]` (of the objective to be *maximised*), `direction: [P]` (`x`); unequal lengths panic. `delta` in nats.
pub fn trust_region_step<F: Real>(gradient: &[F], direction: &[F], delta: F) -> TrustRegionStep<F> {
    let slope = dot(gradient, direction);
    if !(slope > F::ZERO && slope.is_finite()) {
        return TrustRegionStep {
            step: vec![F::ZERO; direction.len()],
            scale: F::ZERO,
            predicted_improvement: F::ZERO,
        };
    }
    let scale = ((delta + delta) / slope).sqrt();
    let step: Vec<F> = direction.iter().map(|&x| scale * x).collect();
    TrustRegionStep { step, scale, predicted_improvement: scale * slope }
}

/// One state of a tabular softmax policy, visited with some weight: everything about it in closed form.
///
/// `π_k = exp(z_k)/Σ_j exp(z_j)`; a logit of `−∞` forbids its action (probability 0, all derivatives 0).
#[derive(Debug, Clone, PartialEq)]
pub struct SoftmaxState {
    probs: Vec<f64>,
    weight: f64,
}

impl SoftmaxState {
    /// The policy with these logits, `[A]`, in a state of visitation weight `weight` (≥ 0). Panics if no action is
    /// allowed or the weight is negative.
    pub fn new(logits: &[f64], weight: f64) -> Self {
        assert!(weight >= 0.0, "a visitation weight is not negative, but this is {weight}");
        let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(max > f64::NEG_INFINITY, "a state must allow at least one action");
        let powers: Vec<f64> = logits.iter().map(|z| (z - max).exp()).collect();
        let sum: f64 = powers.iter().sum();
        Self { probs: powers.iter().map(|p| p / sum).collect(), weight }
    }

    /// `π`, `[A]`.
    pub fn probs(&self) -> &[f64] {
        &self.probs
    }

    /// `V = Σ_k π_k·q_k`. A forbidden action's `q` is not read.
    pub fn value(&self, q: &[f64]) -> f64 {
        assert_eq!(q.len(), self.probs.len(), "one value per action");
        self.allowed().map(|(k, p)| p * q[k]).sum()
    }

    /// The policy gradient `w·π_k·(q_k − V)`, `[A]`.   Sutton 2000, theorem 1
    pub fn gradient(&self, q: &[f64]) -> Vec<f64> {
        let value = self.value(q);
        self.per_allowed(|k, p| self.weight * p * (q[k] - value))
    }

    /// The Fisher matrix `w·(diag(π) − π·πᵀ)`, `[A, A]` by rows.
    pub fn fisher(&self) -> Vec<Vec<f64>> {
        let entry = |i: usize, j: usize| {
            // The diagonal as π·(1 − π), with 1 − π summed from the others: no cancellation in a peaked policy.
            let others = || self.probs.iter().enumerate().filter(|&(k, _)| k != i).map(|(_, p)| p);
            let factor = if i == j { others().sum::<f64>() } else { -self.probs[j] };
            self.weight * (self.probs[i] * factor)
        };
        self.square(entry)
    }

    /// The Moore–Penrose inverse of [`SoftmaxState::fisher`], `[A, A]` by rows.
    ///
    /// `F⁺ = C·diag(1/π)·C/w`, where `C = I − 11ᵀ/n` takes the mean off the `n` allowed actions: `F` does not see a
    /// constant added to all logits. Rows of forbidden actions are 0; so is everything at weight 0.
    pub fn fisher_pinv(&self) -> Vec<Vec<f64>> {
        let n = self.allowed().count() as f64;
        let total: f64 = self.allowed().map(|(_, p)| 1.0 / p).sum();
        self.square(|i, j| {
            let (p, q) = (self.probs[i], self.probs[j]);
            if p == 0.0 || q == 0.0 || self.weight == 0.0 {
                return 0.0;
            }
            let diagonal = if i == j { 1.0 / p } else { 0.0 };
            (diagonal - (1.0 / p + 1.0 / q) / n + total / (n * n)) / self.weight
        })
    }

    /// The natural gradient `F⁺·g`, `[A]`: `q` less its plain mean over the allowed actions; 0 at weight 0.
    ///
    /// This is the advantage `q − V` up to a constant, which a softmax does not see.   Kakade 2001, theorem 1
    pub fn natural_gradient(&self, q: &[f64]) -> Vec<f64> {
        assert_eq!(q.len(), self.probs.len(), "one value per action");
        let n = self.allowed().count() as f64;
        let mean = self.allowed().map(|(k, _)| q[k]).sum::<f64>() / n;
        self.per_allowed(|k, _| if self.weight == 0.0 { 0.0 } else { q[k] - mean })
    }

    /// The damped natural gradient `(F + λI)⁻¹·g`, `[A]`, for `λ > 0`.
    ///
    /// With `d = w·π + λ` (Sherman–Morrison): `x = g/d + w·(π/d)·(Σ π·g/d)/(Σ π·λ/d)`.
    pub fn damped_natural_gradient(&self, q: &[f64], damping: f64) -> Vec<f64> {
        assert!(damping > 0.0, "damping must be positive, but is {damping}");
        let gradient = self.gradient(q);
        let over_d = |x: f64, p: f64| x / (self.weight * p + damping);
        let along: f64 = self.allowed().map(|(k, p)| over_d(p * gradient[k], p)).sum();
        let rest: f64 = self.allowed().map(|(_, p)| over_d(p * damping, p)).sum();
        self.per_allowed(|k, p| over_d(gradient[k], p) + self.weight * over_d(p, p) * along / rest)
    }

    /// `gᵀ·F⁺·g = w·Var_π(q)`: the squared length of the gradient in the Fisher metric.
    pub fn quadratic(&self, q: &[f64]) -> f64 {
        let value = self.value(q);
        self.weight * self.allowed().map(|(k, p)| p * (q[k] - value).powi(2)).sum::<f64>()
    }

    fn allowed(&self) -> impl Iterator<Item = (usize, f64)> {
        self.probs.iter().copied().enumerate().filter(|&(_, p)| p > 0.0)
    }

    fn per_allowed(&self, formula: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.probs.len()];
        self.allowed().for_each(|(k, p)| out[k] = formula(k, p));
        out
    }

    fn square(&self, entry: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
        let actions = self.probs.len();
        (0..actions).map(|i| (0..actions).map(|j| entry(i, j)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_costs_exactly_the_allowed_kl() {
        // F = diag(2, 8), g = (2, 8): x = (1, 1), gᵀx = 10, √(2·0.05/10) = 0.1.
        let got = trust_region_step(&[2.0, 8.0], &[1.0, 1.0], 0.05_f64);
        assert!((got.scale - 0.1).abs() < 1e-12 && (got.predicted_improvement - 1.0).abs() < 1e-12);
        let quadratic = 0.5 * (2.0 * got.step[0].powi(2) + 8.0 * got.step[1].powi(2));
        assert!((quadratic - 0.05).abs() < 1e-12);
    }

    #[test]
    fn without_a_way_up_the_step_is_zero() {
        for (gradient, direction) in [(0.0_f32, 0.0), (1.0, -1.0), (f32::NAN, 1.0)] {
            let got = trust_region_step(&[gradient], &[direction], 0.01);
            assert_eq!((got.step, got.scale), (vec![0.0], 0.0));
        }
    }

    #[test]
    fn the_natural_gradient_is_the_advantage_up_to_a_constant() {
        let state = SoftmaxState::new(&[0.3, -1.0, 2.0], 0.7);
        let q = [1.0, 4.0, -2.0];
        assert_eq!(state.natural_gradient(&q), [0.0, 3.0, -3.0]);
    }

    #[test]
    fn a_forbidden_action_has_no_part_in_anything() {
        let state = SoftmaxState::new(&[0.0, f64::NEG_INFINITY, 0.0], 1.0);
        let q = [1.0, f64::NAN, 3.0];
        assert_eq!(state.probs(), [0.5, 0.0, 0.5]);
        assert_eq!(state.gradient(&q), [-0.5, 0.0, 0.5]);
        assert_eq!(state.natural_gradient(&q), [-1.0, 0.0, 1.0]);
        assert_eq!(state.quadratic(&q), 1.0);
        assert_eq!(state.fisher_pinv()[1], [0.0; 3]);
    }

    #[test]
    #[should_panic(expected = "a state must allow at least one action")]
    fn a_state_without_actions_is_a_bug() {
        SoftmaxState::new(&[f64::NEG_INFINITY; 2], 1.0);
    }
}

//! What a policy gradient maximises: one surrogate objective per function, per decision.
//!
//! Everything here is `[N]` → `[N]` and is to be **maximised**; a loss is its negative mean. The advantage is a
//! constant of the objective, and the ratio `ρ = π_θ(a|s)/π_old(a|s)` comes from differences of log-probabilities,
//! never from a quotient of probabilities.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rl_core::surrogate::clipped;
//!
//! let device = Device::flex();
//! let ratio = Tensor::from_data([1.5, 0.5, 0.5], &device);
//! let advantage = Tensor::from_data([2.0, 2.0, -2.0], &device);
//! let objective: Vec<f32> = clipped(ratio, advantage, 0.2).into_data().try_to_vec().unwrap();
//! for (got, by_hand) in objective.iter().zip([2.4, 1.0, -1.6]) {
//!     assert!((got - by_hand).abs() < 1e-6);
//! }
//! ```

use burn::tensor::Tensor;

use crate::hand_gradient::constant;

/// Log-ratios above this are cut before they are exponentiated: `e⁸⁰ ≈ 5.5e34` still leaves room in `f32` for the
/// advantage and the sum over a batch. No policy that learns has such a ratio; one that explodes stays finite.
pub const LOG_RATIO_MAX: f64 = 80.0;

/// The importance ratio `ρ = π_θ(a|s)/π_old(a|s) = exp(log π_θ − log π_old)`.
///
/// Exactly 1 where the two log-probabilities are equal. At log-ratios above [`LOG_RATIO_MAX`] it stays at `e⁸⁰`, with
/// gradient 0.
///
/// # Shapes
/// `log_prob: [N]`, `log_prob_old: [N]` → `[N]`
#[must_use]
pub fn ratio(log_prob: Tensor<1>, log_prob_old: Tensor<1>) -> Tensor<1> {
    ratio_of(log_prob - log_prob_old)
}

/// [`ratio`] from the log-ratio `log π_θ − log π_old`.
///
/// # Shapes
/// `log_ratio: [N]` → `[N]`
#[must_use]
pub fn ratio_of(log_ratio: Tensor<1>) -> Tensor<1> {
    log_ratio.clamp_max(LOG_RATIO_MAX).exp()
}

/// The score-function surrogate `log π(a|s)·Â`, whose gradient is the policy gradient `∇log π(a|s)·Â`.   Williams 1992
///
/// # Shapes
/// `log_prob: [N]`, `advantage: [N]` → `[N]`
#[must_use]
pub fn score_function(log_prob: Tensor<1>, advantage: Tensor<1>) -> Tensor<1> {
    log_prob * advantage
}

/// The importance-weighted surrogate `ρ·Â` ("CPI").   Schulman 2017 (PPO), eq. 6
///
/// # Shapes
/// `ratio: [N]`, `advantage: [N]` → `[N]`
#[must_use]
pub fn importance_weighted(ratio: Tensor<1>, advantage: Tensor<1>) -> Tensor<1> {
    ratio * advantage
}

/// The clipped surrogate `min(ρ·Â, clip(ρ, 1−ε, 1+ε)·Â)`.   Schulman 2017 (PPO), eq. 7
///
/// See [`clipped_between`] for the gradient.
///
/// # Shapes
/// `ratio: [N]`, `advantage: [N]` → `[N]`
#[must_use]
pub fn clipped(ratio: Tensor<1>, advantage: Tensor<1>, clip: f64) -> Tensor<1> {
    clipped_between(ratio, advantage, clip, clip)
}

/// The clipped surrogate with unequal bounds, `min(ρ·Â, clip(ρ, 1−ε_low, 1+ε_high)·Â)`.   Yu 2025 (DAPO), Clip-Higher
///
/// The minimum is the pessimistic side, so it is computed as what it amounts to:
///
/// ```text
/// Â·min(ρ, 1+ε_high)   where Â ≥ 0,        Â·max(ρ, 1−ε_low)   where Â < 0
/// ```
///
/// The gradient is that of ρ·Â until ρ has passed the bound on its own side, and 0 beyond; at a tie it is that of ρ·Â.
///
/// # Shapes
/// `ratio: [N]`, `advantage: [N]` → `[N]`
#[must_use]
pub fn clipped_between(ratio: Tensor<1>, advantage: Tensor<1>, low: f64, high: f64) -> Tensor<1> {
    let sign = constant(&advantage).sign();
    let bound = sign.full_like(1.0 - low).mask_fill(sign.clone().greater_equal_scalar(0.0), 1.0 + high);
    let beyond = ((constant(&ratio) - bound.clone()) * sign).greater_scalar(0.0);
    ratio.mask_where(beyond, bound) * advantage
}

/// The KL-penalised surrogate `L − β·KL(π_old ‖ π_θ)`: the penalty is **subtracted** from what is maximised.
///   Schulman 2017 (PPO), eq. 8
///
/// `surrogate` may be [`importance_weighted`] (PPO's variant) or [`clipped`] (both at once). `kl` is the exact
/// divergence, or an estimator with a gradient.
///
/// # Shapes
/// `surrogate: [N]`, `kl: [N]` → `[N]`
#[must_use]
pub fn kl_penalised(surrogate: Tensor<1>, kl: Tensor<1>, beta: f64) -> Tensor<1> {
    surrogate - kl * beta
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// Value and gradient in the first argument of `f(ratio, advantage)`.
    fn at(f: impl Fn(Tensor<1>, Tensor<1>) -> Tensor<1>, ratio: f32, advantage: f32) -> (f32, f32) {
        let device = Device::flex();
        let x = Tensor::<1>::from_data([ratio], &device).autodiff().require_grad();
        let y = f(x.clone(), Tensor::from_data([advantage], &device));
        let gradient = x.grad(&y.backward()).unwrap().into_scalar();
        (y.into_scalar(), gradient)
    }

    fn clip_by_a_fifth(ratio: Tensor<1>, advantage: Tensor<1>) -> Tensor<1> {
        clipped(ratio, advantage, 0.2)
    }

    #[test]
    fn the_clip_takes_the_pessimistic_side() {
        // details.md P8, as objectives (the losses are their negatives).
        assert_eq!(at(clip_by_a_fifth, 1.5, 1.0), (1.2, 0.0));
        assert_eq!(at(clip_by_a_fifth, 1.5, -1.0), (-1.5, -1.0));
        assert_eq!(at(clip_by_a_fifth, 0.5, 1.0), (0.5, 1.0));
        assert_eq!(at(clip_by_a_fifth, 0.5, -1.0), (-0.8, 0.0));
    }

    #[test]
    fn at_a_tie_the_gradient_is_that_of_the_unclipped_term() {
        assert_eq!(at(clip_by_a_fifth, 1.2, 2.0), (2.4, 2.0));
        assert_eq!(at(clip_by_a_fifth, 0.8, -2.0), (-1.6, -2.0));
        assert_eq!(at(clip_by_a_fifth, 5.0, 0.0), (0.0, 0.0));
    }

    #[test]
    fn log_ratios_of_ten_thousand_stay_finite() {
        let surrogate = |log_ratio: Tensor<1>, advantage| clipped(ratio_of(log_ratio), advantage, 0.2);
        for (log_ratio, advantage) in [(1e4, 1.0), (1e4, -1e3), (-1e4, 1.0), (-1e4, -1e3)] {
            let (value, gradient) = at(surrogate, log_ratio, advantage);
            assert!(value.is_finite() && gradient.is_finite(), "{log_ratio} {advantage}: {value} {gradient}");
        }
    }

    #[test]
    fn the_penalty_is_subtracted_from_what_is_maximised() {
        let f = |surrogate, kl| kl_penalised(surrogate, kl, 0.5);
        assert_eq!(at(f, 2.0, 3.0), (0.5, 1.0));
    }
}

//! Estimators of a KL divergence from samples, the exact one, and which way round each of them points.
//!
//! `KL(P ‖ Q) = E_{x∼P} log(P(x)/Q(x))`: the samples come from the **first** argument. The functions [`k1`], [`k2`]
//! and [`k3`] take `r = log π_new − log π_old` at samples of π_old and estimate `KL(π_old ‖ π_new)`. Who is *old* and
//! who *new* depends on the question:
//!
//! | question | sampled from (old) | compared with (new) | estimates | where |
//! |---|---|---|---|---|
//! | how far has this update moved the policy? | behaviour policy | current policy | KL(π_old ‖ π_θ) | TRPO, PPO's stop rule |
//! | how far is the policy from its reference? | policy | reference | KL(π_θ ‖ π_ref) | RLHF reward and controller |
//!
//! | estimator | formula | bias | variance | sign of one sample |
//! |---|---|---|---|---|
//! | k1 | −r | none | high | any |
//! | k2 | ½r² | second order in the distance | low | ≥ 0 |
//! | k3 | eʳ − 1 − r | none | low | ≥ 0 |
//!
//! **As a loss they are not interchangeable.** Differentiated in the sampling policy with its samples held fixed, on
//! policy and in expectation, k1 yields 0, k2 yields ∇KL(π ‖ π_ref), and k3 yields ∇KL(π_ref ‖ π), the other
//! direction. [`KlEstimator::loss`] refuses k1. The law suite checks the three by enumeration.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rl_core::dist::{Categorical, Distribution};
//! use rl_core::kl::{k1, k3};
//!
//! let device = Device::flex();
//! let old = Categorical::new(Tensor::from_data([[0.0, 1.0, -0.5]], &device));
//! let new = Categorical::new(Tensor::from_data([[0.4, 0.2, 0.0]], &device));
//! let exact: f32 = old.kl(&new).into_scalar(); // KL(π_old ‖ π_new)
//! // What the estimators expect, by enumeration of the three actions.
//! let log_ratio = (new.log_probs() - old.log_probs()).reshape([3]);
//! let weight = old.probs().reshape([3]);
//! for estimator in [k1, k3] {
//!     let expected: f32 = (estimator(log_ratio.clone()) * weight.clone()).sum().into_scalar();
//!     assert!((expected - exact).abs() < 1e-6);
//! }
//! ```

use burn::tensor::{Bool, Tensor};
use serde::{Deserialize, Serialize};

use crate::CoreError;
use crate::dist::Distribution;
use crate::hand_gradient::{constant, with_slope};
use crate::masked::masked_mean;
use crate::surrogate::LOG_RATIO_MAX;

/// The plain unbiased estimate of KL(π_old ‖ π_new) from samples of π_old, in nats; single samples may be negative.
///
/// `k1 = −r`, `r = log π_new − log π_old`.   Schulman, *Approximating KL Divergence*, 2020
///
/// # Shapes
/// `log_ratio: [N]` → `[N]`
#[must_use]
pub fn k1(log_ratio: Tensor<1>) -> Tensor<1> {
    log_ratio.neg()
}

/// A non-negative, slightly biased estimate of KL(π_old ‖ π_new) from samples of π_old, in nats.
///
/// `k2 = ½·r²`, `r = log π_new − log π_old`.   Schulman 2020
///
/// # Shapes
/// `log_ratio: [N]` → `[N]`
#[must_use]
pub fn k2(log_ratio: Tensor<1>) -> Tensor<1> {
    log_ratio.square() * 0.5
}

/// The non-negative unbiased estimate of KL(π_old ‖ π_new) from samples of π_old, in nats.
///
/// `k3 = (eʳ − 1) − r`, `r = log π_new − log π_old`,   `dk3/dr = eʳ − 1`.   Schulman 2020
///
/// Near zero, where `eʳ − 1 − r` would cancel to noise of either sign, it is the series `½r² + r³/6 + …`. The
/// exponential stops growing at `r = 80` ([`LOG_RATIO_MAX`]), so value and gradient stay finite for every finite r.
///
/// # Shapes
/// `log_ratio: [N]` → `[N]`
#[must_use]
pub fn k3(log_ratio: Tensor<1>) -> Tensor<1> {
    let r = constant(&log_ratio);
    let growth = r.clone().clamp_max(LOG_RATIO_MAX).exp() - 1.0;
    let tail = r.clone() / 3.0 * (r.clone() / 4.0 * (r.clone() / 5.0 + 1.0) + 1.0) + 1.0;
    let series = r.clone().square() * tail * 0.5;
    let small = r.clone().abs().lower_scalar(0.01);
    let value = (growth.clone() - r).mask_where(small, series);
    with_slope(value, &log_ratio, || growth)
}

/// The mean over decisions of the exact divergence, `(1/N)·Σ_i KL(p_i ‖ q_i)`, in nats.
///
/// # Shapes
/// → `[1]`
#[must_use]
pub fn exact_kl_mean<D: Distribution>(p: &D, q: &D) -> Tensor<1> {
    p.kl(q).mean()
}

/// [`exact_kl_mean`] over the decisions that the mask keeps.
///
/// # Shapes
/// `mask: [N]` → `[1]`
#[must_use]
pub fn masked_exact_kl_mean<D: Distribution>(p: &D, q: &D, mask: &Tensor<1, Bool>) -> Tensor<1> {
    masked_mean(p.kl(q), mask)
}

/// One of the three estimators, as a run file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KlEstimator {
    /// `−r`: unbiased, noisy, of either sign.
    K1,
    /// `½r²`: biased, smooth; the right gradient for KL(π ‖ π_ref).
    K2,
    /// `eʳ − 1 − r`: unbiased and non-negative.
    K3,
}

impl KlEstimator {
    /// The estimate of KL(π_old ‖ π_new) from samples of π_old, with `log_ratio = log π_new − log π_old`, in nats.
    ///
    /// # Shapes
    /// `log_ratio: [N]` → `[N]`
    #[must_use]
    pub fn estimate(self, log_ratio: Tensor<1>) -> Tensor<1> {
        match self {
            Self::K1 => k1(log_ratio),
            Self::K2 => k2(log_ratio),
            Self::K3 => k3(log_ratio),
        }
    }

    /// The estimate of KL(π ‖ π_ref) at samples of π itself as a loss term, to be minimised with weight β.
    ///
    /// Its gradient in π is, in expectation over π, that of KL(π ‖ π_ref) for k2 and of KL(π_ref ‖ π) for k3.
    ///
    /// # Shapes
    /// `log_prob: [N]` under π, `log_prob_ref: [N]` under π_ref → `[N]`
    ///
    /// # Errors
    /// [`CoreError::NoGradientInK1`]: `E_π ∇log π = 0`.
    pub fn loss(self, log_prob: Tensor<1>, log_prob_ref: Tensor<1>) -> Result<Tensor<1>, CoreError> {
        match self {
            Self::K1 => Err(CoreError::NoGradientInK1),
            Self::K2 | Self::K3 => Ok(self.estimate(log_prob_ref - log_prob)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn at(f: impl Fn(Tensor<1>) -> Tensor<1>, r: f32) -> f32 {
        f(Tensor::from_data([r], &Device::flex())).into_scalar()
    }

    #[test]
    fn the_worked_numbers_of_x_equal_log_pi_over_ref() {
        // details.md R2, with x = log π − log π_ref = −r.
        for (x, want) in [(0.2, [0.2, 0.02, 0.018_730_75]), (-0.3, [-0.3, 0.045, 0.049_858_8])] {
            for (got, want) in [at(k1, -x), at(k2, -x), at(k3, -x)].into_iter().zip(want) {
                assert!((got - want).abs() < 1e-6, "{got} is not {want}");
            }
        }
    }

    #[test]
    fn k3_of_a_tiny_ratio_is_its_series_and_not_rounding_noise() {
        for r in [1e-6_f32, -3e-5, 2e-4, 9.9e-3, 1.01e-2, -1.01e-2] {
            let exact = f64::from(r).exp_m1() - f64::from(r);
            let error = (f64::from(at(k3, r)) - exact).abs();
            assert!(error <= 2e-3 * exact, "k3({r}) is off by {error}");
        }
    }

    #[test]
    fn k3_and_its_gradient_are_finite_for_log_ratios_of_ten_thousand() {
        for r in [1e4_f32, -1e4, 50.0, -50.0] {
            let x = Tensor::<1>::from_data([r], &Device::flex()).autodiff().require_grad();
            let y = k3(x.clone());
            assert!(y.clone().into_scalar::<f32>().is_finite());
            let g = x.grad(&y.backward()).unwrap().into_scalar::<f32>();
            assert!(g.is_finite() && g.signum() == r.signum(), "dk3/dr({r}) = {g}");
        }
        assert_eq!(at(k3, -1e4), 9999.0);
    }

    #[test]
    fn k1_is_refused_as_a_loss() {
        let x = Tensor::<1>::from_data([0.1], &Device::flex());
        assert_eq!(KlEstimator::K1.loss(x.clone(), x).unwrap_err(), CoreError::NoGradientInK1);
    }
}

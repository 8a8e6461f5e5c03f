//! The numbers that tell how an update went. Each is a formula; which of them a run reports is the algorithm's choice.
//!
//! Tensor results stay on the device (`[1]` or `[N]`), so that one read-back per update can fetch them all. Over padded
//! batches, reduce the per-decision forms with [`masked_mean`](crate::masked::masked_mean).
//!
//! ```
//! use rl_core::diagnostics::explained_variance;
//!
//! let returns = [1.0, 2.0, 3.0];
//! assert_eq!(explained_variance(&returns, &returns), 1.0);
//! assert_eq!(explained_variance(&[2.0; 3], &returns), 0.0); // no better than their mean
//! assert!(explained_variance(&[3.0, 2.0, 1.0], &returns) < 0.0); // worse
//! ```

use burn::tensor::Tensor;

use crate::hand_gradient::constant;
use crate::kl::{k1, k3};

/// The mean of k1 over the batch: an unbiased, noisy estimate of KL(π_old ‖ π), in nats.
///
/// `mean(log π_old − log π)`. May be negative in a small batch; a stop rule should use [`approx_kl`].
///
/// # Shapes
/// `log_ratio: [N]`, log π − log π_old at samples of π_old → `[1]`
#[must_use]
pub fn approx_kl_k1(log_ratio: &Tensor<1>) -> Tensor<1> {
    k1(constant(log_ratio)).mean()
}

/// The mean of k3 over the batch: the non-negative estimate of KL(π_old ‖ π) that PPO reports and stops by, in nats.
///
/// `mean((ρ − 1) − log ρ)`
///
/// # Shapes
/// `log_ratio: [N]`, log π − log π_old at samples of π_old → `[1]`
#[must_use]
pub fn approx_kl(log_ratio: &Tensor<1>) -> Tensor<1> {
    k3(constant(log_ratio)).mean()
}

/// 1 where `|ρ − 1| > ε`, else 0: the decisions that PPO's clip may hold back.
///
/// # Shapes
/// `ratio: [N]` → `[N]`
#[must_use]
pub fn outside_clip(ratio: &Tensor<1>, clip: f64) -> Tensor<1> {
    let ratio = constant(ratio);
    let inside = (ratio.clone() - 1.0).abs().lower_equal_scalar(clip);
    ratio.ones_like().mask_fill(inside, 0.0)
}

/// The share of decisions with `|ρ − 1| > ε`.
///
/// # Shapes
/// `ratio: [N]` → `[1]`
#[must_use]
pub fn clip_fraction(ratio: &Tensor<1>, clip: f64) -> Tensor<1> {
    outside_clip(ratio, clip).mean()
}

/// How much of the variance of the returns the values explain: `1 − Var(R − V)/Var(R)`.
///
/// 1 is perfect, 0 no better than a constant, negative worse than that. Where the returns are constant the quotient is
/// undefined: the answer is then 1 if the values miss them by a constant only, and 0 otherwise.
///
/// # Shapes
/// `values: [N]`, `returns: [N]`
#[must_use]
pub fn explained_variance(values: &[f32], returns: &[f32]) -> f64 {
    assert_eq!(values.len(), returns.len(), "one value per return");
    let residuals = values.iter().zip(returns).map(|(&v, &r)| f64::from(r) - f64::from(v));
    let unexplained = variance(residuals);
    let total = variance(returns.iter().map(|&r| f64::from(r)));
    match (total > 0.0, unexplained > 0.0) {
        (true, _) => 1.0 - unexplained / total,
        (false, true) => 0.0,
        (false, false) => 1.0,
    }
}

/// The population variance; 0 of nothing.
fn variance(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = x.clone().count().max(1) as f64;
    let mean = x.clone().sum::<f64>() / n;
    x.map(|x| (x - mean).powi(2)).sum::<f64>() / n
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn an_unchanged_policy_has_no_kl_and_no_clipping() {
        let log_ratio = Tensor::<1>::zeros([5], &Device::flex());
        assert_eq!(approx_kl(&log_ratio).into_scalar::<f32>(), 0.0);
        assert_eq!(approx_kl_k1(&log_ratio).into_scalar::<f32>(), 0.0);
        assert_eq!(clip_fraction(&log_ratio.exp(), 0.2).into_scalar::<f32>(), 0.0);
    }

    #[test]
    fn the_clip_fraction_counts_both_sides() {
        let ratio = Tensor::<1>::from_data([0.5, 0.9, 1.1, 1.3], &Device::flex());
        assert_eq!(clip_fraction(&ratio, 0.2).into_scalar::<f32>(), 0.5);
    }

    #[test]
    fn explained_variance_is_defined_for_constant_returns() {
        assert_eq!(explained_variance(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(explained_variance(&[2.0, 2.0, 2.0], &[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(explained_variance(&[3.0, 2.0, 1.0], &[1.0, 2.0, 3.0]), -3.0);
        assert_eq!(explained_variance(&[1.0, 2.0], &[4.0, 4.0]), 0.0);
        assert_eq!(explained_variance(&[1.0, 1.0], &[4.0, 4.0]), 1.0);
        assert_eq!(explained_variance(&[], &[]), 1.0);
    }
}

//! The token loss of group-relative policy optimisation, and the three ways in use to average it.
//!
//! GRPO drops the critic: the advantage of a sequence is its reward against the other answers to the same prompt
//! ([`crate::group`]), the same for all its tokens. The KL to the reference sits in the loss, as k3. What separates
//! GRPO, DAPO and Dr. GRPO is mostly the denominator, so each denominator is a function:
//!
//! | function | average | a long answer |
//! |---|---|---|
//! | [`mean_over_sequences`] | of the sequences' own token means | counts as much as a short one |
//! | [`mean_over_tokens`] | over all tokens | counts by its length |
//! | [`mean_over_budget`] | over R·L_max, a constant | counts by its length, and no length is preferred |
//!
//! ```
//! use burn::tensor::{Bool, Device, Tensor};
//! use rl_core::grpo::{mean_over_sequences, mean_over_tokens};
//!
//! let device = Device::flex();
//! let loss = Tensor::<1>::from_data([3.0, f32::NAN, 1.0, 1.0], &device); // an answer of one token, one of two
//! let mask = Tensor::<1, Bool>::from_data([true, false, true, true], &device);
//! let loss = rl_core::masked::keep(loss, &mask);
//! let by_sequence: f32 = mean_over_sequences(loss.clone(), &mask, 2).into_scalar();
//! let by_token: f32 = mean_over_tokens(loss, &mask).into_scalar();
//! assert!((by_sequence - 2.0).abs() < 1e-6 && (by_token - 5.0 / 3.0).abs() < 1e-6);
//! ```

use burn::tensor::{Bool, Tensor};

use crate::kl::k3;
use crate::masked::{keep, masked_mean, masked_sum, row_means};
use crate::surrogate::{clipped_between, ratio};

/// The log-probabilities of sampled tokens under the three policies of GRPO.
#[derive(Clone, Debug)]
pub struct TokenLogProbs {
    /// Under the policy being trained, `[N]`.
    pub current: Tensor<1>,
    /// Under the policy that sampled, `[N]`, a constant.
    pub old: Tensor<1>,
    /// Under the reference policy, `[N]`, a constant.
    pub reference: Tensor<1>,
}

/// The settings of the token loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLoss {
    /// ρ is clipped below at 1 − ε_low.
    pub clip_low: f64,
    /// ρ is clipped above at 1 + ε_high; more than ε_low in DAPO.
    pub clip_high: f64,
    /// Weight β of the KL to the reference.
    pub beta: f64,
}

impl TokenLoss {
    /// The loss of each token, to be minimised; 0 where masked, whatever the inputs hold there.
    ///
    /// `l_t = −min(ρ_t·Â, clip(ρ_t, 1−ε_low, 1+ε_high)·Â) + β·k3_t`,   `ρ = π/π_old`,
    /// `k3 = π_ref/π − 1 − log(π_ref/π)`.   Shao 2024 (DeepSeekMath), eq. 3 and 4
    ///
    /// # Shapes
    /// `advantage: [N]` (see [`per_token`]), `mask: [N]` → `[N]`
    #[must_use]
    pub fn per_token(
        &self,
        log_probs: TokenLogProbs,
        advantage: Tensor<1>,
        mask: &Tensor<1, Bool>,
    ) -> Tensor<1> {
        let current = keep(log_probs.current, mask);
        let old = keep(log_probs.old, mask);
        let advantage = keep(advantage, mask);
        let objective =
            clipped_between(ratio(current.clone(), old), advantage, self.clip_low, self.clip_high);
        let loss = if self.beta == 0.0 {
            objective.neg()
        } else {
            k3(keep(log_probs.reference, mask) - current) * self.beta - objective
        };
        keep(loss, mask)
    }
}

/// The advantage of each sequence, repeated for each of its L tokens.
///
/// # Shapes
/// `advantage: [R]` → `[R·L]`
#[must_use]
pub fn per_token(advantage: Tensor<1>, tokens: usize) -> Tensor<1> {
    let [rows] = advantage.dims();
    advantage.reshape([rows, 1]).expand([rows, tokens]).reshape([rows * tokens])
}

/// The mean over sequences of the mean over their tokens (GRPO): `(1/R)·Σ_r (1/n_r)·Σ_t l_rt`.
///
/// # Shapes
/// `loss: [R·L]`, `mask: [R·L]` → `[1]`
#[must_use]
pub fn mean_over_sequences(loss: Tensor<1>, mask: &Tensor<1, Bool>, rows: usize) -> Tensor<1> {
    let [n] = loss.dims();
    assert!(n.is_multiple_of(rows), "{n} tokens are not {rows} rows of equal length");
    row_means(loss.reshape([rows, n / rows]), &mask.clone().reshape([rows, n / rows])).mean()
}

/// The mean over all tokens of the batch (DAPO): `Σ l_rt / Σ n_r`.
///
/// # Shapes
/// `loss: [N]`, `mask: [N]` → `[1]`
#[must_use]
pub fn mean_over_tokens(loss: Tensor<1>, mask: &Tensor<1, Bool>) -> Tensor<1> {
    masked_mean(loss, mask)
}

/// The sum over tokens by the constant token budget (Dr. GRPO): `Σ l_rt / (R·L_max)`.   Liu 2025 (Dr. GRPO)
///
/// # Shapes
/// `loss: [R·L]`, `mask: [R·L]` → `[1]`
#[must_use]
pub fn mean_over_budget(
    loss: Tensor<1>,
    mask: &Tensor<1, Bool>,
    rows: usize,
    max_tokens: usize,
) -> Tensor<1> {
    masked_sum(loss, mask) * (1.0 / (rows * max_tokens) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn numbers(x: Tensor<1>) -> Vec<f32> {
        x.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn on_policy_at_the_reference_the_loss_is_minus_the_advantage() {
        let device = Device::flex();
        let same = Tensor::<1>::from_data([-1.0, -2.0, f32::NAN], &device);
        let log_probs = TokenLogProbs { current: same.clone(), old: same.clone(), reference: same };
        let settings = TokenLoss { clip_low: 0.2, clip_high: 0.28, beta: 0.04 };
        let mask = Tensor::from_data([true, true, false], &device);
        let advantage = Tensor::from_data([0.5, -1.0, f32::NAN], &device);
        assert_eq!(numbers(settings.per_token(log_probs, advantage, &mask)), [-0.5, 1.0, 0.0]);
    }

    #[test]
    fn the_three_means_differ_by_their_denominators_only() {
        let device = Device::flex();
        let loss = Tensor::<1>::from_data([1.0, 0.0, 2.0, 4.0], &device);
        let mask = Tensor::<1, Bool>::from_data([true, false, true, true], &device);
        assert_eq!(numbers(mean_over_sequences(loss.clone(), &mask, 2)), [2.0]);
        assert_eq!(numbers(mean_over_tokens(loss.clone(), &mask)), [7.0 / 3.0]);
        assert_eq!(numbers(mean_over_budget(loss, &mask, 2, 7)), [0.5]);
        assert_eq!(numbers(per_token(Tensor::from_data([1.0, 2.0], &device), 2)), [1.0, 1.0, 2.0, 2.0]);
    }
}

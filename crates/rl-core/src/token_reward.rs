//! Rewards of the token MDP: what turns "score − β·KL" of a whole response into one reward per token.
//!
//! The reference policy enters RLHF only here, so PPO never learns that it exists. What the score is (a reward model's
//! number, normalised, or replaced because the response never ended) is decided before the call.
//!
//! ```
//! use rl_core::{kl::KlEstimator, token_reward::shaped_rewards};
//!
//! let log_probs = [-1.0_f64, -2.0, -1.5, f64::NAN];
//! let reference = [-1.2, -1.7, -1.5, f64::NAN];
//! let mask = [true, true, true, false]; // the fourth slot is padding
//! let shaped = shaped_rewards(&log_probs, &reference, &mask, 1.0, 0.1, KlEstimator::K1);
//! for (reward, by_hand) in shaped.rewards.iter().zip([-0.02, 0.03, 1.0, 0.0]) {
//!     assert!((reward - by_hand).abs() < 1e-12);
//! }
//! assert!((shaped.kl + 0.1).abs() < 1e-12); // k1 of one response may be negative
//! ```

use crate::kl::KlEstimator;
use crate::real::Real;

/// The rewards of one sequence, and the parts from which they are made.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapedRewards<F> {
    /// Reward per token, `[S]`; 0 where masked.
    pub rewards: Vec<F>,
    /// Estimated `KL(π ‖ π_ref)` of the response: the sum over its tokens, in nats. What a KL controller is fed.
    pub kl: F,
    /// `−β·kl`: the part of the return that is penalty. (The negative number itself; logs elsewhere flip it.)
    pub penalty: F,
    /// Sum of `rewards`: score + penalty, or 0 for an empty response.
    pub total: F,
}

/// One reward per token of a sampled response.
///
/// `r_t = −β·kl_t + 1[t = last]·score`,   `kl_t` from `x_t = log π(y_t) − log π_ref(y_t)`:
/// k1 = `x`, k2 = `x²/2`, k3 = `e^{−x} − 1 + x`.   Ziegler 2019, eq. 2; Schulman, *Approximating KL divergence*, 2020
///
/// The score lands on the *last unmasked token* (the end-of-sequence token itself, or the last token of a cut response),
/// not one past it. Masked tokens are not read: whatever they hold, their reward is 0. A response without an unmasked
/// token gets zeros, and its score is dropped. β = 0 switches the penalty off even where `kl_t` is infinite.
///
/// # Shapes
/// `log_probs, reference_log_probs, mask: [S]` → `[S]`; unequal lengths panic. Log-probabilities in nats, of the sampled
/// tokens; `mask` is `true` on response tokens, the end-of-sequence token included.
pub fn shaped_rewards<F: Real>(
    log_probs: &[F],
    reference_log_probs: &[F],
    mask: &[bool],
    score: F,
    beta: F,
    estimator: KlEstimator,
) -> ShapedRewards<F> {
    assert_eq!(log_probs.len(), reference_log_probs.len(), "one reference log-probability per token");
    assert_eq!(log_probs.len(), mask.len(), "one mask bit per token");
    let penalty_of = |kl: F| if beta == F::ZERO { F::ZERO } else { -beta * kl };
    let mut rewards = vec![F::ZERO; mask.len()];
    let mut kl = F::ZERO;
    for t in (0..mask.len()).filter(|&t| mask[t]) {
        let kl_t = token_kl(log_probs[t] - reference_log_probs[t], estimator);
        kl += kl_t;
        rewards[t] = penalty_of(kl_t);
    }
    if let Some(last) = mask.iter().rposition(|&real| real) {
        rewards[last] += score;
    }
    let total = rewards.iter().copied().sum();
    ShapedRewards { rewards, kl, penalty: penalty_of(kl), total }
}

/// The estimate of `KL(π ‖ π_ref)` that one token sampled from π gives, in nats.
///
/// `x = log π − log π_ref`: k1 = `x`, k2 = `x²/2`, k3 = `e^{−x} − 1 + x`. k1 and k3 are unbiased, k2 and k3 never negative.
/// Schulman, *Approximating KL divergence*, 2020
pub fn token_kl<F: Real>(x: F, estimator: KlEstimator) -> F {
    match estimator {
        KlEstimator::K1 => x,
        KlEstimator::K2 => F::from_f64(0.5) * x * x,
        KlEstimator::K3 => (-x).exp_m1() + x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use KlEstimator::{K1, K2, K3};

    const LOG_PROBS: [f64; 3] = [-1.0, -2.0, -1.5];
    const REFERENCE: [f64; 3] = [-1.2, -1.7, -1.5];

    #[track_caller]
    fn check(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        }
    }

    #[test]
    fn each_token_pays_its_kl_and_the_last_earns_the_score() {
        let got = shaped_rewards(&LOG_PROBS, &REFERENCE, &[true; 3], 1.0, 0.1, K1);
        check(&got.rewards, &[-0.02, 0.03, 1.0]);
        check(&[got.kl, got.penalty, got.total], &[-0.1, 0.01, 1.01]);
    }

    #[test]
    fn the_score_lands_on_the_last_real_token_not_on_the_first_pad() {
        let mask = [true, true, false];
        let got = shaped_rewards(&[-1.0, -2.0, f64::NAN], &REFERENCE, &mask, 1.0, 0.1, K1);
        check(&got.rewards, &[-0.02, 1.03, 0.0]);
    }

    #[test]
    fn an_empty_response_earns_nothing() {
        let got = shaped_rewards(&LOG_PROBS, &REFERENCE, &[false; 3], 1.0, 0.1, K3);
        assert_eq!((got.rewards, got.total), (vec![0.0; 3], 0.0));
    }

    #[test]
    fn no_beta_means_no_penalty_even_at_infinite_kl() {
        let got = shaped_rewards(&[-1.0], &[f64::NEG_INFINITY], &[true], 1.0, 0.0, K1);
        assert_eq!((got.rewards, got.penalty), (vec![1.0], 0.0));
        assert_eq!(got.kl, f64::INFINITY);
    }

    #[test]
    fn the_estimators_have_their_hand_computed_values() {
        for (x, want) in [(0.2, [0.2, 0.02, 0.0187]), (-0.3, [-0.3, 0.045, 0.0499])] {
            for (estimator, want) in [K1, K2, K3].into_iter().zip(want) {
                let got: f64 = token_kl(x, estimator);
                assert!((got - want).abs() < 5e-5, "{got} is not {want}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "one mask bit per token")]
    fn a_short_mask_is_a_bug() {
        shaped_rewards(&LOG_PROBS, &REFERENCE, &[true], 1.0, 0.1, K1);
    }
}

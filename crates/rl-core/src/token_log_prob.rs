//! Log-probabilities of the tokens of a sequence under a causal language model.
//!
//! The logits at position t score the token at t + 1: position t has read the tokens up to and including t. So a
//! sequence of S tokens has S − 1 scored tokens, and the first token none. Getting this off by one trains on noise
//! without any error message, which is why it is written once, here.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rl_core::token_log_prob::token_log_probs;
//!
//! let device = Device::flex();
//! // The model is sure of token 1 after the first position and undecided after the second.
//! let logits = Tensor::<3>::from_data([[[-9e9, 0.0], [0.0, 0.0], [5.0, -5.0]]], &device);
//! let log_probs: Vec<f32> =
//!     token_log_probs(logits, Tensor::from_data([[0, 1, 0]], &device)).into_data().try_to_vec().unwrap();
//! assert!(log_probs[0] == 0.0 && (log_probs[1] + 2_f32.ln()).abs() < 1e-6); // the last logits score nothing
//! ```

use burn::tensor::{Bool, Int, Tensor};

use crate::dist::{Categorical, Distribution};
use crate::masked::{row_means, row_sums};

/// The laws of tokens 1…S−1 of each sequence given the tokens before them, with the tokens that occurred.
///
/// The decisions are flat, row after row: decision `b·(S−1) + t` is the law of token t + 1 of sequence b.
///
/// # Shapes
/// `logits: [B, S, V]`, `ids: [B, S]` → laws over `[B·(S−1), V]`, tokens `[B·(S−1)]`
#[must_use]
pub fn next_token_laws(logits: Tensor<3>, ids: Tensor<2, Int>) -> (Categorical, Tensor<1, Int>) {
    let [b, s, v] = logits.dims();
    assert_eq!(ids.dims(), [b, s], "one row of logits per token");
    let laws = Categorical::new(logits.narrow(1, 0, s - 1).reshape([b * (s - 1), v]));
    (laws, ids.narrow(1, 1, s - 1).reshape([b * (s - 1)]))
}

/// `log π(y_{t+1} | y_{≤t})` for t = 0…S−2.
///
/// # Shapes
/// `logits: [B, S, V]`, `ids: [B, S]` → `[B, S−1]`
#[must_use]
pub fn token_log_probs(logits: Tensor<3>, ids: Tensor<2, Int>) -> Tensor<2> {
    let [b, s] = ids.dims();
    let (laws, tokens) = next_token_laws(logits, ids);
    laws.log_prob(&tokens).reshape([b, s - 1])
}

/// The log-probability of each answer, `Σ_{t: mask} log π(y_{t+1} | y_{≤t})`.
///
/// # Shapes
/// `token_log_probs: [B, S−1]`, `mask: [B, S−1]` (true where the *target* is an answer token, eos included) → `[B]`
#[must_use]
pub fn sequence_log_prob(token_log_probs: Tensor<2>, mask: &Tensor<2, Bool>) -> Tensor<1> {
    row_sums(token_log_probs, mask)
}

/// The mean log-probability per answer token; 0 for an empty answer.
///
/// # Shapes
/// `token_log_probs: [B, S−1]`, `mask: [B, S−1]` → `[B]`
#[must_use]
pub fn mean_log_prob(token_log_probs: Tensor<2>, mask: &Tensor<2, Bool>) -> Tensor<1> {
    row_means(token_log_probs, mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn position_t_scores_token_t_plus_one() {
        // A model that is sure of the token whose id is the position it predicts: log-probability 0 only when aligned.
        let device = Device::flex();
        let sure = |token: usize| std::array::from_fn::<f32, 4, _>(|k| if k == token { 0.0 } else { -1e4 });
        let logits = Tensor::<3>::from_data([[sure(1), sure(2), sure(3), sure(0)]], &device);
        let ids = Tensor::<2, Int>::from_data([[0, 1, 2, 3]], &device);
        let log_probs = token_log_probs(logits, ids);
        assert_eq!(log_probs.into_data().try_to_vec::<f32>().unwrap(), [0.0; 3]);
    }

    #[test]
    fn an_impossible_token_behind_the_mask_does_not_spoil_the_sequence() {
        let device = Device::flex();
        let log_probs = Tensor::<2>::from_data([[-1.0, -2.0, f32::NEG_INFINITY]], &device);
        let mask = Tensor::<2, Bool>::from_data([[true, true, false]], &device);
        assert_eq!(sequence_log_prob(log_probs.clone(), &mask).into_scalar::<f32>(), -3.0);
        assert_eq!(mean_log_prob(log_probs, &mask).into_scalar::<f32>(), -1.5);
    }
}

//! Scoring given responses: log-probs and entropies of their tokens, in bounded memory.

use burn::tensor::Tensor;
use rl_core::dist::{Categorical, Distribution};

use super::transformer::Transformer;
use crate::tokens::Tokens;

/// What a model thinks of given responses.
#[derive(Debug, Clone)]
pub struct TokenScores {
    /// `log π(token | before)` of each decision, nats `[R·L]`; 0 where the token is padding.
    pub log_prob: Tensor<1>,
    /// Entropy of each decision's law, nats `[R·L]`; 0 where the token is padding.
    pub entropy: Tensor<1>,
}

impl TokenScores {
    /// Sums over each row's response, nats `[R]`.
    pub fn sequence_log_prob(&self, tokens: &Tokens) -> Tensor<1> {
        let l = tokens.response();
        let rows = self.log_prob.dims()[0] / l;
        self.log_prob.clone().reshape([rows, l]).sum_dim(1).reshape([rows])
    }
}

/// Scores the responses, `decisions` states at a time.
///
/// The logits are the largest tensors of a language model, `[N, V]`. Here no more than `decisions` rows of them exist
/// at once: `3·decisions·V` floats at most, beside the `[R·S, D]` states and what one block needs.
///
/// # Panics
/// If `decisions` is 0, or the prompts are empty.
///
/// ```
/// use burn::tensor::Device;
/// use rand::SeedableRng;
/// use rand_chacha::ChaCha8Rng;
/// use rl_models::Tokens;
/// use rl_models::lm::{LmConfig, Transformer, score};
///
/// let device = Device::flex();
/// let mut rng = ChaCha8Rng::seed_from_u64(1);
/// let model = Transformer::new(LmConfig::llama(32, 16, 1, 2, 1), &mut rng, &device);
/// let tokens = Tokens::new(&[(&[1, 5], &[7, 2])], 0, &device);
/// let two_at_once = score(&model, &tokens, 2).sequence_log_prob(&tokens).into_scalar::<f32>();
/// let one_by_one = score(&model, &tokens, 1).sequence_log_prob(&tokens).into_scalar::<f32>();
/// assert!(two_at_once < 0.0 && (two_at_once - one_by_one).abs() < 1e-5);
/// ```
pub fn score(model: &Transformer, tokens: &Tokens, decisions: usize) -> TokenScores {
    assert!(decisions > 0, "scoring no decision at a time");
    let (states, actions) = (model.decision_states(tokens), tokens.actions());
    let n = actions.dims()[0];
    let (mut log_probs, mut entropies) = (Vec::new(), Vec::new());
    for first in (0..n).step_by(decisions) {
        let count = decisions.min(n - first);
        let law = Categorical::new(model.logits(states.clone().narrow(0, first, count)));
        log_probs.push(law.log_prob(&actions.clone().narrow(0, first, count)));
        entropies.push(law.entropy());
    }
    let padding = tokens.mask().bool_not();
    let whole = |pieces| Tensor::cat(pieces, 0).mask_fill(padding.clone(), 0.0);
    TokenScores { log_prob: whole(log_probs), entropy: whole(entropies) }
}

//! Writing responses token by token: the seam between a language model and whoever asks it to speak.

use rand_chacha::ChaCha8Rng;

/// How responses are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits before each draw; 1 is the model itself.
    pub temperature: f64,
    /// Tokens after which a response is cut.
    pub max_tokens: usize,
    /// Tokens that end a response; they belong to it. Without any, every response has `max_tokens` tokens and is whole.
    pub stop: Vec<u32>,
}

impl Sampling {
    /// How a response of these tokens ended.
    pub fn end_of(&self, tokens: &[u32]) -> ResponseEnd {
        let stopped = self.stop.is_empty() || tokens.last().is_some_and(|last| self.stop.contains(last));
        if stopped { ResponseEnd::Stopped } else { ResponseEnd::Cut }
    }
}

/// Whether a response is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseEnd {
    /// It ended itself.
    Stopped,
    /// It ran into `max_tokens`.
    Cut,
}

/// What a model wrote. Tokens are never edited afterwards: what is stored is what was sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The tokens, the stop token included; at least one.
    pub tokens: Vec<u32>,
    /// `log π(token | before)` of each, at the sampling temperature, nats.
    pub log_probs: Vec<f32>,
    /// How it ended.
    pub end: ResponseEnd,
}

/// A model that can write.
pub trait Sampler {
    /// One response per prompt.
    ///
    /// Response i takes one uniform number per token from `rngs[i]` and nothing else, so that it does not depend on
    /// what is sampled beside it. No filter (top-k, top-p, minimum length) comes between law and token: what is sampled
    /// is the policy.
    ///
    /// # Panics
    /// Unless there is one generator per prompt.
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response>;
}

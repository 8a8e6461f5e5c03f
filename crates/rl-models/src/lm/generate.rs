//! Writing: one token per row at a time, over a cache of the past.

use burn::tensor::{Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::cache::KvCache;
use super::transformer::Transformer;
use crate::sampler::{Response, Sampler, Sampling};
use crate::tokens::Tokens;

/// How to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Divides the logits; 0 takes the likeliest token each time.
    pub temperature: f64,
    /// Only the `k` likeliest tokens can be drawn; absent is all.
    pub top_k: Option<usize>,
    /// Only the fewest tokens whose chances reach `p` can be drawn (Holtzman et al. 2020, §3.1); absent is all.
    pub top_p: Option<f64>,
    /// No stop token before this many tokens.
    pub min_tokens: usize,
    /// Tokens after which a response is cut.
    pub max_tokens: usize,
    /// Tokens that end a response; they belong to it.
    pub stop: Vec<u32>,
}

impl Default for Generation {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, top_p: None, min_tokens: 0, max_tokens: 64, stop: vec![] }
    }
}

/// One response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Generated {
    /// The tokens, the stop token included.
    pub tokens: Vec<u32>,
    /// `log` of each token's chance when it was drawn (temperature and filters applied), nats.
    pub log_probs: Vec<f32>,
    /// `log π(token | before)` of the model itself, nats.
    pub raw_log_probs: Vec<f32>,
}

/// One response per prompt; `on_token(row, token)` hears each token as it is written.
///
/// Row i takes one uniform number per token from `rngs[i]` and nothing else, so that it does not depend on what is
/// written beside it.
///
/// # Panics
/// Unless there is one generator per prompt and one token in every prompt, and prompt and response fit into the
/// model's sight.
///
/// ```
/// use burn::tensor::Device;
/// use rand::SeedableRng;
/// use rand_chacha::ChaCha8Rng;
/// use rl_models::lm::{Generation, LmConfig, Transformer, generate};
///
/// let device = Device::flex();
/// let mut rng = ChaCha8Rng::seed_from_u64(1);
/// let model = Transformer::new(LmConfig::llama(32, 16, 1, 2, 1), &mut rng, &device);
/// let how = Generation { temperature: 0.7, top_p: Some(0.9), max_tokens: 8, stop: vec![2], ..Generation::default() };
/// let draw = |prompts: &[&[u32]]| {
///     let mut rngs: Vec<_> = (0..prompts.len() as u64).map(ChaCha8Rng::seed_from_u64).collect();
///     generate(&model, prompts, &mut rngs, &how, |_row, _token| {})
/// };
/// // A response does not depend on what is written beside it.
/// assert_eq!(draw(&[&[1, 5, 6]])[0].tokens, draw(&[&[1, 5, 6], &[1, 9]])[0].tokens);
/// ```
pub fn generate(
    model: &Transformer,
    prompts: &[&[u32]],
    rngs: &mut [ChaCha8Rng],
    how: &Generation,
    mut on_token: impl FnMut(usize, u32),
) -> Vec<Generated> {
    assert_eq!(prompts.len(), rngs.len(), "one generator per prompt");
    assert!(
        prompts.iter().all(|prompt| !prompt.is_empty()),
        "a prompt has at least one token: begin with BOS"
    );
    let mut written = vec![Generated::default(); prompts.len()];
    if how.max_tokens == 0 || prompts.is_empty() {
        return written;
    }
    let device = model.embedding.val().device();
    let pairs: Vec<(&[u32], &[u32])> = prompts.iter().map(|prompt| (*prompt, &[][..])).collect();
    let prompt = Tokens::new(&pairs, model.config().pad, &device);
    let mut past = model.cache(prompt.prompt + how.max_tokens);
    let mut logits = next_logits(model, &prompt, &mut past);
    let mut live = vec![true; prompts.len()];
    let mut law = Law::new(model.config().vocabulary);
    loop {
        let mut next = vec![model.config().pad; prompts.len()];
        for (row, logits) in logits.chunks_exact(model.config().vocabulary).enumerate() {
            if !live[row] {
                continue;
            }
            let so_far = &mut written[row];
            let barred = if so_far.tokens.len() < how.min_tokens { &how.stop[..] } else { &[] };
            law.set(logits, how, barred);
            let token = law.draw(&mut rngs[row], how.temperature);
            so_far.tokens.push(token as u32);
            so_far.log_probs.push(law.log_prob(token));
            so_far.raw_log_probs.push(law.raw_log_prob(token));
            next[row] = token as u32;
            on_token(row, token as u32);
            live[row] = so_far.tokens.len() < how.max_tokens && !how.stop.contains(&(token as u32));
        }
        if live.iter().all(|live| !live) {
            return written;
        }
        logits = next_logits(model, &column(&next, &live, &device), &mut past);
    }
}

/// The next token of each row; rows that are done get padding.
fn column(next: &[u32], live: &[bool], device: &burn::tensor::Device) -> Tokens {
    let ids: Vec<i64> = next.iter().map(|&token| i64::from(token)).collect();
    let shape = [next.len(), 1];
    Tokens {
        ids: Tensor::from_data(TensorData::new(ids, shape), device),
        real: Tensor::from_data(TensorData::new(live.to_vec(), shape), device),
        prompt: 1,
    }
}

/// The logits after the last of the new columns, row by row.
fn next_logits(model: &Transformer, new: &Tokens, past: &mut KvCache) -> Vec<f32> {
    let hidden = model.hidden_after(&new.ids, &new.real, past);
    let [rows, s, d] = hidden.dims();
    let last = hidden.narrow(1, s - 1, 1).reshape([rows, d]);
    model.logits(last).into_data().try_into_vec_as().expect("floats convert to f32")
}

/// The law of one token, in double precision on the host.
struct Law {
    /// `log π` of the model itself.
    raw: Vec<f64>,
    /// Unnormalised chances after temperature and filters; 0 is barred.
    weight: Vec<f64>,
    total: f64,
    order: Vec<usize>,
}

impl Law {
    fn new(vocabulary: usize) -> Self {
        Self { raw: vec![0.0; vocabulary], weight: vec![0.0; vocabulary], total: 0.0, order: Vec::new() }
    }

    fn set(&mut self, logits: &[f32], how: &Generation, barred: &[u32]) {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
        let log_sum = logits.iter().map(|&z| (z as f64 - max).exp()).sum::<f64>().ln() + max;
        for (raw, &z) in self.raw.iter_mut().zip(logits) {
            *raw = z as f64 - log_sum;
        }
        let temperature = if how.temperature > 0.0 { how.temperature } else { 1.0 };
        let allowed = |token: usize| !barred.contains(&(token as u32));
        let top =
            (0..logits.len()).filter(|&t| allowed(t)).map(|t| self.raw[t]).fold(f64::NEG_INFINITY, f64::max);
        for (token, weight) in self.weight.iter_mut().enumerate() {
            *weight = if allowed(token) { ((self.raw[token] - top) / temperature).exp() } else { 0.0 };
        }
        if how.top_k.is_some() || how.top_p.is_some() {
            self.filter(how);
        }
        self.total = self.weight.iter().sum();
    }

    /// Bars all but the `k` likeliest, then all but the fewest that reach `p`; ties go to the smaller number.
    fn filter(&mut self, how: &Generation) {
        self.order.clear();
        self.order.extend(0..self.weight.len());
        let weight = &mut self.weight;
        self.order.sort_by(|&a, &b| weight[b].total_cmp(&weight[a]).then(a.cmp(&b)));
        let mut kept = how.top_k.unwrap_or(weight.len()).clamp(1, weight.len());
        if let Some(p) = how.top_p {
            let total: f64 = self.order[..kept].iter().map(|&t| weight[t]).sum();
            let mut sum = 0.0;
            let enough = self.order[..kept].iter().position(|&t| {
                sum += weight[t];
                sum >= p * total
            });
            kept = enough.map_or(kept, |last| last + 1);
        }
        for &token in &self.order[kept..] {
            weight[token] = 0.0;
        }
    }

    fn draw(&self, rng: &mut ChaCha8Rng, temperature: f64) -> usize {
        let likeliest = || {
            let better = |best: usize, t: usize| if self.weight[t] > self.weight[best] { t } else { best };
            (0..self.weight.len()).reduce(better).expect("a vocabulary has a token")
        };
        let u = rng.random::<f64>() * self.total;
        if temperature == 0.0 {
            return likeliest();
        }
        let mut sum = 0.0;
        let drawn = self.weight.iter().position(|w| {
            sum += w;
            u < sum
        });
        drawn.unwrap_or_else(likeliest)
    }

    fn log_prob(&self, token: usize) -> f32 {
        (self.weight[token] / self.total).ln() as f32
    }

    fn raw_log_prob(&self, token: usize) -> f32 {
        self.raw[token] as f32
    }
}

/// Without filters: what is sampled is the policy.
impl Sampler for Transformer {
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response> {
        let generation = Generation {
            temperature: how.temperature,
            max_tokens: how.max_tokens,
            stop: how.stop.clone(),
            ..Generation::default()
        };
        let written = generate(self, prompts, rngs, &generation, |_, _| ());
        let response = |Generated { tokens, log_probs, .. }| {
            let end = how.end_of(&tokens);
            Response { tokens, log_probs, end }
        };
        written.into_iter().map(response).collect()
    }
}

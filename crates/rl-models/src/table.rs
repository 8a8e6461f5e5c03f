//! Language models as tables: one row of logits per context, nothing shared. For worlds that can be enumerated.
//!
//! | contexts | rows | can it be π*? |
//! |---|---|---|
//! | [`Contexts::bigram`] | `L·(V + 1)`: position and previous token | no: π* remembers which tokens it has used |
//! | [`Contexts::prefix`] | `(V^L − 1)/(V − 1)`: everything written so far | yes |
//!
//! The prompt is ignored: a table answers one question only.

use burn::module::{Module, Param};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, draw_softmax};

use crate::sampler::{Response, Sampler, Sampling};
use crate::tokens::Tokens;
use crate::traits::{Policy, Rows, ValueFunction};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// Position and previous token; column V of a position stands for "nothing before".
    Bigram,
    /// All tokens so far: shorter prefixes first, then in base V.
    Prefix,
}

/// Which pasts a table tells apart, and their numbers.
///
/// ```
/// use rl_models::Contexts;
///
/// assert_eq!(Contexts::bigram(8, 6).count(), 6 * 9);
/// let prefixes = Contexts::prefix(4, 4);
/// assert_eq!(prefixes.count(), 1 + 4 + 16 + 64);
/// assert_eq!(prefixes.past(prefixes.of(&[3, 1])), [3, 1]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contexts {
    past: Past,
    vocabulary: usize,
    length: usize,
}

impl Contexts {
    /// Position and previous token, of responses of up to `length` tokens.
    pub fn bigram(vocabulary: usize, length: usize) -> Self {
        Self { past: Past::Bigram, vocabulary, length }
    }

    /// Everything written so far, of responses of up to `length` tokens.
    pub fn prefix(vocabulary: usize, length: usize) -> Self {
        Self { past: Past::Prefix, vocabulary, length }
    }

    /// How many contexts there are.
    pub fn count(&self) -> usize {
        let v = self.vocabulary;
        match self.past {
            Past::Bigram => self.length * (v + 1),
            Past::Prefix => (v.pow(self.length as u32) - 1) / (v - 1),
        }
    }

    /// The context of the token after `prefix`.
    ///
    /// # Panics
    /// If the prefix has `length` tokens or more, or a token outside the vocabulary.
    pub fn of(&self, prefix: &[u32]) -> usize {
        let (v, t) = (self.vocabulary, prefix.len());
        assert!(
            t < self.length && prefix.iter().all(|&token| (token as usize) < v),
            "no context of {prefix:?}"
        );
        match self.past {
            Past::Bigram => t * (v + 1) + prefix.last().map_or(v, |&last| last as usize),
            Past::Prefix => self.shorter(t) + prefix.iter().fold(0, |code, &token| code * v + token as usize),
        }
    }

    /// A past of context number `context`: all of it for prefixes, the last token (or nothing) for bigrams.
    pub fn past(&self, context: usize) -> Vec<u32> {
        let v = self.vocabulary;
        match self.past {
            Past::Bigram => {
                Some(context % (v + 1)).filter(|&last| last < v).into_iter().map(|x| x as u32).collect()
            }
            Past::Prefix => {
                let t =
                    (0..self.length).rev().find(|&t| context >= self.shorter(t)).expect("shorter(0) is 0");
                let code = context - self.shorter(t);
                (0..t).rev().map(|place| (code / v.pow(place as u32) % v) as u32).collect()
            }
        }
    }

    /// Prefixes of fewer than t tokens.
    fn shorter(&self, t: usize) -> usize {
        (self.vocabulary.pow(t as u32) - 1) / (self.vocabulary - 1)
    }

    /// The context of each decision, `[R·L]`.
    fn of_tokens(&self, tokens: &Tokens) -> Tensor<1, Int> {
        let (rows, columns, v) = (tokens.rows(), tokens.response(), self.vocabulary as i64);
        assert!(
            columns <= self.length,
            "responses of {columns} tokens, but the table ends at {}",
            self.length
        );
        let device = tokens.ids.device();
        let mut code =
            Tensor::<2, Int>::full([rows, 1], if self.past == Past::Bigram { v } else { 0 }, &device);
        let mut contexts = Vec::with_capacity(columns);
        for t in 0..columns {
            let first = match self.past {
                Past::Bigram => t as i64 * (v + 1),
                Past::Prefix => self.shorter(t) as i64,
            };
            contexts.push(code.clone() + first);
            if t + 1 < columns {
                let token = tokens.ids.clone().narrow(1, tokens.prompt + t, 1);
                code = match self.past {
                    Past::Bigram => token,
                    Past::Prefix => code * v + token,
                };
            }
        }
        Tensor::cat(contexts, 1).reshape([rows * columns])
    }
}

/// `π(v | context) = softmax(logits[context])_v`.
#[derive(Module, Debug)]
pub struct TablePolicy {
    /// `[contexts, V]`.
    pub logits: Param<Tensor<2>>,
    #[module(skip)]
    contexts: Contexts,
}

impl TablePolicy {
    /// The table whose row for `context` is `row(past of the context)`; log-probabilities are logits, too.
    ///
    /// # Panics
    /// If a row has not V numbers.
    pub fn new(contexts: Contexts, device: &Device, mut row: impl FnMut(&[u32]) -> Vec<f32>) -> Self {
        let logits: Vec<f32> =
            (0..contexts.count()).flat_map(|context| row(&contexts.past(context))).collect();
        let logits = TensorData::new(logits, [contexts.count(), contexts.vocabulary]);
        Self { logits: Param::from_data(logits, device), contexts }
    }

    /// The pasts it tells apart.
    pub fn contexts(&self) -> Contexts {
        self.contexts
    }

    /// `log π(v | prefix)` for every prefix of fewer than L tokens, shorter ones first, then in base V: as a law over
    /// sentences wants it, `[prefixes·V]`, at a temperature. One read-back.
    pub fn next_token_laws(&self, temperature: f64) -> Vec<f64> {
        let v = self.contexts.vocabulary;
        let law = Categorical::new(self.logits.val().inner() / temperature).log_probs();
        let table: Vec<f64> = law.into_data().try_into_vec_as().expect("floats convert to f64");
        let prefixes = Contexts { past: Past::Prefix, ..self.contexts };
        let row = |prefix: usize| {
            let context = self.contexts.of(&prefixes.past(prefix));
            table[context * v..(context + 1) * v].to_vec()
        };
        match self.contexts.past {
            Past::Prefix => table,
            Past::Bigram => (0..prefixes.count()).flat_map(row).collect(),
        }
    }
}

impl Policy for TablePolicy {
    type Obs = Tokens;
    type Dist = Categorical;

    fn policy(&self, obs: &Tokens) -> Categorical {
        Categorical::new(self.logits.val().select(0, self.contexts.of_tokens(obs)))
    }

    /// The rows that were looked up carry the tape, not the table.
    fn gradient(
        &self,
        obs: &Tokens,
        _noise: &mut dyn Rng,
        loss: impl FnOnce(Categorical) -> Tensor<1>,
    ) -> Tensor<1> {
        let (table, rows) = (self.logits.val().inner(), self.contexts.of_tokens(obs));
        let z = table.clone().select(0, rows.clone()).autodiff().require_grad();
        let mut grads = loss(Categorical::new(z.clone())).backward();
        let d = z.grad_remove(&mut grads).unwrap_or_else(|| z.inner().zeros_like());
        let gradient = table.zeros_like().select_assign(0, rows, d, IndexingUpdateOp::Add);
        let [contexts, v] = gradient.dims();
        gradient.reshape([contexts * v])
    }
}

impl Sampler for TablePolicy {
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response> {
        assert_eq!(prompts.len(), rngs.len(), "one generator per prompt");
        let v = self.contexts.vocabulary;
        let table: Vec<f64> =
            self.logits.val().inner().into_data().try_into_vec_as().expect("floats convert to f64");
        let mut weights = Vec::with_capacity(v);
        let mut write = |rng: &mut ChaCha8Rng| {
            let (mut tokens, mut log_probs) = (Vec::new(), Vec::new());
            while tokens.len() < how.max_tokens {
                let context = self.contexts.of(&tokens);
                let logits: Vec<f64> =
                    table[context * v..(context + 1) * v].iter().map(|z| z / how.temperature).collect();
                let (token, log_prob) = draw_softmax(&logits, &mut weights, rng)
                    .unwrap_or_else(|| panic!("context {context} has no law: {logits:?}"));
                tokens.push(token as u32);
                log_probs.push(log_prob as f32);
                if how.stop.contains(&(token as u32)) {
                    break;
                }
            }
            Response { end: how.end_of(&tokens), tokens, log_probs }
        };
        rngs.iter_mut().map(&mut write).collect()
    }
}

/// `V(context) = values[context]`.
#[derive(Module, Debug)]
pub struct TableValue {
    /// `[contexts]`.
    pub values: Param<Tensor<1>>,
    #[module(skip)]
    contexts: Contexts,
}

impl TableValue {
    /// A critic that says 0 everywhere.
    pub fn new(contexts: Contexts, device: &Device) -> Self {
        Self { values: Param::from_tensor(Tensor::zeros([contexts.count()], device)), contexts }
    }
}

impl ValueFunction for TableValue {
    type Obs = Tokens;

    fn value(&self, obs: &Tokens) -> Tensor<1> {
        self.values.val().select(0, self.contexts.of_tokens(obs))
    }

    fn gradient(
        &self,
        obs: &Tokens,
        _noise: &mut dyn Rng,
        loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        let (table, rows) = (self.values.val().inner(), self.contexts.of_tokens(obs));
        let v = table.clone().select(0, rows.clone()).autodiff().require_grad();
        let mut grads = loss(v.clone()).backward();
        let d = v.grad_remove(&mut grads).unwrap_or_else(|| v.inner().zeros_like());
        table.zeros_like().select_assign(0, rows, d, IndexingUpdateOp::Add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn tokens(responses: &[&[u32]]) -> Tokens {
        let pairs: Vec<(&[u32], &[u32])> = responses.iter().map(|response| (&[][..], *response)).collect();
        Tokens::new(&pairs, 0, &Device::flex())
    }

    #[test]
    fn every_context_is_the_context_of_its_past() {
        let contexts = Contexts::prefix(3, 4);
        assert_eq!(contexts.count(), 40);
        assert!((0..40).all(|context| contexts.of(&contexts.past(context)) == context));
        let contexts = Contexts::bigram(3, 4);
        assert_eq!((contexts.count(), contexts.of(&[]), contexts.of(&[2, 0])), (16, 3, 8));
        assert_eq!((contexts.past(3), contexts.past(8)), (vec![], vec![0]));
    }

    #[test]
    fn tensors_and_host_find_the_same_context() {
        for contexts in [Contexts::bigram(3, 4), Contexts::prefix(3, 4)] {
            let responses: [&[u32]; 3] = [&[2, 1, 0, 2], &[0, 0, 0, 0], &[1, 2, 2, 1]];
            let got = contexts.of_tokens(&tokens(&responses)).into_data().try_into_vec_as::<i64>().unwrap();
            let want = responses.iter().flat_map(|y| (0..4).map(|t| contexts.of(&y[..t]) as i64));
            assert_eq!(got, want.collect::<Vec<i64>>());
        }
    }

    #[test]
    fn the_hand_written_gradient_is_that_of_autodiff() {
        let contexts = Contexts::prefix(3, 2);
        let table =
            TablePolicy::new(contexts, &Device::flex(), |past| vec![0.3 * past.len() as f32, -0.2, 0.9]);
        let (obs, mut noise) = (tokens(&[&[0, 1], &[0, 2], &[2, 2]]), ChaCha8Rng::seed_from_u64(1));
        let actions = obs.actions();
        let loss = |law: Categorical| {
            use rl_core::dist::Distribution;
            (law.log_prob(&actions) + law.entropy()).sum()
        };
        let by_hand = table.gradient(&obs, &mut noise, loss);
        let by_tape = crate::flat_params::autodiff_gradient(&table, |table| {
            let rows = contexts.of_tokens(&obs);
            loss(Categorical::new(table.logits.val().select(0, rows.autodiff())))
        });
        let numbers = |x: Tensor<1>| x.into_data().try_to_vec::<f32>().unwrap();
        let (by_hand, by_tape) = (numbers(by_hand), numbers(by_tape));
        assert!(by_hand.iter().zip(&by_tape).all(|(a, b)| (a - b).abs() < 1e-6), "{by_hand:?} {by_tape:?}");
    }

    #[test]
    fn a_response_is_the_same_alone_and_beside_others_and_reports_its_law() {
        let contexts = Contexts::bigram(4, 6);
        let table = TablePolicy::new(contexts, &Device::flex(), |past| {
            (0..4).map(|v| (past.len() + v) as f32 * 0.3).collect()
        });
        let how = Sampling { temperature: 0.7, max_tokens: 6, stop: vec![3] };
        let rng = |stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            rng.set_stream(stream);
            rng
        };
        let together = table.respond(&[&[][..]; 8], &mut (0..8).map(rng).collect::<Vec<_>>(), &how);
        let alone = table.respond(&[&[][..]], &mut [rng(5)], &how);
        assert_eq!(together[5], alone[0]);
        for response in &together {
            let stopped = response.tokens.last() == Some(&3);
            assert_eq!(
                response.end,
                if stopped { crate::sampler::ResponseEnd::Stopped } else { crate::sampler::ResponseEnd::Cut }
            );
            assert_eq!(response.tokens.iter().filter(|&&token| token == 3).count(), usize::from(stopped));
        }
    }
}

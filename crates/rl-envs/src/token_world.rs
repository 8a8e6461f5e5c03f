//! The token world: a language so small that every sentence can be written down.
//!
//! V tokens, sentences of exactly L tokens, `K = V^L` of them (8⁶ = 262,144). A bigram model plays the pretrained
//! language model, a fixed formula the human judge, and everything that RLHF can only estimate is here a sum:
//!
//! ```text
//! p_ref(y) = softmax(initial)[y₁]·Π_t softmax(bigram[y_{t−1}])[y_t]
//! raw(y)   = Σ_v w_v·sat(count_v(y)) − penalty·#(y_t = y_{t−1}) + Σ_t taste[y_{t−1}][y_t]
//! sat(c)   = c for c ≤ 2, else 4 − c                  the third copy of a token hurts
//! gold(y)  = (raw(y) − E_ref[raw]) / σ_ref[raw]
//! ```
//!
//! * [`exact`]: expectation, KL, entropy, the optimum π* and log Z, the frontier (highest gold at a given KL);
//! * [`best_of_n`]: the law of the best of n samples;
//! * [`proxy`]: reward models fitted to comparisons, some of which can be cheated;
//! * [`fixed`]: the worlds of the golden vectors, of which all published numbers speak.
//!
//! Sentences are numbered in base V, the first token most significant; a law over them is `K` log-probabilities in
//! nats. Prefixes, the states of the token MDP ([`TokenMdp`](crate::TokenMdp)), are numbered by length, then in
//! base V: see [`TokenWorld::prefix_index`].

pub mod best_of_n;
pub mod exact;
pub mod fixed;
pub mod network;
pub mod proxy;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};

use crate::env::env_rng;
use crate::error::EnvError;
use exact::{expectation, log_softmax};

/// More sentences than this are not enumerated.
pub const MAX_SENTENCES: usize = 1 << 24;

/// The numbers a token world is made of. Field names are those of the golden vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenWorldParameters {
    /// Tokens, V.
    pub vocabulary: usize,
    /// Tokens of every sentence, L.
    pub length: usize,
    /// Logits of the first token, `[V]`.
    pub reference_initial_logits: Vec<f64>,
    /// Logits of the next token (column) after each token (row), `[V][V]`.
    pub reference_bigram_logits: Vec<Vec<f64>>,
    /// What the judge thinks of each token, w, `[V]`.
    pub gold_token_weight: Vec<f64>,
    /// What the judge thinks of each pair of neighbours, `[V][V]`.
    pub gold_bigram_taste: Vec<Vec<f64>>,
    /// Subtracted for each immediate repetition.
    pub gold_repeat_penalty: f64,
}

impl TokenWorldParameters {
    /// A world drawn from `seed`: initial ~ N(0, .7), bigram ~ N(0, .9), w ~ N(0, 1), taste ~ N(0, .35), penalty .8.
    pub fn from_seed(vocabulary: usize, length: usize, seed: u64) -> Self {
        let mut rng = env_rng(seed, 0);
        let mut row = |std: f64| -> Vec<f64> {
            let law = Normal::new(0.0, std).expect("a positive standard deviation");
            (0..vocabulary).map(|_| law.sample(&mut rng)).collect()
        };
        let reference_initial_logits = row(0.7);
        let reference_bigram_logits = (0..vocabulary).map(|_| row(0.9)).collect();
        let gold_token_weight = row(1.0);
        let gold_bigram_taste = (0..vocabulary).map(|_| row(0.35)).collect();
        Self {
            vocabulary,
            length,
            reference_initial_logits,
            reference_bigram_logits,
            gold_token_weight,
            gold_bigram_taste,
            gold_repeat_penalty: 0.8,
        }
    }

    fn check(&self) -> Result<(), EnvError> {
        let (v, l) = (self.vocabulary, self.length);
        let out_of_range = |key, range, got: usize| EnvError::OutOfRange { key, range, got: got as f64 };
        if v < 2 {
            return Err(out_of_range("vocabulary", "[2, ∞)", v));
        }
        let fits = u32::try_from(l).ok().and_then(|l| v.checked_pow(l)).is_some_and(|k| k <= MAX_SENTENCES);
        if l == 0 || !fits {
            return Err(out_of_range("length", "[1, ∞) with vocabulary^length ≤ 2^24", l));
        }
        let rows = [&self.reference_bigram_logits, &self.gold_bigram_taste];
        let square = rows.iter().all(|table| table.len() == v && table.iter().all(|row| row.len() == v));
        let lists = [&self.reference_initial_logits, &self.gold_token_weight];
        assert!(
            square && lists.iter().all(|list| list.len() == v),
            "one number per token and pair of tokens"
        );
        Ok(())
    }
}

/// A token world, enumerated.
#[derive(Debug, Clone)]
pub struct TokenWorld {
    parameters: TokenWorldParameters,
    log_initial: Vec<f64>,
    /// Row after row.
    log_bigram: Vec<f64>,
    raw_mean: f64,
    raw_std: f64,
    reference: Vec<f64>,
    gold: Vec<f64>,
}

impl TokenWorld {
    /// Enumerates the world of these parameters.
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`] if it has fewer than two tokens, no length, or more than [`MAX_SENTENCES`] sentences.
    ///
    /// # Panics
    /// If a table has another size than the vocabulary, or the gold reward is the same for every sentence.
    pub fn new(parameters: TokenWorldParameters) -> Result<Self, EnvError> {
        parameters.check()?;
        let log_initial = log_softmax(&parameters.reference_initial_logits);
        let log_bigram: Vec<f64> =
            parameters.reference_bigram_logits.iter().flat_map(|row| log_softmax(row)).collect();
        let (reference, mut gold, probabilities) = Walk::over(&parameters, &log_initial, &log_bigram);
        let average = |of: &dyn Fn(f64) -> f64| -> f64 {
            probabilities.iter().zip(&gold).map(|(p, raw)| p * of(*raw)).sum()
        };
        let raw_mean = average(&|raw| raw);
        let raw_std = average(&|raw| (raw - raw_mean).powi(2)).sqrt();
        assert!(raw_std > 0.0, "the gold reward is the same for every sentence");
        gold.iter_mut().for_each(|raw| *raw = (*raw - raw_mean) / raw_std);
        Ok(Self { parameters, log_initial, log_bigram, raw_mean, raw_std, reference, gold })
    }

    /// The numbers it is made of.
    pub fn parameters(&self) -> &TokenWorldParameters {
        &self.parameters
    }

    /// Tokens, V.
    pub fn vocabulary(&self) -> usize {
        self.parameters.vocabulary
    }

    /// Tokens of every sentence, L.
    pub fn length(&self) -> usize {
        self.parameters.length
    }

    /// Sentences, `K = V^L`.
    pub fn sentences(&self) -> usize {
        self.reference.len()
    }

    /// `log p_ref(y)` of every sentence, `[K]`, nats.
    pub fn reference(&self) -> &[f64] {
        &self.reference
    }

    /// `gold(y)` of every sentence, `[K]`: mean 0 and standard deviation 1 under the reference.
    pub fn gold(&self) -> &[f64] {
        &self.gold
    }

    /// Mean and standard deviation of the raw reward under the reference.
    pub fn raw_moments(&self) -> (f64, f64) {
        (self.raw_mean, self.raw_std)
    }

    /// The number of a sentence of L tokens.
    ///
    /// # Panics
    /// On another length or a token outside the vocabulary.
    pub fn index(&self, sentence: &[usize]) -> usize {
        assert_eq!(sentence.len(), self.length(), "a sentence has {} tokens", self.length());
        self.in_base(sentence)
    }

    /// The tokens of sentence number `index`.
    pub fn tokens(&self, index: usize) -> Vec<usize> {
        assert!(index < self.sentences(), "there are {} sentences, not {index}", self.sentences());
        let v = self.vocabulary();
        let mut tokens = vec![0; self.length()];
        let mut rest = index;
        for token in tokens.iter_mut().rev() {
            (*token, rest) = (rest % v, rest / v);
        }
        tokens
    }

    /// Proper prefixes, the empty one included: `(V^L − 1)/(V − 1)` states of the token MDP.
    pub fn prefixes(&self) -> usize {
        (self.sentences() - 1) / (self.vocabulary() - 1)
    }

    /// The number of a prefix of t < L tokens: after all shorter ones, `(V^t − 1)/(V − 1)`, in base V.
    ///
    /// # Panics
    /// On a token outside the vocabulary, or L or more tokens.
    pub fn prefix_index(&self, prefix: &[usize]) -> usize {
        assert!(prefix.len() < self.length(), "a prefix has fewer than {} tokens", self.length());
        let shorter = (self.vocabulary().pow(prefix.len() as u32) - 1) / (self.vocabulary() - 1);
        shorter + self.in_base(prefix)
    }

    fn in_base(&self, tokens: &[usize]) -> usize {
        let v = self.vocabulary();
        tokens.iter().fold(0, |index, &token| {
            assert!(token < v, "there are {v} tokens, not {token}");
            index * v + token
        })
    }

    /// `log p_ref(· | prefix)`, `[V]`, nats.
    pub fn next_log_probs(&self, prefix: &[usize]) -> &[f64] {
        let v = self.vocabulary();
        match prefix.last() {
            None => &self.log_initial,
            Some(last) => &self.log_bigram[last * v..(last + 1) * v],
        }
    }

    /// The number of a sentence drawn from the reference.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        let mut sentence = Vec::with_capacity(self.length());
        for _ in 0..self.length() {
            let mut left: f64 = rng.random();
            let law = self.next_log_probs(&sentence);
            let drawn = law.iter().position(|log_p| {
                left -= log_p.exp();
                left < 0.0
            });
            sentence.push(drawn.unwrap_or(law.len() - 1));
        }
        self.in_base(&sentence)
    }

    /// Scores with mean 0 and standard deviation 1 under the reference, which makes β comparable across reward models.
    ///
    /// `None` if they are the same for every sentence.
    ///
    /// # Shapes
    /// `scores: [K]` → `[K]`
    pub fn standardised(&self, scores: &[f64]) -> Option<Vec<f64>> {
        let (mean, std) = exact::moments(&self.reference, scores);
        (std > 1e-12).then(|| scores.iter().map(|score| (score - mean) / std).collect())
    }

    /// `E_π[gold]` of a law over sentences.
    ///
    /// # Shapes
    /// `law: [K]`, log-probabilities
    pub fn gold_of(&self, law: &[f64]) -> f64 {
        expectation(law, &self.gold)
    }

    /// `KL(π ‖ p_ref)` of a law over sentences, in nats per sentence.
    ///
    /// # Shapes
    /// `law: [K]`, log-probabilities
    pub fn kl_of(&self, law: &[f64]) -> f64 {
        exact::kl(law, &self.reference)
    }
}

/// What a token adds after another.
#[derive(Clone, Copy)]
struct Added {
    log_p: f64,
    p: f64,
    /// What the judge thinks of the two as neighbours; of a prefix, the raw reward so far.
    raw: f64,
}

/// The walk through all sentences, depth first: sums and products grow with the prefix.
struct Walk<'a> {
    /// `[V + 1, V]`: after each token, and after none.
    added: Vec<Added>,
    weight: &'a [f64],
    length: usize,
    counts: Vec<u32>,
    reference: Vec<f64>,
    raw: Vec<f64>,
    probabilities: Vec<f64>,
}

impl<'a> Walk<'a> {
    /// `log p_ref`, the raw reward and `p_ref` of every sentence, `[K]` each.
    fn over(
        world: &'a TokenWorldParameters,
        log_initial: &[f64],
        log_bigram: &[f64],
    ) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let v = world.vocabulary;
        let after = |(i, &log_p): (usize, &f64)| {
            let (last, token) = (i / v, i % v);
            let repeat = if last == token { world.gold_repeat_penalty } else { 0.0 };
            Added { log_p, p: log_p.exp(), raw: world.gold_bigram_taste[last][token] - repeat }
        };
        let first = |&log_p: &f64| Added { log_p, p: log_p.exp(), raw: 0.0 };
        let sentences = v.pow(world.length as u32);
        let room = || Vec::with_capacity(sentences);
        let mut walk = Walk {
            added: log_bigram.iter().enumerate().map(after).chain(log_initial.iter().map(first)).collect(),
            weight: &world.gold_token_weight,
            length: world.length,
            counts: vec![0; v],
            reference: room(),
            raw: room(),
            probabilities: room(),
        };
        walk.after(v, 0, Added { log_p: 0.0, p: 1.0, raw: 0.0 });
        (walk.reference, walk.raw, walk.probabilities)
    }

    /// Appends every sentence that begins with a prefix of `tokens` tokens, whose sums are `so_far`.
    fn after(&mut self, last: usize, tokens: usize, so_far: Added) {
        let v = self.counts.len();
        for token in 0..v {
            let added = self.added[last * v + token];
            // sat(c + 1) − sat(c) is 1 up to two copies and −1 after.
            let saturation = if self.counts[token] < 2 { self.weight[token] } else { -self.weight[token] };
            let longer = Added {
                log_p: so_far.log_p + added.log_p,
                p: so_far.p * added.p,
                raw: so_far.raw + added.raw + saturation,
            };
            if tokens + 1 == self.length {
                self.reference.push(longer.log_p);
                self.raw.push(longer.raw);
                self.probabilities.push(longer.p);
            } else {
                self.counts[token] += 1;
                self.after(token, tokens + 1, longer);
                self.counts[token] -= 1;
            }
        }
    }
}

//! A batch of preferences: two answers to each prompt, and what a frozen reference thinks of them.

use burn::tensor::{Device, Tensor, TensorData};
use rl_core::dist::{Categorical, Distribution};
use rl_core::preference::PairLogProb;
use rl_models::{Policy, Rows, Tokens};

use crate::error::{AlgoError, require};
use crate::rollout::indices;

/// One comparison, as tokens.
#[derive(Debug, Clone, Copy)]
pub struct TokenPair<'a> {
    /// What was asked.
    pub prompt: &'a [u32],
    /// The better answer.
    pub chosen: &'a [u32],
    /// The worse answer.
    pub rejected: &'a [u32],
}

/// `B` pairs as `2B` rows, the chosen answers first.
#[derive(Debug, Clone)]
pub struct PairBatch {
    /// Prompts and answers, `2B` rows.
    pub tokens: Tokens,
    /// `log π_ref` of whole answers, nats, where a reference has seen them.
    pub reference: Option<PairLogProb>,
    /// The chance that the chosen answer really is the better one `[B]`; absent is 1.
    pub certainty: Option<Tensor<1>>,
    /// How much better it is said to be, in the reward's unit `[B]`; absent is 0.
    pub margin: Option<Tensor<1>>,
}

impl PairBatch {
    /// Batches pairs of any lengths.
    ///
    /// # Errors
    /// If there is no pair, or an answer is empty: it has no log-prob to compare.
    pub fn new(pairs: &[TokenPair], pad: u32, device: &Device) -> Result<Self, AlgoError> {
        require(!pairs.is_empty(), "pairs", "[1, ∞)", 0.0)?;
        let sides =
            |pair: &TokenPair| [("chosen", pair.chosen.is_empty()), ("rejected", pair.rejected.is_empty())];
        let empty = pairs.iter().enumerate().find_map(|(i, pair)| {
            let (side, _) = sides(pair).into_iter().find(|(_, empty)| *empty)?;
            Some(AlgoError::EmptyAnswer { pair: i + 1, side })
        });
        if let Some(error) = empty {
            return Err(error);
        }
        let chosen = pairs.iter().map(|pair| (pair.prompt, pair.chosen));
        let rejected = pairs.iter().map(|pair| (pair.prompt, pair.rejected));
        let rows: Vec<(&[u32], &[u32])> = chosen.chain(rejected).collect();
        Ok(Self { tokens: Tokens::new(&rows, pad, device), reference: None, certainty: None, margin: None })
    }

    /// The same pairs, with the log-probs of a reference: computed once, `pairs` at a time.
    #[must_use]
    pub fn with_reference<M>(mut self, reference: &M, pairs: usize) -> Self
    where
        M: Policy<Obs = Tokens, Dist = Categorical>,
    {
        let (mut chosen, mut rejected) = (Vec::new(), Vec::new());
        for first in (0..self.pairs()).step_by(pairs.max(1)) {
            let some: Vec<usize> = (first..self.pairs().min(first + pairs.max(1))).collect();
            let batch = self.select(&some);
            let seen = batch.log_probs(&reference.policy(&batch.tokens));
            chosen.push(seen.chosen);
            rejected.push(seen.rejected);
        }
        self.reference = Some(PairLogProb::new(Tensor::cat(chosen, 0), Tensor::cat(rejected, 0)));
        self
    }

    /// The same pairs, with log-probs of a reference that were computed before.
    ///
    /// # Panics
    /// Unless there is one of each side per pair.
    #[must_use]
    pub fn with_reference_log_probs(mut self, chosen: &[f32], rejected: &[f32]) -> Self {
        self.reference = Some(PairLogProb::new(self.per_pair(chosen), self.per_pair(rejected)));
        self
    }

    /// The same pairs, of which the chosen answer is the better one with these chances.
    ///
    /// # Panics
    /// Unless there is one chance per pair.
    #[must_use]
    pub fn with_certainty(mut self, chances: &[f32]) -> Self {
        self.certainty = Some(self.per_pair(chances));
        self
    }

    /// The same pairs, with margins.
    ///
    /// # Panics
    /// Unless there is one margin per pair.
    #[must_use]
    pub fn with_margin(mut self, margins: &[f32]) -> Self {
        self.margin = Some(self.per_pair(margins));
        self
    }

    fn per_pair(&self, numbers: &[f32]) -> Tensor<1> {
        assert_eq!(numbers.len(), self.pairs(), "one number per pair");
        let device = self.tokens.ids.device();
        Tensor::from_data(TensorData::new(numbers.to_vec(), [numbers.len()]), &device)
    }

    /// Pairs, `B`.
    pub fn pairs(&self) -> usize {
        self.tokens.rows() / 2
    }

    /// The pairs at `pairs`.
    #[must_use]
    pub fn select(&self, pairs: &[usize]) -> Self {
        let (device, b) = (self.tokens.ids.device(), self.pairs());
        let both: Vec<usize> = pairs.iter().copied().chain(pairs.iter().map(|pair| pair + b)).collect();
        let index = indices(pairs, &device);
        let some = |t: &Tensor<1>| t.clone().select(0, index.clone());
        let log_prob = |pair: &PairLogProb| PairLogProb::new(some(&pair.chosen), some(&pair.rejected));
        Self {
            tokens: self.tokens.select(indices(&both, &device)),
            reference: self.reference.as_ref().map(log_prob),
            certainty: self.certainty.as_ref().map(some),
            margin: self.margin.as_ref().map(some),
        }
    }

    /// `Σ_t log π(y_t | x, y_<t)` of both answers, nats, padding left out.
    pub fn log_probs(&self, law: &Categorical) -> PairLogProb {
        let log_prob = law.log_prob(&self.tokens.actions()).mask_fill(self.tokens.mask().bool_not(), 0.0);
        self.halves(self.sums(log_prob))
    }

    /// Tokens of both answers.
    pub fn lengths(&self) -> PairLogProb {
        let real = self.tokens.mask();
        let ones = Tensor::<1>::ones(real.dims(), &real.device());
        self.halves(self.sums(ones.mask_fill(real.bool_not(), 0.0)))
    }

    /// `[2B·L]` → `[2B]`
    fn sums(&self, per_token: Tensor<1>) -> Tensor<1> {
        let (rows, l) = (self.tokens.rows(), self.tokens.response());
        per_token.reshape([rows, l]).sum_dim(1).reshape([rows])
    }

    /// `[2B]` → chosen, rejected.
    pub(crate) fn halves(&self, both: Tensor<1>) -> PairLogProb {
        let b = self.pairs();
        PairLogProb::new(both.clone().narrow(0, 0, b), both.narrow(0, b, b))
    }
}

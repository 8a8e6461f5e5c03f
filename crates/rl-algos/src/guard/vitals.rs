//! The numbers in which collapse shows, of one rollout of responses.

use std::collections::HashSet;

use rl_core::whiten::{Variance, moments};
use rl_models::Response;
use serde::{Deserialize, Serialize};

use crate::responses::Responses;
use crate::update::Report;

/// One rollout, as a doctor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Vitals {
    /// KL(π ‖ π_ref), nats per response.
    pub kl: f64,
    /// Mean entropy of the next token, nats.
    pub token_entropy: f64,
    /// Different token pairs among all token pairs of the rollout.   Li 2016 ("distinct-2")
    pub distinct_2: f64,
    /// Mean share of a response's token pairs that it has had before.   Welleck 2020 ("seq-rep-n", n = 2)
    pub repetition: f64,
    /// Mean tokens per response.
    pub length: f64,
    /// Share of responses that were cut.
    pub cut_share: f64,
    /// Mean score.
    pub score: f64,
    /// Standard deviation of the scores.
    pub score_std: f64,
    /// Mean of the gold reward, or of a second reward model that is not optimised, where there is one.
    pub gold: Option<f64>,
}

impl Vitals {
    /// Measures a rollout; `gold` is one number per response.
    pub fn of(responses: &Responses, gold: Option<&[f64]>) -> Self {
        let written: Vec<&[u32]> = responses.written.iter().map(|y: &Response| y.tokens.as_slice()).collect();
        let scores = moments(&responses.score, None, Variance::Biased).expect("a rollout has responses");
        Self {
            kl: responses.mean_kl(),
            token_entropy: responses.token_entropy,
            distinct_2: distinct(&written, 2),
            repetition: repetition(&written, 2),
            length: responses.mean_length(),
            cut_share: responses.cut_share(),
            score: scores.mean,
            score_std: scores.variance.sqrt(),
            gold: gold.map(Responses::mean),
        }
    }

    /// KL(π ‖ π_ref), nats per token.
    pub fn kl_per_token(&self) -> f64 {
        self.kl / self.length.max(1.0)
    }

    /// Whether every number is one.
    pub fn is_finite(&self) -> bool {
        let Self { kl, token_entropy, distinct_2, repetition, length, cut_share, score, score_std, gold } =
            *self;
        [kl, token_entropy, distinct_2, repetition, length, cut_share, score, score_std, gold.unwrap_or(0.0)]
            .iter()
            .all(|x| x.is_finite())
    }
}

impl Report for Vitals {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("objective/kl", self.kl);
        f("objective/scores", self.score);
        f("objective/scores_std", self.score_std);
        if let Some(gold) = self.gold {
            f("objective/gold", gold);
        }
        f("responses/token_entropy", self.token_entropy);
        f("responses/distinct_2", self.distinct_2);
        f("responses/repetition", self.repetition);
        f("responses/length", self.length);
        f("responses/cut", self.cut_share);
    }
}

/// Different n-grams over all n-grams of all responses; 1 where there is none.
pub fn distinct(responses: &[&[u32]], n: usize) -> f64 {
    let all: Vec<&[u32]> = responses.iter().flat_map(|y| y.windows(n)).collect();
    let different: HashSet<&[u32]> = all.iter().copied().collect();
    if all.is_empty() { 1.0 } else { different.len() as f64 / all.len() as f64 }
}

/// The share of a response's n-grams that it has had before, `1 − distinct/all`, averaged over those that have any.
pub fn repetition(responses: &[&[u32]], n: usize) -> f64 {
    let shares: Vec<f64> =
        responses.iter().filter(|y| y.len() >= n).map(|y| 1.0 - distinct(&[y], n)).collect();
    if shares.is_empty() { 0.0 } else { Responses::mean(&shares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_counts_over_the_batch_and_repetition_within_a_response() {
        let same: [&[u32]; 2] = [&[1, 2, 3], &[1, 2, 3]];
        assert_eq!((distinct(&same, 2), repetition(&same, 2)), (0.5, 0.0));
        let stuck: [&[u32]; 1] = [&[7, 7, 7, 7, 7]];
        assert_eq!((distinct(&stuck, 2), repetition(&stuck, 2)), (0.25, 0.75));
        assert_eq!((distinct(&[&[1]], 2), repetition(&[&[1]], 2)), (1.0, 0.0));
    }
}

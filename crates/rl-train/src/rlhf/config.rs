//! `[token_world]`: which world, what is optimised in it, and what the policy can express.

use anyhow::{Context, Result};
use rand_chacha::ChaCha8Rng;
use rl_envs::TokenWorld;
use rl_envs::token_world::fixed;
use rl_envs::token_world::proxy::{ProxyKind, comparisons, fit};
use rl_models::Contexts;
use serde::{Deserialize, Serialize};

/// The task of an RLHF run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenWorldConfig {
    /// Which of the fixed worlds.
    pub world: WorldSize,
    /// What the policy is trained to please.
    pub reward: RewardKind,
    /// Comparisons that a proxy is fitted to.
    pub pairs: usize,
    /// How many proxies judge together, each fitted to comparisons of its own.
    pub members: usize,
    /// How several proxies become one score.
    pub combine: Combine,
    /// Which pasts the policy tells apart.
    pub policy: TableKind,
}

impl Default for TokenWorldConfig {
    fn default() -> Self {
        let (world, reward, policy) = (WorldSize::Full, RewardKind::Unigram, TableKind::Bigram);
        Self { world, reward, pairs: 1000, members: 1, combine: Combine::Mean, policy }
    }
}

/// The worlds of the golden vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldSize {
    /// 8⁶ sentences.
    Full,
    /// 4⁴ sentences.
    Small,
}

impl WorldSize {
    /// All its sentences.
    pub fn enumerate(self) -> TokenWorld {
        match self {
            Self::Full => fixed::full(),
            Self::Small => fixed::small(),
        }
    }
}

/// What judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// The truth.
    Gold,
    /// A proxy that counts tokens: it will be cheated.
    Unigram,
    /// A proxy that counts tokens and neighbours.
    Bigram,
    /// A proxy with a hidden layer.
    Network,
}

impl RewardKind {
    /// The score of every sentence.
    ///
    /// # Errors
    /// If a proxy learns nothing from so few comparisons.
    pub fn scores(self, world: &TokenWorld, pairs: usize, rng: &mut ChaCha8Rng) -> Result<Vec<f64>> {
        let kind = match self {
            Self::Gold => return Ok(world.gold().to_vec()),
            Self::Unigram => ProxyKind::Unigram,
            Self::Bigram => ProxyKind::Bigram,
            Self::Network => ProxyKind::Network,
        };
        let drawn = comparisons(world, pairs, rng);
        fit(world, kind, &drawn, rng).with_context(|| {
            format!("a reward model of {pairs} comparisons has one score for all sentences; raise `token_world.pairs`")
        })
    }
}

/// How the scores of several reward models become one.   Coste 2023, §3
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// Their mean.
    Mean,
    /// Their mean less their standard deviation: what they disagree about is worth less.
    MeanMinusStd,
    /// The lowest.
    Worst,
}

impl Combine {
    /// One score per sentence.
    ///
    /// # Shapes
    /// `members: [M][K]` → `[K]`
    pub fn scores(self, members: &[Vec<f64>]) -> Vec<f64> {
        let n = members.len() as f64;
        let one = |sentence: usize| {
            let of = || members.iter().map(|scores| scores[sentence]);
            let mean = of().sum::<f64>() / n;
            match self {
                Self::Mean => mean,
                Self::MeanMinusStd => {
                    mean - (of().map(|score| (score - mean).powi(2)).sum::<f64>() / n).sqrt()
                }
                Self::Worst => of().fold(f64::INFINITY, f64::min),
            }
        };
        (0..members[0].len()).map(one).collect()
    }
}

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// Position and previous token: cannot be π*.
    Bigram,
    /// Everything written so far: can be π*.
    Prefix,
}

impl TableKind {
    /// Its contexts.
    pub fn contexts(self, vocabulary: usize, length: usize) -> Contexts {
        match self {
            Self::Bigram => Contexts::bigram(vocabulary, length),
            Self::Prefix => Contexts::prefix(vocabulary, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_that_agree_say_what_each_says_and_doubt_costs() {
        let members = [vec![1.0, 2.0], vec![1.0, 4.0]];
        let [mean, careful, worst] =
            [Combine::Mean, Combine::MeanMinusStd, Combine::Worst].map(|combine| combine.scores(&members));
        assert_eq!((mean, careful, worst), (vec![1.0, 3.0], vec![1.0, 2.0], vec![1.0, 2.0]));
    }
}

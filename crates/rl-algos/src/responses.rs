//! What was written and how it was judged: the data of every RLHF algorithm, before any of them assigns credit.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use rl_core::dist::{Categorical, Distribution};
use rl_core::kl::KlEstimator;
use rl_core::returns::{End, gae};
use rl_core::token_reward::{ShapedRewards, shaped_rewards};
use rl_core::whiten::{Variance, whiten_keeping_mean};
use rl_models::{Response, ResponseEnd, Tokens};

use crate::error::UpdateError;
use crate::rollout::{InLossKl, Rollout};

/// Where β·KL(π ‖ π_ref) is paid in this batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// β, in reward per nat.
    pub beta: f64,
    /// In the reward or in the loss.
    pub place: KlPlace,
    /// Which estimate is charged.
    pub estimator: KlEstimator,
}

/// Where the KL to the reference is charged. See docs/kl-control.md for what each converges to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KlPlace {
    /// Per token, as a negative reward: later tokens' KL is credited to earlier ones. Converges to π*.
    #[default]
    Reward,
    /// In the loss, on the log-ratio of the whole response. With k2 it converges to π*.
    SequenceLoss,
    /// In the loss, token by token, as GRPO has it. Ignores what a token does to the KL of later ones.
    TokenLoss,
}

/// R responses with everything that is known about them. Per-token numbers are `[R·L]`, row after row, L being the
/// longest response; they are 0 behind a response's end.
#[derive(Debug, Clone)]
pub struct Responses {
    /// Prompts and responses, padded.
    pub tokens: Tokens,
    /// What was sampled, unpadded.
    pub written: Vec<Response>,
    /// Responses per prompt, one group after another.
    pub group: usize,
    /// `log π` of each token, as the update will compute it, nats.
    pub log_prob: Vec<f32>,
    /// `log π_ref` of each token, nats.
    pub log_prob_ref: Vec<f32>,
    /// `Σ_t KL(π(·|s_t) ‖ π_ref(·|s_t))` over each response's prefixes, `[R]`, nats: unbiased for KL(π ‖ π_ref), never
    /// negative, and far less noisy than the sum of log-ratios.
    pub kl: Vec<f64>,
    /// Mean entropy of the next token, nats.
    pub token_entropy: f64,
    /// What the reward model said, `[R]`.
    pub raw_score: Vec<f64>,
    /// The score after normalisation, clip and the rule for missing ends, `[R]`.
    pub score: Vec<f64>,
    /// The price of a nat.
    pub price: Price,
    /// Whether rewards are divided by their standard deviation.
    pub reward_norm: RewardNorm,
}

/// What happens to the rewards of a batch of responses before credit is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardNorm {
    /// Nothing.
    #[default]
    Off,
    /// Divided by their standard deviation over all tokens of the batch, about a mean that stays.
    Whiten,
}

impl Responses {
    /// Responses, R.
    pub fn rows(&self) -> usize {
        self.written.len()
    }

    /// Requires that there is something to learn from in update `update`.
    ///
    /// # Errors
    /// Names the first kind of number that is not finite.
    pub fn require_finite(&self, update: u64) -> Result<(), UpdateError> {
        let real = |numbers: &[f32]| -> Vec<f64> {
            numbers.iter().zip(self.mask()).filter(|(_, real)| *real).map(|(x, _)| f64::from(*x)).collect()
        };
        let quantities = [
            ("logps/policy", real(&self.log_prob)),
            ("logps/reference", real(&self.log_prob_ref)),
            ("objective/scores", self.raw_score.clone()),
            ("objective/scores after normalisation", self.score.clone()),
        ];
        let bad = quantities
            .iter()
            .find_map(|(what, numbers)| numbers.iter().find(|x| !x.is_finite()).map(|&value| (*what, value)));
        match bad {
            None => Ok(()),
            Some((what, value)) => Err(UpdateError::NonFinite { what, value, update, epoch: 1 }),
        }
    }

    /// Columns, L.
    pub fn columns(&self) -> usize {
        self.tokens.response()
    }

    /// Which tokens are real, `[R·L]`.
    pub fn mask(&self) -> Vec<bool> {
        let columns = self.columns();
        self.written.iter().flat_map(|y| (0..columns).map(move |t| t < y.tokens.len())).collect()
    }

    /// Rewards of each response's tokens: `−β·kl_t` where β is charged in the reward, and the score on the last token.
    pub fn rewards(&self) -> Vec<ShapedRewards<f32>> {
        let (columns, mask) = (self.columns(), self.mask());
        let beta = if self.price.place == KlPlace::Reward { self.price.beta } else { 0.0 };
        let of = |r: usize| {
            let row = r * columns..(r + 1) * columns;
            shaped_rewards(
                &self.log_prob[row.clone()],
                &self.log_prob_ref[row.clone()],
                &mask[row],
                self.score[r] as f32,
                beta as f32,
                self.price.estimator,
            )
        };
        (0..self.rows()).map(of).collect()
    }

    /// The rollout of PPO: GAE over each response, which *terminates* at its last token, cut or not.
    ///
    /// `values` are V of every decision's state, `[R·L]`; those behind an end are not read.
    pub fn with_critic(&self, values: &[f32], gamma: f64, lambda: f64) -> Rollout<Tokens, Categorical> {
        let (columns, mask) = (self.columns(), self.mask());
        assert_eq!(values.len(), mask.len(), "one value per token");
        let mut rewards: Vec<f32> = self.rewards().into_iter().flat_map(|shaped| shaped.rewards).collect();
        if self.reward_norm == RewardNorm::Whiten {
            rewards = whiten_keeping_mean(&rewards, Some(&mask), Variance::Unbiased);
        }
        let mut credit = Credit::zeros(mask.len());
        for (r, y) in self.written.iter().enumerate() {
            let row = r * columns..r * columns + y.tokens.len();
            let mut ends = vec![End::Continues; y.tokens.len()];
            ends[y.tokens.len() - 1] = End::Terminated;
            let (gamma, lambda) = (gamma as f32, lambda as f32);
            let estimate = gae(&rewards[row.clone()], &values[row.clone()], &ends, 0.0, gamma, lambda);
            credit.advantage[row.clone()].copy_from_slice(&estimate.advantages);
            credit.target[row.clone()].copy_from_slice(&estimate.targets);
            credit.value[row.clone()].copy_from_slice(&values[row]);
        }
        self.rollout(credit)
    }

    /// The rollout of the critic-free algorithms: every token of a response has the response's advantage, `[R]`.
    pub fn with_advantages(&self, advantages: &[f64]) -> Rollout<Tokens, Categorical> {
        let columns = self.columns();
        let mut credit = Credit::zeros(self.rows() * columns);
        for (r, y) in self.written.iter().enumerate() {
            credit.advantage[r * columns..r * columns + y.tokens.len()].fill(advantages[r] as f32);
        }
        self.rollout(credit)
    }

    fn rollout(&self, credit: Credit) -> Rollout<Tokens, Categorical> {
        let device = self.tokens.ids.device();
        let mask = self.mask();
        let padded = mask.iter().any(|real| !real);
        let column = |v: &[f32]| vector(v, &device);
        let price = self.price;
        let in_loss = match price.place {
            KlPlace::Reward => None,
            place => Some(InLossKl {
                log_prob_ref: column(&self.log_prob_ref),
                per_response: place == KlPlace::SequenceLoss,
                estimator: price.estimator,
                beta: price.beta,
            }),
        };
        Rollout {
            obs: self.tokens.clone(),
            actions: self.tokens.actions(),
            log_prob_old: column(&self.log_prob),
            value_old: column(&credit.value),
            advantage: column(&credit.advantage),
            value_target: column(&credit.target),
            mask: padded.then(|| self.tokens.mask()),
            reference: in_loss.filter(|kl| kl.beta > 0.0),
        }
    }

    /// Mean of a number per response.
    pub fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// Measured KL(π ‖ π_ref), nats per response, averaged over all: what a controller is fed.
    pub fn mean_kl(&self) -> f64 {
        Self::mean(&self.kl)
    }

    /// The share of responses that were cut.
    pub fn cut_share(&self) -> f64 {
        let cut = self.written.iter().filter(|y| y.end == ResponseEnd::Cut).count();
        cut as f64 / self.rows() as f64
    }

    /// Mean tokens per response.
    pub fn mean_length(&self) -> f64 {
        self.written.iter().map(|y| y.tokens.len()).sum::<usize>() as f64 / self.rows() as f64
    }
}

/// Per-token credit, `[R·L]` each.
struct Credit {
    value: Vec<f32>,
    advantage: Vec<f32>,
    target: Vec<f32>,
}

impl Credit {
    fn zeros(n: usize) -> Self {
        Self { value: vec![0.0; n], advantage: vec![0.0; n], target: vec![0.0; n] }
    }
}

/// What π and π_ref say of sampled tokens. Per-token numbers are `[R·L]`, 0 behind a response's end.
#[derive(Debug, Clone, PartialEq)]
pub struct Likelihoods {
    /// `log π` of each token, nats.
    pub log_prob: Vec<f32>,
    /// `log π_ref` of each token, nats.
    pub log_prob_ref: Vec<f32>,
    /// `Σ_t KL(π(·|s_t) ‖ π_ref(·|s_t))` over each response's prefixes, `[R]`, nats.
    pub kl: Vec<f64>,
    /// Mean entropy of the next token, nats.
    pub token_entropy: f64,
}

/// One forward pass of each model over all responses, read back once.
pub fn likelihoods(
    tokens: &Tokens,
    law: &Categorical,
    law_ref: &Categorical,
    lengths: &[usize],
) -> Likelihoods {
    let actions: Tensor<1, Int> = tokens.actions();
    let pad: Tensor<1, Bool> = tokens.mask().bool_not();
    let kept = |x: Tensor<1>| x.mask_fill(pad.clone(), 0.0);
    let parts =
        [law.log_prob(&actions), law_ref.log_prob(&actions), law.kl(law_ref), law.entropy()].map(kept);
    let all: Vec<f32> =
        Tensor::cat(parts.to_vec(), 0).into_data().try_into_vec_as().expect("floats convert to f32");
    let n = all.len() / 4;
    let columns = n / lengths.len();
    let sums = |part: &[f32]| -> Vec<f64> {
        part.chunks_exact(columns).map(|row| row.iter().map(|&x| f64::from(x)).sum()).collect()
    };
    let real: usize = lengths.iter().sum();
    Likelihoods {
        log_prob: all[..n].to_vec(),
        log_prob_ref: all[n..2 * n].to_vec(),
        kl: sums(&all[2 * n..3 * n]),
        token_entropy: sums(&all[3 * n..]).iter().sum::<f64>() / real as f64,
    }
}

fn vector(values: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

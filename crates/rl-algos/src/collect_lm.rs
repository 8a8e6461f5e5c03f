//! From prompts to judged responses: what [`collect_env`](crate::collect_env) is for environments.
//!
//! The token MDP (state: prompt and tokens so far; action: the next token; reward `−β·(log π − log π_ref)` per token and
//! the score on the last) is never stepped. Responses are sampled whole, then policy and reference each read them once.
//! `rl_envs::TokenMdp` is the same process as an environment, and a test holds the two against each other.

use burn::tensor::Device;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;
use rl_core::error::CoreError;
use rl_core::kl::KlEstimator;
use rl_core::kl_control::KlController;
use rl_core::whiten::{Variance, moments};
use rl_envs::env_rng;
use rl_models::{Response, ResponseEnd, Sampler, Sampling, Tokens};
use serde::{Deserialize, Serialize};

use crate::error::{AlgoError, require};
use crate::responses::{KlPlace, Price, Responses, RewardNorm, likelihoods};

/// How responses are sampled, rewarded and priced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LmRolloutConfig {
    /// Prompts per rollout.
    pub prompts: usize,
    /// Responses per prompt; the critic-free algorithms need at least 2.
    pub group: usize,
    /// Divides the logits of policy and reference, in rollout and update alike.
    pub temperature: f64,
    /// What a response without an end earns.
    pub missing_eos: MissingEos,
    /// Normalised scores are clipped to ± this; absent is no clip.
    pub reward_clip: Option<f64>,
    /// Whether rewards are divided by their standard deviation over the batch.
    pub reward_norm: RewardNorm,
    /// Where KL(π ‖ π_ref) is charged.
    pub kl_place: KlPlace,
    /// Which estimate of it.
    pub kl_estimator: KlEstimator,
    /// β, and the rule that moves it by the measured KL, in nats per response.
    pub kl: KlController,
}

impl Default for LmRolloutConfig {
    fn default() -> Self {
        Self {
            prompts: 64,
            group: 1,
            temperature: 1.0,
            missing_eos: MissingEos::Off,
            reward_clip: None,
            reward_norm: RewardNorm::Off,
            kl_place: KlPlace::Reward,
            kl_estimator: KlEstimator::K1,
            kl: KlController::proportional(0.2, 6.0),
        }
    }
}

/// The rule for responses that were cut before they ended.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MissingEos {
    /// They are judged like the others.
    #[default]
    Off,
    /// They earn this instead of their score.
    Replace {
        /// The score; below what a bad whole response earns.
        score: f64,
    },
    /// This is taken from their score.
    Subtract {
        /// The fine.
        penalty: f64,
    },
}

impl MissingEos {
    /// The score after the rule.
    pub fn apply(self, score: f64, end: ResponseEnd) -> f64 {
        match (self, end) {
            (Self::Off, _) | (_, ResponseEnd::Stopped) => score,
            (Self::Replace { score }, ResponseEnd::Cut) => score,
            (Self::Subtract { penalty }, ResponseEnd::Cut) => score - penalty,
        }
    }
}

impl LmRolloutConfig {
    /// Responses per rollout.
    pub fn responses(&self) -> usize {
        self.prompts * self.group
    }

    /// # Errors
    /// Names the first setting that cannot work. k1 in a loss is refused: its gradient is zero in expectation.
    pub fn validate(&self) -> Result<(), AlgoError> {
        require(self.prompts > 0, "rollout.prompts", "[1, ∞)", self.prompts as f64)?;
        require(self.group > 0, "rollout.group", "[1, ∞)", self.group as f64)?;
        let t = self.temperature;
        require(t > 0.0 && t.is_finite(), "rollout.temperature", "(0, ∞)", t)?;
        if let Some(clip) = self.reward_clip {
            require(clip > 0.0 && clip.is_finite(), "rollout.reward_clip", "(0, ∞)", clip)?;
        }
        match self.missing_eos {
            MissingEos::Off => {}
            MissingEos::Replace { score } => {
                require(score.is_finite(), "rollout.missing_eos.score", "(−∞, ∞)", score)?
            }
            MissingEos::Subtract { penalty } => require(
                penalty >= 0.0 && penalty.is_finite(),
                "rollout.missing_eos.penalty",
                "[0, ∞)",
                penalty,
            )?,
        }
        if self.kl_place != KlPlace::Reward && self.kl_estimator == KlEstimator::K1 {
            return Err(CoreError::NoGradientInK1.into());
        }
        Ok(self.kl.validate()?)
    }
}

/// Gain and bias that give the *reference's* scores mean 0 and standard deviation 1, so that β means the same for every
/// reward model.   Stiennon 2020, appendix C.1; Huang 2024, detail 4.2
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoreNorm {
    /// The reference's mean score.
    pub mean: f64,
    /// Its standard deviation.
    pub std: f64,
}

impl Default for ScoreNorm {
    /// Leaves scores as they are.
    fn default() -> Self {
        Self { mean: 0.0, std: 1.0 }
    }
}

impl ScoreNorm {
    /// Fitted to scores of reference samples.
    ///
    /// # Errors
    /// [`CoreError::OutOfRange`] if they do not vary or are not finite: a constant reward model teaches nothing.
    pub fn fit(scores: &[f64]) -> Result<Self, AlgoError> {
        let of = moments(scores, None, Variance::Unbiased);
        let (mean, std) = of.map_or((0.0, 0.0), |of| (of.mean, of.variance.sqrt()));
        require(
            std > 1e-12 && std.is_finite(),
            "the reference's standard deviation of scores",
            "(0, ∞)",
            std,
        )?;
        Ok(Self { mean, std })
    }

    /// The normalised score.
    pub fn apply(&self, score: f64) -> f64 {
        (score - self.mean) / self.std
    }
}

/// Prompts, and everything that a rollout depends on beside the models.
#[derive(Debug, Clone)]
pub struct LmCollector {
    config: LmRolloutConfig,
    prompts: Vec<Vec<u32>>,
    sampling: Sampling,
    pad: u32,
    device: Device,
    state: LmCollectorState,
}

/// What a collector must remember to go on exactly. β is in here: it is logged, capped and saved with the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LmCollectorState {
    /// The rule with the β of the next rollout.
    pub controller: KlController,
    /// The scores' normalisation.
    pub score_norm: ScoreNorm,
    /// This epoch's order of the prompts, and how many of it are done.
    order: Vec<usize>,
    next: usize,
}

impl LmCollector {
    /// A collector over `prompts`, each used once per epoch in random order. The settings must have passed
    /// [`LmRolloutConfig::validate`]; `sampling.temperature` is 1, because the models are tempered.
    ///
    /// # Panics
    /// Without prompts, or if `pad` is one of the stop tokens: an end must be told from padding.
    pub fn new(
        config: LmRolloutConfig,
        prompts: Vec<Vec<u32>>,
        sampling: Sampling,
        pad: u32,
        device: &Device,
    ) -> Self {
        assert!(!prompts.is_empty(), "a rollout needs prompts");
        assert!(
            !sampling.stop.contains(&pad),
            "pad {pad} is a stop token: the model would never learn to end"
        );
        let state = LmCollectorState {
            controller: config.kl,
            score_norm: ScoreNorm::default(),
            order: vec![],
            next: 0,
        };
        Self { config, prompts, sampling, pad, device: device.clone().inner(), state }
    }

    /// The settings.
    pub fn config(&self) -> &LmRolloutConfig {
        &self.config
    }

    /// Everything the next rollout depends on, besides the models and the caller's generator.
    pub fn state(&self) -> &LmCollectorState {
        &self.state
    }

    /// Goes on from `state`.
    pub fn set_state(&mut self, state: LmCollectorState) {
        self.state = state;
    }

    /// Normalises scores by this from now on.
    pub fn set_score_norm(&mut self, norm: ScoreNorm) {
        self.state.score_norm = norm;
    }

    /// The prompts of the next rollout, by number.
    fn next_prompts(&mut self, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let state = &mut self.state;
        let mut chosen = Vec::with_capacity(self.config.prompts);
        while chosen.len() < self.config.prompts {
            if state.next == state.order.len() {
                (state.order, state.next) = ((0..self.prompts.len()).collect(), 0);
                state.order.shuffle(rng);
            }
            chosen.push(state.order[state.next]);
            state.next += 1;
        }
        chosen
    }

    /// One rollout: `prompts · group` responses of `model`, judged by `score`, read by `laws` (the model's) and
    /// `reference_laws`.
    ///
    /// `score` sees prompts and responses and answers one number each. The price is today's β; call
    /// [`move_beta`](Self::move_beta) once the update is made.
    pub fn collect<M: Sampler>(
        &mut self,
        model: &M,
        laws: impl Fn(&M, &Tokens) -> Categorical,
        reference_laws: impl Fn(&Tokens) -> Categorical,
        score: impl FnOnce(&[&[u32]], &[Response]) -> Vec<f64>,
        rng: &mut ChaCha8Rng,
    ) -> Responses {
        let seed: u64 = rng.random();
        let group = self.config.group;
        let chosen = self.next_prompts(rng);
        let prompts: Vec<&[u32]> = chosen
            .iter()
            .flat_map(|&prompt| std::iter::repeat_n(self.prompts[prompt].as_slice(), group))
            .collect();
        let mut rngs: Vec<ChaCha8Rng> = (0..prompts.len() as u64).map(|i| env_rng(seed, i)).collect();
        let written = model.respond(&prompts, &mut rngs, &self.sampling);

        let pairs: Vec<(&[u32], &[u32])> =
            prompts.iter().copied().zip(written.iter().map(|y| y.tokens.as_slice())).collect();
        let tokens = Tokens::new(&pairs, self.pad, &self.device);
        let lengths: Vec<usize> = written.iter().map(|y| y.tokens.len()).collect();
        let seen = likelihoods(&tokens, &laws(model, &tokens), &reference_laws(&tokens), &lengths);

        let raw_score = score(&prompts, &written);
        assert_eq!(raw_score.len(), written.len(), "one score per response");
        let clip = self.config.reward_clip.unwrap_or(f64::INFINITY);
        let shape = |(raw, y): (&f64, &Response)| {
            let score = self.state.score_norm.apply(*raw).clamp(-clip, clip);
            self.config.missing_eos.apply(score, y.end)
        };
        let score = raw_score.iter().zip(&written).map(shape).collect();
        let price = Price {
            beta: self.state.controller.beta(),
            place: self.config.kl_place,
            estimator: self.config.kl_estimator,
        };
        Responses {
            tokens,
            written,
            group,
            log_prob: seen.log_prob,
            log_prob_ref: seen.log_prob_ref,
            kl: seen.kl,
            token_entropy: seen.token_entropy,
            raw_score,
            score,
            price,
            reward_norm: self.config.reward_norm,
        }
    }

    /// Lets the controller move β by the KL(π ‖ π_ref) that was measured, in nats per response.
    pub fn move_beta(&mut self, kl: f64) {
        self.state.controller = self.state.controller.after(kl);
    }

    /// Makes a nat dearer by `factor`, by hand: after a collapse.
    pub fn raise_beta(&mut self, factor: f64) {
        self.state.controller = self.state.controller.scaled(factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_end_is_replaced_fined_or_forgiven() {
        let rules =
            [MissingEos::Off, MissingEos::Replace { score: -1.0 }, MissingEos::Subtract { penalty: 0.5 }];
        assert_eq!(rules.map(|rule| rule.apply(2.0, ResponseEnd::Cut)), [2.0, -1.0, 1.5]);
        assert_eq!(rules.map(|rule| rule.apply(2.0, ResponseEnd::Stopped)), [2.0; 3]);
    }

    #[test]
    fn k1_in_the_loss_is_refused_in_words() {
        for kl_place in [KlPlace::SequenceLoss, KlPlace::TokenLoss] {
            let error = LmRolloutConfig { kl_place, ..LmRolloutConfig::default() }.validate().unwrap_err();
            assert_eq!(error, CoreError::NoGradientInK1.into());
        }
        assert_eq!(LmRolloutConfig::default().validate(), Ok(()));
    }

    #[test]
    fn a_constant_reward_model_is_an_error() {
        assert!(ScoreNorm::fit(&[0.3; 10]).is_err());
        let norm = ScoreNorm::fit(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((norm.apply(2.0), norm.apply(3.0)), (0.0, 1.0));
    }
}

//! GRPO: each response against its group, token by token, with the KL to the reference in the loss. No critic.
//!
//! ```text
//! Â_i = (r_i − r̄)/(σ + 1e-4), or r_i − r̄
//! l_t = −min(ρ_t·Â, clip(ρ_t, 1−ε_low, 1+ε_high)·Â) + β·k3(π_θ, π_ref)_t
//! ```
//!
//! averaged over tokens in one of three ways ([`GrpoMean`]).   Shao 2024 (DeepSeekMath), eq. 3; Yu 2025 (DAPO); Liu 2025
//! (Dr. GRPO). What this KL converges to, and what not, is in docs/kl-control.md.

use std::collections::BTreeMap;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;
use rl_core::group;
use rl_core::grpo::{TokenLogProbs, TokenLoss, mean_over_budget, mean_over_sequences, mean_over_tokens};
use rl_core::kl::KlEstimator;
use rl_core::kl_control::KlController;
use rl_models::{Policy, Rows, Tokens};
use serde::{Deserialize, Serialize};

use crate::collect_lm::LmRolloutConfig;
use crate::error::{AlgoError, UpdateError, require};
use crate::policy_steps::{PolicySteps, PolicyStepsConfig, PolicyStepsReport};
use crate::responses::{KlPlace, Responses};
use crate::rloo::require_group;
use crate::update::{Persist, PersistError, Update};

/// The denominator of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrpoMean {
    /// Of each response's own token mean: a long answer counts as much as a short one.   Shao 2024
    #[default]
    Sequences,
    /// Over all tokens: a long answer counts by its length.   Yu 2025
    Tokens,
    /// Over a constant budget of tokens: no length is preferred.   Liu 2025
    Budget,
}

/// What a group's rewards are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupScale {
    /// Their standard deviation; easy and hopeless prompts count more.   Shao 2024
    #[default]
    Std,
    /// Nothing; β then is a price in units of the reward.   Liu 2025
    Off,
}

/// GRPO's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrpoConfig {
    /// Sampling, rewards and the price of the reference; `group` is at least 2, `kl_place` is `token_loss`.
    pub rollout: LmRolloutConfig,
    /// What a group's rewards are divided by.
    pub scale: GroupScale,
    /// The denominator of the loss.
    pub mean: GrpoMean,
    /// ρ is clipped below at 1 − ε_low.
    pub clip_low: f64,
    /// ρ is clipped above at 1 + ε_high.
    pub clip_high: f64,
    /// Epochs, minibatches, optimiser.
    pub steps: PolicyStepsConfig,
}

impl Default for GrpoConfig {
    fn default() -> Self {
        let rollout = LmRolloutConfig {
            prompts: 16,
            group: 4,
            kl_place: KlPlace::TokenLoss,
            kl_estimator: KlEstimator::K3,
            kl: KlController::fixed(0.04),
            ..LmRolloutConfig::default()
        };
        Self {
            rollout,
            scale: GroupScale::Std,
            mean: GrpoMean::Sequences,
            clip_low: 0.2,
            clip_high: 0.2,
            steps: PolicyStepsConfig::default(),
        }
    }
}

impl GrpoConfig {
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        self.rollout.validate()?;
        require_group(&self.rollout)?;
        require((0.0..1.0).contains(&self.clip_low), "clip_low", "[0, 1)", self.clip_low)?;
        require(self.clip_high >= 0.0 && self.clip_high.is_finite(), "clip_high", "[0, ∞)", self.clip_high)?;
        if self.rollout.kl_place != KlPlace::TokenLoss || self.rollout.kl_estimator != KlEstimator::K3 {
            return Err(AlgoError::GrpoKl);
        }
        self.steps.validate(self.rollout.responses())
    }
}

/// GRPO's state between updates.
#[derive(Debug, Clone)]
pub struct Grpo {
    config: GrpoConfig,
    max_tokens: usize,
    steps: PolicySteps,
}

impl Grpo {
    /// For a run of `total_updates` updates with responses of up to `max_tokens`. The settings must have passed
    /// [`GrpoConfig::validate`].
    pub fn new(config: &GrpoConfig, max_tokens: usize, total_updates: u64) -> Self {
        Self {
            config: config.clone(),
            max_tokens,
            steps: PolicySteps::new(config.steps.clone(), total_updates),
        }
    }
}

impl<M: Policy<Obs = Tokens, Dist = Categorical>> Update<M> for Grpo {
    type Data = Responses;
    type Report = PolicyStepsReport;

    fn update(
        &mut self,
        model: M,
        responses: &Responses,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, PolicyStepsReport), UpdateError> {
        let advantages = match self.config.scale {
            GroupScale::Std => group::grpo(&responses.score, responses.group),
            GroupScale::Off => group::grpo_no_scale(&responses.score, responses.group),
        };
        let rollout = responses.with_advantages(&advantages);
        let GrpoConfig { clip_low, clip_high, mean, .. } = self.config;
        let (token_loss, budget) =
            (TokenLoss { clip_low, clip_high, beta: responses.price.beta }, self.max_tokens);
        self.steps.run(model, &rollout, rng, |current, batch| {
            let old = batch.log_prob_old.clone();
            let reference = batch.reference.as_ref().map_or(old.clone(), |kl| kl.log_prob_ref.clone());
            let log_probs = TokenLogProbs { current, old, reference };
            let (mask, rows) = (batch.obs.mask(), batch.obs.rows());
            let loss = token_loss.per_token(log_probs, batch.advantage.clone(), &mask);
            match mean {
                GrpoMean::Sequences => mean_over_sequences(loss, &mask, rows),
                GrpoMean::Tokens => mean_over_tokens(loss, &mask),
                GrpoMean::Budget => mean_over_budget(loss, &mask, rows, budget),
            }
        })
    }
}

impl Persist for Grpo {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.steps.save(tensors)
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        self.steps.load(state, tensors, parameters, device)
    }
}

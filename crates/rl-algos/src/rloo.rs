//! RLOO: REINFORCE on whole responses, each against the mean of the others to the same prompt. No critic.
//!
//! ```text
//! R(y) = score(y) − β·log(π(y)/π_ref(y))          the KL is part of the reward of the response
//! Â_i  = R_i − mean_{j≠i} R_j                      an unbiased baseline
//! L(θ) = −Ê[ min(ρ·Â, clip(ρ, 1−ε, 1+ε)·Â) ]      the score function −log π·Â, where it takes one step per rollout
//! ```
//!
//! Kool 2019; Ahmadian 2024, *Back to Basics*, eq. 7

use std::collections::BTreeMap;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;
use rl_core::{group, surrogate};
use rl_models::{Policy, Tokens};
use serde::{Deserialize, Serialize};

use crate::collect_lm::LmRolloutConfig;
use crate::error::{AlgoError, UpdateError, require};
use crate::policy_steps::{PolicySteps, PolicyStepsConfig, PolicyStepsReport};
use crate::responses::Responses;
use crate::update::{Persist, PersistError, Update};

/// RLOO's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RlooConfig {
    /// Sampling, rewards and the price of KL(π ‖ π_ref); `group` is at least 2.
    pub rollout: LmRolloutConfig,
    /// ε of the clipped ratio, for more than one step per rollout; absent is no clipping.
    pub clip: Option<f64>,
    /// Epochs, minibatches, optimiser.
    pub steps: PolicyStepsConfig,
}

impl Default for RlooConfig {
    fn default() -> Self {
        let rollout = LmRolloutConfig { prompts: 16, group: 4, ..LmRolloutConfig::default() };
        Self { rollout, clip: Some(0.2), steps: PolicyStepsConfig::default() }
    }
}

impl RlooConfig {
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        self.rollout.validate()?;
        require_group(&self.rollout)?;
        if let Some(clip) = self.clip {
            require(clip > 0.0 && clip.is_finite(), "clip", "(0, ∞)", clip)?;
        }
        self.steps.validate(self.rollout.responses())
    }
}

/// A group of one has nobody to be compared with.
pub(crate) fn require_group(rollout: &LmRolloutConfig) -> Result<(), AlgoError> {
    require(rollout.group >= 2, "rollout.group", "[2, ∞)", rollout.group as f64)
}

/// RLOO's state between updates.
#[derive(Debug, Clone)]
pub struct Rloo {
    clip: Option<f64>,
    steps: PolicySteps,
}

impl Rloo {
    /// For a run of `total_updates` updates. The settings must have passed [`RlooConfig::validate`].
    pub fn new(config: &RlooConfig, total_updates: u64) -> Self {
        Self { clip: config.clip, steps: PolicySteps::new(config.steps.clone(), total_updates) }
    }
}

impl<M: Policy<Obs = Tokens, Dist = Categorical>> Update<M> for Rloo {
    type Data = Responses;
    type Report = PolicyStepsReport;

    fn update(
        &mut self,
        model: M,
        responses: &Responses,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, PolicyStepsReport), UpdateError> {
        let rewards: Vec<f64> = responses.rewards().iter().map(|shaped| f64::from(shaped.total)).collect();
        let rollout = responses.with_advantages(&group::rloo(&rewards, responses.group));
        let clip = self.clip;
        self.steps.run(model, &rollout, rng, |log_prob, batch| {
            let ratio = surrogate::ratio(log_prob.clone(), batch.log_prob_old.clone());
            let objective = match clip {
                Some(clip) => surrogate::clipped(ratio, batch.advantage.clone(), clip),
                None => surrogate::importance_weighted(ratio, batch.advantage.clone()),
            };
            let loss = batch.mean(objective).neg();
            batch.reference_penalty(&log_prob).map_or(loss.clone(), |penalty| loss + penalty)
        })
    }
}

impl Persist for Rloo {
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

//! RLHF-PPO: the PPO of [`ppo`](crate::ppo) on the token MDP. Nothing here but credit and settings.
//!
//! ```text
//! max_π E_{y∼π} score(y) − β·KL(π ‖ π_ref)
//! r_t = −β·(log π_old − log π_ref)(y_t) + 1[t = last]·score        γ = 1, GAE(λ), one row per response
//! ```
//!
//! The reference enters through the rewards (or, where asked, through a loss term that the rollout carries): PPO never
//! learns that it exists.   Ziegler 2019; Stiennon 2020; Ouyang 2022

use std::collections::BTreeMap;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;
use rl_core::kl_control::KlController;
use rl_core::schedule::Schedule;
use rl_models::{ActorCritic, Tokens};
use serde::{Deserialize, Serialize};

use crate::adam::AdamConfig;
use crate::collect_lm::LmRolloutConfig;
use crate::error::{AlgoError, UpdateError};
use crate::ppo::{Ppo, PpoConfig, PpoReport};
use crate::responses::Responses;
use crate::rollout::AdvantageNorm;
use crate::update::{Persist, PersistError, Update, numbers};

/// RLHF-PPO's settings. The defaults are those of Huang 2024 ("The N+ Implementation Details of RLHF with PPO"), with
/// the adaptive controller of Ziegler 2019.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RlhfPpoConfig {
    /// Sampling, rewards and the price of KL(π ‖ π_ref).
    pub rollout: LmRolloutConfig,
    /// Passes over each rollout.
    pub epochs: usize,
    /// Responses per gradient step; must divide the rollout.
    pub minibatch_rows: usize,
    /// Discount γ: 1, since a response is judged as a whole.
    pub gamma: f64,
    /// λ of generalised advantage estimation.
    pub gae_lambda: f64,
    /// ε of the clipped surrogate; absent is no clipping.
    pub clip: Option<Schedule>,
    /// A penalty on KL(π_old ‖ π), nats per token, within an update; absent is none.
    pub old_kl: Option<KlController>,
    /// End the update at the first minibatch whose KL(π_old ‖ π) exceeds 1.5 × this, nats per token.
    pub target_kl: Option<f64>,
    /// c_e, weight of an entropy bonus.
    pub entropy_coef: Schedule,
    /// c_v, weight of the value loss.
    pub value_coef: f64,
    /// Clip the value's move from V_old to this range; absent is the plain squared error.
    pub value_clip: Option<f64>,
    /// Over which tokens the advantage is whitened.
    pub advantage_norm: AdvantageNorm,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam or AdamW.
    pub optimizer: AdamConfig,
}

impl Default for RlhfPpoConfig {
    fn default() -> Self {
        Self {
            rollout: LmRolloutConfig::default(),
            epochs: 4,
            minibatch_rows: 64,
            gamma: 1.0,
            gae_lambda: 0.95,
            clip: Some(Schedule::Constant(0.2)),
            old_kl: None,
            target_kl: None,
            entropy_coef: Schedule::Constant(0.0),
            value_coef: 0.1,
            value_clip: Some(0.2),
            advantage_norm: AdvantageNorm::Rollout,
            max_grad_norm: Some(1.0),
            optimizer: AdamConfig { learning_rate: Schedule::Constant(1e-5), ..AdamConfig::default() },
        }
    }
}

impl RlhfPpoConfig {
    /// The settings of the PPO inside.
    pub fn ppo(&self) -> PpoConfig {
        PpoConfig {
            rollout_steps: 1,
            epochs: self.epochs,
            minibatch_rows: self.minibatch_rows,
            gamma: self.gamma,
            gae_lambda: self.gae_lambda,
            clip: self.clip,
            kl: self.old_kl,
            target_kl: self.target_kl,
            entropy_coef: self.entropy_coef,
            value_coef: self.value_coef,
            value_clip: self.value_clip,
            advantage_norm: self.advantage_norm,
            max_grad_norm: self.max_grad_norm,
            optimizer: self.optimizer.clone(),
        }
    }

    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        self.rollout.validate()?;
        self.ppo().validate(self.rollout.responses())
    }
}

/// RLHF-PPO's state between updates: PPO's.
#[derive(Debug, Clone)]
pub struct RlhfPpo {
    ppo: Ppo,
    gamma: f64,
    gae_lambda: f64,
}

impl RlhfPpo {
    /// For a run of `total_updates` updates. The settings must have passed [`RlhfPpoConfig::validate`].
    pub fn new(config: &RlhfPpoConfig, total_updates: u64) -> Self {
        Self {
            ppo: Ppo::new(config.ppo(), total_updates),
            gamma: config.gamma,
            gae_lambda: config.gae_lambda,
        }
    }
}

impl<M: ActorCritic<Obs = Tokens, Dist = Categorical>> Update<M> for RlhfPpo {
    type Data = Responses;
    type Report = PpoReport;

    fn update(
        &mut self,
        model: M,
        responses: &Responses,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, PpoReport), UpdateError> {
        let values = numbers(&model.value(&responses.tokens));
        let rollout = responses.with_critic(&values, self.gamma, self.gae_lambda);
        self.ppo.update(model, &rollout, rng)
    }
}

impl Persist for RlhfPpo {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.ppo.save(tensors)
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        self.ppo.load(state, tensors, parameters, device)
    }
}

//! Advantage actor-critic: one gradient step on each short rollout, with bootstrapped advantages.
//!
//! ```text
//! L(θ, φ) = −Ê[ log π_θ(a|s)·Â ]  −  c_e·Ê[ H(π_θ) ]  +  c_v·Ê[ ½(V_φ − R)² ]
//! ```
//!
//! With λ = 1 the advantage is the n-step return minus the value, `Â_t = Σ_k γᵏ·r_{t+k} + γⁿ·V(s_{t+n}) − V(s_t)`,
//! n running to the rollout's end; with λ < 1 it is GAE. The data are used once: no ratio, no clip, no epochs.
//!
//! Mnih et al. 2016, *Asynchronous methods for deep reinforcement learning*, algorithm S3, with its workers side by
//! side instead of asynchronous.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rl_core::diagnostics;
use rl_core::schedule::Schedule;
use rl_models::ActorCritic;
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig, AdamKind};
use crate::error::{AlgoError, UpdateError, require};
use crate::rollout::{AdvantageNorm, Rollout};
use crate::scalars::Scalars;
use crate::score_function;
use crate::update::{Persist, PersistError, Report, Update, numbers};

/// A2C's settings. The defaults are those of Stable-Baselines3, whose value loss has no ½.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2cConfig {
    /// Steps of each environment per update, `T`.
    pub rollout_steps: usize,
    /// Discount γ.
    pub gamma: f64,
    /// λ of generalised advantage estimation; 1 is the n-step return.
    pub gae_lambda: f64,
    /// c_e, weight of the entropy bonus, a number or a schedule.
    pub entropy_coef: Schedule,
    /// c_v, weight of the value loss.
    pub value_coef: f64,
    /// Whether the rollout's advantages are brought to mean 0 and standard deviation 1. The rollout is one minibatch.
    pub advantage_norm: AdvantageNorm,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// RMSProp, Adam or AdamW.
    pub optimizer: AdamConfig,
}

impl Default for A2cConfig {
    fn default() -> Self {
        Self {
            rollout_steps: 5,
            gamma: 0.99,
            gae_lambda: 1.0,
            entropy_coef: Schedule::Constant(0.0),
            value_coef: 1.0,
            advantage_norm: AdvantageNorm::Off,
            max_grad_norm: Some(0.5),
            optimizer: AdamConfig {
                kind: AdamKind::Rmsprop,
                learning_rate: Schedule::Constant(7e-4),
                beta1: 0.0,
                beta2: 0.99,
                ..AdamConfig::default()
            },
        }
    }
}

impl A2cConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        require(self.rollout_steps > 0, "rollout_steps", "[1, ∞)", self.rollout_steps as f64)?;
        require((0.0..=1.0).contains(&self.gamma), "gamma", "[0, 1]", self.gamma)?;
        require((0.0..=1.0).contains(&self.gae_lambda), "gae_lambda", "[0, 1]", self.gae_lambda)?;
        self.entropy_coef.validate("entropy_coef")?;
        require((0.0..=1e3).contains(&self.value_coef), "value_coef", "[0, 1000]", self.value_coef)?;
        let norm = self.max_grad_norm.unwrap_or(1.0);
        require(norm > 0.0 && norm.is_finite(), "max_grad_norm", "(0, ∞)", norm)?;
        self.optimizer.validate()
    }
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct A2cReport {
    /// −E[log π·Â], without the bonus.
    pub policy_loss: f64,
    /// ½(V − R)², before its weight.
    pub value_loss: f64,
    /// H(π), nats.
    pub entropy: f64,
    /// 1 − Var(R − V_old) / Var(R).
    pub explained_variance: f64,
    /// ‖∇‖₂ over all parameters, before clipping.
    pub grad_norm: f64,
    /// Step size of this update.
    pub learning_rate: f64,
}

impl Report for A2cReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.policy_loss);
        f("losses/value_loss", self.value_loss);
        f("losses/entropy", self.entropy);
        f("losses/explained_variance", self.explained_variance);
        f("losses/grad_norm", self.grad_norm);
        f("charts/learning_rate", self.learning_rate);
    }
}

/// A2C's state between updates.
#[derive(Debug, Clone)]
pub struct A2c {
    config: A2cConfig,
    /// The optimiser's moments.
    pub adam: Adam,
    /// Updates done.
    pub updates: u64,
    total_updates: u64,
}

impl A2c {
    /// A2C for a run of `total_updates` updates, over which its schedules run. The settings must have passed
    /// [`A2cConfig::validate`].
    pub fn new(config: A2cConfig, total_updates: u64) -> Self {
        Self { adam: Adam::new(config.optimizer.clone()), config, updates: 0, total_updates }
    }

    /// The share of the run that is behind: 0 in the first update, below 1 in the last.
    fn progress(&self) -> f64 {
        self.updates as f64 / self.total_updates.max(1) as f64
    }
}

impl<M: ActorCritic + Module> Update<M> for A2c {
    type Data = Rollout<M::Obs, M::Dist>;
    type Report = A2cReport;

    fn update(
        &mut self,
        model: M,
        rollout: &Self::Data,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, A2cReport), UpdateError> {
        let learning_rate = self.config.optimizer.learning_rate.at(self.progress());
        let entropy_coef = self.config.entropy_coef.at(self.progress());
        let batch = match self.config.advantage_norm {
            AdvantageNorm::Off => rollout.clone(),
            AdvantageNorm::Minibatch | AdvantageNorm::Rollout => rollout.clone().standardised(),
        };
        let (grad, seen) =
            score_function::gradient(&model, &batch, entropy_coef, self.config.value_coef, rng);
        let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
        let mut scalars =
            Scalars::new(["losses/policy_loss", "losses/entropy", "losses/value_loss", "losses/grad_norm"]);
        scalars.push([seen.policy_loss, seen.entropy, seen.value_loss, norm]);
        let [policy_loss, entropy, value_loss, grad_norm] = scalars.means(self.updates + 1, 1)?;

        let theta = self.adam.step(flatten(&model), grad, learning_rate);
        let model = unflatten(model, &theta);
        self.updates += 1;
        let (values, targets) = (numbers(&rollout.value_old), numbers(&rollout.value_target));
        let explained_variance = diagnostics::explained_variance(&values, &targets);
        let report =
            A2cReport { policy_loss, value_loss, entropy, explained_variance, grad_norm, learning_rate };
        Ok((model, report))
    }
}

impl Persist for A2c {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save_after(self.updates, tensors)
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        self.updates = self.adam.load_after(state, tensors, parameters, device)?;
        Ok(())
    }
}

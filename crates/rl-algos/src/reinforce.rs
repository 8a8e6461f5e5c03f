//! REINFORCE: the policy gradient from whole trajectories, each action weighed by what it earned.
//!
//! ```text
//! ∇J(θ) ≈ 1/N·Σ_τ Σ_t ∇log π_θ(a_t|s_t)·(G_t − b(s_t))  +  c_e·∇H(π_θ)
//! ```
//!
//! `G_t` is the return credited to the decision ([`Credit`]), and the [`Baseline`] `b` takes variance away without
//! moving the expectation, as long as it does not depend on the action. N counts decisions, not trajectories: the
//! factor between the two is the mean length, and belongs to the step size.
//!
//! Williams 1992, *Simple statistical gradient-following algorithms*, eq. 5; with a value network, §13.4 of Sutton &
//! Barto 2018.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_core::schedule::Schedule;
use rl_core::{diagnostics, kl};
use rl_models::ActorCritic;
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::collect_episodes::Credit;
use crate::error::{AlgoError, UpdateError, require};
use crate::rollout::{AdvantageNorm, Rollout};
use crate::scalars::Scalars;
use crate::score_function;
use crate::update::{Persist, PersistError, Report, Update, numbers};

/// What is subtracted from the return.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Baseline {
    /// Nothing.
    None,
    /// The mean of the credited returns so far: `b ← m·b + (1 − m)·mean(G)`, the first batch setting it.   Williams 1992,
    /// §4, "reinforcement comparison". It lags one batch behind, so that it does not depend on the actions it judges.
    RunningMean {
        /// m, in `[0, 1)`.
        momentum: f64,
    },
    /// The value network, trained on the rewards-to-go.
    Value {
        /// Weight of its loss `Ê[½(V − G)²]`.
        coef: f64,
    },
}

/// REINFORCE's settings. One update learns from one episode of each environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReinforceConfig {
    /// Discount γ.
    pub gamma: f64,
    /// Which return a decision is credited with.
    pub credit: Credit,
    /// What is subtracted from it.
    pub baseline: Baseline,
    /// Whether the differences are brought to mean 0 and standard deviation 1. The rollout is one minibatch.
    pub advantage_norm: AdvantageNorm,
    /// c_e, weight of the entropy bonus, a number or a schedule.
    pub entropy_coef: Schedule,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam, AdamW or RMSProp.
    pub optimizer: AdamConfig,
}

impl Default for ReinforceConfig {
    fn default() -> Self {
        Self {
            gamma: 0.99,
            credit: Credit::RewardToGo,
            baseline: Baseline::Value { coef: 0.5 },
            advantage_norm: AdvantageNorm::Off,
            entropy_coef: Schedule::Constant(0.0),
            max_grad_norm: None,
            optimizer: AdamConfig::default(),
        }
    }
}

impl ReinforceConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        require((0.0..=1.0).contains(&self.gamma), "gamma", "[0, 1]", self.gamma)?;
        match self.baseline {
            Baseline::None => {}
            Baseline::RunningMean { momentum } => {
                require((0.0..1.0).contains(&momentum), "baseline.momentum", "[0, 1)", momentum)?;
            }
            Baseline::Value { coef } => {
                require((0.0..=1e3).contains(&coef), "baseline.coef", "[0, 1000]", coef)?;
            }
        }
        self.entropy_coef.validate("entropy_coef")?;
        let norm = self.max_grad_norm.unwrap_or(1.0);
        require(norm > 0.0 && norm.is_finite(), "max_grad_norm", "(0, ∞)", norm)?;
        self.optimizer.validate()
    }
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReinforceReport {
    /// −E[log π·(G − b)], without the bonus.
    pub policy_loss: f64,
    /// ½(V − G)², before its weight; 0 without a value network.
    pub value_loss: f64,
    /// H(π), nats.
    pub entropy: f64,
    /// k3 estimate of KL(π_old ‖ π) after the step, nats.
    pub approx_kl: f64,
    /// 1 − Var(G − b) / Var(G).
    pub explained_variance: f64,
    /// ‖∇‖₂ over all parameters, before clipping.
    pub grad_norm: f64,
    /// Mean of the baseline over the decisions.
    pub baseline: f64,
    /// Step size of this update.
    pub learning_rate: f64,
}

impl Report for ReinforceReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.policy_loss);
        f("losses/value_loss", self.value_loss);
        f("losses/entropy", self.entropy);
        f("losses/approx_kl", self.approx_kl);
        f("losses/explained_variance", self.explained_variance);
        f("losses/grad_norm", self.grad_norm);
        f("objective/baseline", self.baseline);
        f("charts/learning_rate", self.learning_rate);
    }
}

/// REINFORCE's state between updates.
#[derive(Debug, Clone)]
pub struct Reinforce {
    config: ReinforceConfig,
    /// The optimiser's moments.
    pub adam: Adam,
    /// The running mean of the credited returns, once there was one.
    pub mean_return: Option<f64>,
    /// Updates done.
    pub updates: u64,
    /// Environment steps learnt from.
    pub steps: u64,
    total_steps: u64,
}

impl Reinforce {
    /// REINFORCE for a run of `total_steps` environment steps, over which its schedules run. The settings must have
    /// passed [`ReinforceConfig::validate`].
    pub fn new(config: ReinforceConfig, total_steps: u64) -> Self {
        let adam = Adam::new(config.optimizer.clone());
        Self { config, adam, mean_return: None, updates: 0, steps: 0, total_steps }
    }

    /// The share of the run that is behind: 0 in the first update, below 1 in the last.
    fn progress(&self) -> f64 {
        self.steps as f64 / self.total_steps.max(1) as f64
    }

    /// b of each decision `[N]`; the running mean moves on to these returns.
    fn baseline<M: ActorCritic>(&mut self, model: &M, rollout: &Rollout<M::Obs, M::Dist>) -> Vec<f32> {
        let credited = numbers(&rollout.advantage);
        match self.config.baseline {
            Baseline::None => vec![0.0; credited.len()],
            Baseline::Value { .. } => numbers(&model.value(&rollout.obs)),
            Baseline::RunningMean { momentum } => {
                let mean = credited.iter().map(|&g| f64::from(g)).sum::<f64>() / credited.len() as f64;
                let before = self.mean_return.unwrap_or(0.0);
                self.mean_return =
                    Some(self.mean_return.map_or(mean, |old| momentum * old + (1.0 - momentum) * mean));
                vec![before as f32; credited.len()]
            }
        }
    }
}

impl<M: ActorCritic + Module> Update<M> for Reinforce {
    type Data = Rollout<M::Obs, M::Dist>;
    type Report = ReinforceReport;

    fn update(
        &mut self,
        model: M,
        rollout: &Self::Data,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, ReinforceReport), UpdateError> {
        let learning_rate = self.config.optimizer.learning_rate.at(self.progress());
        let entropy_coef = self.config.entropy_coef.at(self.progress());
        let value_coef = match self.config.baseline {
            Baseline::Value { coef } => Some(coef),
            Baseline::None | Baseline::RunningMean { .. } => None,
        };
        let baseline = self.baseline(&model, rollout);
        let mut batch = rollout.clone();
        batch.advantage =
            batch.advantage - Tensor::from_data(baseline.as_slice(), &rollout.advantage.device());
        if self.config.advantage_norm != AdvantageNorm::Off {
            batch = batch.standardised();
        }
        let (grad, seen) =
            score_function::gradient(&model, &batch, entropy_coef, value_coef.unwrap_or(0.0), rng);
        let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
        let theta = self.adam.step(flatten(&model), grad, learning_rate);
        let model = unflatten(model, &theta);

        let log_ratio = model.policy(&rollout.obs).log_prob(&rollout.actions) - rollout.log_prob_old.clone();
        let mut scalars = Scalars::new([
            "losses/policy_loss",
            "losses/entropy",
            "losses/value_loss",
            "losses/grad_norm",
            "losses/approx_kl",
        ]);
        let approx_kl = rollout.mean(kl::k3(log_ratio));
        scalars.push([seen.policy_loss, seen.entropy, seen.value_loss, norm, approx_kl]);
        let [policy_loss, entropy, value_loss, grad_norm, approx_kl] = scalars.means(self.updates + 1, 1)?;
        self.updates += 1;
        self.steps += rollout.decisions() as u64;
        let report = ReinforceReport {
            policy_loss,
            value_loss: if value_coef.is_some() { value_loss } else { 0.0 },
            entropy,
            approx_kl,
            explained_variance: diagnostics::explained_variance(&baseline, &numbers(&rollout.advantage)),
            grad_norm,
            baseline: baseline.iter().map(|&b| f64::from(b)).sum::<f64>() / baseline.len() as f64,
            learning_rate,
        };
        Ok((model, report))
    }
}

impl Persist for Reinforce {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save(tensors);
        serde_json::to_value((self.updates, self.steps, self.adam.steps, self.mean_return))
            .expect("numbers become JSON")
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        let saved = serde_json::from_value(state.clone()).map_err(|e| PersistError::State(e.to_string()))?;
        let adam_steps;
        (self.updates, self.steps, adam_steps, self.mean_return) = saved;
        self.adam.load(adam_steps, tensors, parameters, device)
    }
}

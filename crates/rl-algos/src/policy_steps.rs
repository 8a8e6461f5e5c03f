//! What the critic-free algorithms share: epochs of minibatches on one rollout, an optimiser, a report.
//!
//! Each algorithm's file holds its own advantage and its own loss; the loop between them is here once.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, Distribution};
use rl_core::{diagnostics, kl, surrogate};
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use rl_models::{Policy, Rows, Tokens};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::error::{AlgoError, UpdateError, require, require_tiling};
use crate::rollout::Rollout;
use crate::scalars::Scalars;
use crate::update::{PersistError, Report};

/// How a rollout is gone through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyStepsConfig {
    /// Passes over each rollout.
    pub epochs: usize,
    /// Responses per gradient step; must divide the rollout.
    pub minibatch_rows: usize,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam or AdamW.
    pub optimizer: AdamConfig,
}

impl Default for PolicyStepsConfig {
    fn default() -> Self {
        Self { epochs: 1, minibatch_rows: 64, max_grad_norm: Some(1.0), optimizer: AdamConfig::default() }
    }
}

impl PolicyStepsConfig {
    /// # Errors
    /// Names the first setting that cannot work for rollouts of that many responses.
    pub fn validate(&self, responses: usize) -> Result<(), AlgoError> {
        require(self.epochs > 0, "steps.epochs", "[1, ∞)", self.epochs as f64)?;
        require_tiling(self.minibatch_rows, responses, 1)?;
        if let Some(norm) = self.max_grad_norm {
            require(norm > 0.0 && norm.is_finite(), "steps.max_grad_norm", "(0, ∞)", norm)?;
        }
        self.optimizer.validate()
    }
}

/// What one update of a critic-free algorithm did. Means over the update's minibatches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyStepsReport {
    /// The loss, with whatever KL it charges.
    pub policy_loss: f64,
    /// H(π) per token, nats.
    pub entropy: f64,
    /// k3 estimate of KL(π_old ‖ π), nats per token.
    pub approx_kl: f64,
    /// Share of tokens with |ρ − 1| > 0.2.
    pub clip_fraction: f64,
    /// ‖∇‖₂ before clipping.
    pub grad_norm: f64,
    /// Step size of this update.
    pub learning_rate: f64,
}

impl Report for PolicyStepsReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.policy_loss);
        f("losses/entropy", self.entropy);
        f("losses/approx_kl", self.approx_kl);
        f("losses/clipfrac", self.clip_fraction);
        f("losses/grad_norm", self.grad_norm);
        f("charts/learning_rate", self.learning_rate);
    }
}

const METRICS: [&str; 5] =
    ["losses/policy_loss", "losses/entropy", "losses/approx_kl", "losses/clipfrac", "losses/grad_norm"];

/// The optimiser and its clock.
#[derive(Debug, Clone)]
pub struct PolicySteps {
    config: PolicyStepsConfig,
    adam: Adam,
    updates: u64,
    total_updates: u64,
}

impl PolicySteps {
    /// For a run of `total_updates` updates.
    pub fn new(config: PolicyStepsConfig, total_updates: u64) -> Self {
        let adam = Adam::new(config.optimizer.clone());
        Self { config, adam, updates: 0, total_updates }
    }

    /// The model after the epochs; `loss` maps `log π` `[N]` of a minibatch's actions to `[1]`.
    ///
    /// # Errors
    /// The first number that is not finite.
    pub fn run<M>(
        &mut self,
        mut model: M,
        rollout: &Rollout<Tokens, Categorical>,
        rng: &mut ChaCha8Rng,
        loss: impl Fn(Tensor<1>, &Rollout<Tokens, Categorical>) -> Tensor<1>,
    ) -> Result<(M, PolicyStepsReport), UpdateError>
    where
        M: Policy<Obs = Tokens, Dist = Categorical>,
    {
        let progress = self.updates as f64 / self.total_updates.max(1) as f64;
        let learning_rate = self.config.optimizer.learning_rate.at(progress);
        let rows = rollout.obs.rows();
        let mut theta = flatten(&model);
        let mut order: Vec<usize> = (0..rows).collect();
        let mut scalars = Scalars::new(METRICS);
        for _ in 0..self.config.epochs {
            order.shuffle(rng);
            for chosen in order.chunks_exact(self.config.minibatch_rows) {
                let batch = rollout.select(chosen);
                let mut saw = None;
                let grad = model.gradient(&batch.obs, rng, |law| {
                    let log_prob = law.log_prob(&batch.actions);
                    let value = loss(log_prob.clone(), &batch);
                    let log_ratio = log_prob.inner() - batch.log_prob_old.clone();
                    saw = Some([
                        value.clone().inner(),
                        batch.mean(law.constant().entropy()),
                        batch.mean(kl::k3(log_ratio.clone())),
                        batch.mean(diagnostics::outside_clip(&surrogate::ratio_of(log_ratio), 0.2)),
                    ]);
                    value
                });
                let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
                let [value, entropy, approx_kl, clipped] = saw.expect("the loss was asked for");
                scalars.push([value, entropy, approx_kl, clipped, norm]);
                theta = self.adam.step(theta, grad, learning_rate);
                model = unflatten(model, &theta);
            }
        }
        let [policy_loss, entropy, approx_kl, clip_fraction, grad_norm] =
            scalars.means(self.updates + 1, rows / self.config.minibatch_rows)?;
        self.updates += 1;
        let report =
            PolicyStepsReport { policy_loss, entropy, approx_kl, clip_fraction, grad_norm, learning_rate };
        Ok((model, report))
    }

    /// Adds the optimiser's tensors to a checkpoint, and returns the other state.
    pub fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save_after(self.updates, tensors)
    }

    /// Takes both back.
    ///
    /// # Errors
    /// Names the missing or mis-shaped piece.
    pub fn load(
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

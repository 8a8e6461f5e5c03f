//! Deep Q-learning: action values learnt off-policy from a replay, against a target network that lags behind.
//!
//! ```text
//! L(θ) = Ê[ h(Q_θ(s, a) − y) ],    y = r + γ·max_a Q⁻(s′, a),   or double:   y = r + γ·Q⁻(s′, argmax_a Q_θ(s′, a))
//! θ⁻ ← (1 − τ)·θ⁻ + τ·θ            every `target_every` gradient steps
//! ```
//!
//! with h Huber's loss or half the square, and `y = r` where the process itself ended. The data are ε-greedy
//! [`Experience`]; transitions stay in the [`Replay`] and are learnt from many times. Value-based where the rest of this
//! crate is policy-based: there is no π to differentiate, only a greedy one to read off.
//!
//! Mnih et al. 2015, *Human-level control through deep reinforcement learning*, algorithm 1; van Hasselt et al. 2016,
//! *Deep reinforcement learning with double Q-learning*, eq. 4.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rl_core::q_learning::{chosen, double_value, greedy_value, target};
use rl_core::schedule::Schedule;
use rl_core::value_loss;
use rl_models::QNetwork;
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::epsilon_greedy::Experience;
use crate::error::{AlgoError, UpdateError, require};
use crate::replay::{Replay, ReplayState, TransitionBatch};
use crate::scalars::Scalars;
use crate::update::{Persist, PersistError, Report, Update, numbers, tensor_from};

/// Who picks the next action that the target values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QTarget {
    /// The target network itself: the maximum of noisy values, too high on average.   Mnih 2015
    Max,
    /// The network that learns; the target network only judges.   van Hasselt 2016, eq. 4
    #[default]
    Double,
}

/// How an error of Q is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TdLoss {
    /// Half the square within ±1, linear beyond.
    #[default]
    Huber,
    /// Half the square.
    Squared,
}

/// DQN's settings. The defaults are those of the RL zoo for CartPole, with double Q-learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnConfig {
    /// Steps of each environment between two updates, `T`.
    pub rollout_steps: usize,
    /// Gradient steps per update.
    pub gradient_steps: usize,
    /// Transitions per gradient step.
    pub minibatch_rows: usize,
    /// Transitions that the replay holds.
    pub replay: usize,
    /// Environment steps with random actions before the first gradient step.
    pub learning_starts: u64,
    /// Discount γ.
    pub gamma: f64,
    /// ε, the probability of a random action, a number or a schedule over the run.
    pub epsilon: Schedule,
    /// Who picks the next action that the target values.
    pub target: QTarget,
    /// Gradient steps between two moves of the target network.
    pub target_every: u64,
    /// τ: how far the target network moves each time; 1 is a copy.
    pub target_mix: f64,
    /// How an error of Q is charged.
    pub loss: TdLoss,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam, AdamW or RMSProp.
    pub optimizer: AdamConfig,
}

impl Default for DqnConfig {
    fn default() -> Self {
        Self {
            rollout_steps: 32,
            gradient_steps: 128,
            minibatch_rows: 64,
            replay: 100_000,
            learning_starts: 1000,
            gamma: 0.99,
            epsilon: Schedule::Ramp { from: 1.0, to: 0.04, over: 0.16 },
            target: QTarget::Double,
            target_every: 128,
            target_mix: 1.0,
            loss: TdLoss::Huber,
            max_grad_norm: Some(10.0),
            optimizer: AdamConfig { learning_rate: 2.3e-3.into(), ..AdamConfig::default() },
        }
    }
}

impl DqnConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        for (key, count) in [
            ("rollout_steps", self.rollout_steps as f64),
            ("gradient_steps", self.gradient_steps as f64),
            ("minibatch_rows", self.minibatch_rows as f64),
            ("target_every", self.target_every as f64),
        ] {
            require(count >= 1.0, key, "[1, ∞)", count)?;
        }
        let replay = self.replay as f64;
        require((1..=1 << 24).contains(&self.replay), "replay", "[1, 16777216]", replay)?;
        require((0.0..=1.0).contains(&self.gamma), "gamma", "[0, 1]", self.gamma)?;
        self.epsilon.validate("epsilon")?;
        let most = self.epsilon.at(0.0).max(self.epsilon.at(1.0));
        require(most <= 1.0, "epsilon", "[0, 1]", most)?;
        let mix = self.target_mix;
        require(mix > 0.0 && mix <= 1.0, "target_mix", "(0, 1]", mix)?;
        let norm = self.max_grad_norm.unwrap_or(1.0);
        require(norm > 0.0 && norm.is_finite(), "max_grad_norm", "(0, ∞)", norm)?;
        self.optimizer.validate()
    }
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DqnReport {
    /// What the gradient steps saw; absent while the replay still fills.
    pub learnt: Option<Learnt>,
    /// ε of the last step taken.
    pub epsilon: f64,
    /// Transitions held.
    pub replay: f64,
    /// Step size of this update.
    pub learning_rate: f64,
}

/// Means over an update's gradient steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learnt {
    /// h(Q − y).
    pub td_loss: f64,
    /// Q(s, a).
    pub q_value: f64,
    /// ‖∇‖₂, before clipping.
    pub grad_norm: f64,
}

impl Report for DqnReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        if let Some(Learnt { td_loss, q_value, grad_norm }) = self.learnt {
            f("losses/td_loss", td_loss);
            f("losses/q_value", q_value);
            f("losses/grad_norm", grad_norm);
        }
        f("charts/epsilon", self.epsilon);
        f("charts/replay", self.replay);
        f("charts/learning_rate", self.learning_rate);
    }
}

/// DQN's state between updates: optimiser, replay, target network.
#[derive(Debug, Clone)]
pub struct Dqn {
    config: DqnConfig,
    /// The optimiser's moments.
    pub adam: Adam,
    /// The last transitions.
    pub replay: Replay,
    /// θ⁻, once there was a gradient step.
    target: Option<Tensor<1>>,
    steps: u64,
    /// Updates done.
    pub updates: u64,
    total_updates: u64,
}

/// What a checkpoint says beside tensors.
#[derive(Serialize, Deserialize)]
struct Saved {
    updates: u64,
    steps: u64,
    adam_steps: u64,
    replay: ReplayState,
}

/// The target network's name among a checkpoint's tensors.
const TARGET: &str = "target";

impl Dqn {
    /// DQN for a run of `total_updates` updates, over which the step size runs. The settings must have passed
    /// [`DqnConfig::validate`].
    pub fn new(config: DqnConfig, total_updates: u64) -> Self {
        let (adam, replay) = (Adam::new(config.optimizer.clone()), Replay::new(config.replay));
        Self { config, adam, replay, target: None, steps: 0, updates: 0, total_updates }
    }

    /// y of each transition, `[N]`, on the plain device.
    fn targets(&self, model: &QNetwork, lagging: &QNetwork, batch: &TransitionBatch) -> Tensor<1> {
        let next = lagging.values(&batch.next_obs);
        let next_value = match self.config.target {
            QTarget::Max => greedy_value(next),
            QTarget::Double => double_value(model.values(&batch.next_obs), next),
        };
        target(batch.rewards.clone(), next_value, batch.terminated.clone(), self.config.gamma)
    }

    /// ∇L on one minibatch, no longer than `max_grad_norm`, and what it saw: loss, mean Q(s, a), ‖∇‖₂.
    pub fn gradient(
        &self,
        model: &QNetwork,
        lagging: &QNetwork,
        batch: &TransitionBatch,
        rng: &mut ChaCha8Rng,
    ) -> (Tensor<1>, [Tensor<1>; 3]) {
        let y = self.targets(model, lagging, batch);
        let mut seen = None;
        let grad = model.values_gradient(&batch.obs, rng, |q| {
            let q = chosen(q, batch.actions.clone());
            let q_value = q.clone().inner().mean();
            let loss = match self.config.loss {
                TdLoss::Huber => value_loss::huber(q, y),
                TdLoss::Squared => value_loss::squared(q, y),
            };
            let loss = loss.mean();
            seen = Some((loss.clone().inner(), q_value));
            loss
        });
        let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
        let (loss, q_value) = seen.expect("the loss was asked for");
        (grad, [loss, q_value, norm])
    }

    /// `gradient_steps` steps from the replay.
    fn learn(
        &mut self,
        mut model: QNetwork,
        learning_rate: f64,
        rng: &mut ChaCha8Rng,
    ) -> Result<(QNetwork, Learnt), UpdateError> {
        let mut theta = flatten(&model);
        let mut lagging_theta = self.target.take().unwrap_or_else(|| theta.clone());
        let mut lagging = unflatten(model.clone(), &lagging_theta);
        let mut scalars = Scalars::new(["losses/td_loss", "losses/q_value", "losses/grad_norm"]);
        for _ in 0..self.config.gradient_steps {
            let batch = self.replay.sample(self.config.minibatch_rows, rng, &theta.device());
            let (grad, seen) = self.gradient(&model, &lagging, &batch, rng);
            scalars.push(seen);
            theta = self.adam.step(theta, grad, learning_rate);
            model = unflatten(model, &theta);
            if self.adam.steps.is_multiple_of(self.config.target_every) {
                lagging_theta = match self.config.target_mix {
                    1.0 => theta.clone(),
                    mix => lagging_theta * (1.0 - mix) + theta.clone() * mix,
                };
                lagging = unflatten(lagging, &lagging_theta);
            }
        }
        self.target = Some(lagging_theta);
        let [td_loss, q_value, grad_norm] = scalars.means(self.updates + 1, self.config.gradient_steps)?;
        Ok((model, Learnt { td_loss, q_value, grad_norm }))
    }
}

impl Update<QNetwork> for Dqn {
    type Data = Experience;
    type Report = DqnReport;

    fn update(
        &mut self,
        mut model: QNetwork,
        experience: &Experience,
        rng: &mut ChaCha8Rng,
    ) -> Result<(QNetwork, DqnReport), UpdateError> {
        let progress = self.updates as f64 / self.total_updates.max(1) as f64;
        let learning_rate = self.config.optimizer.learning_rate.at(progress);
        self.replay.push(&experience.transitions);
        self.steps += experience.transitions.len() as u64;
        let mut learnt = None;
        if self.steps >= self.config.learning_starts {
            let saw;
            (model, saw) = self.learn(model, learning_rate, rng)?;
            learnt = Some(saw);
        }
        self.updates += 1;
        let replay = self.replay.len() as f64;
        Ok((model, DqnReport { learnt, epsilon: experience.epsilon, replay, learning_rate }))
    }
}

impl Persist for Dqn {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save(tensors);
        if let Some(target) = &self.target {
            tensors.insert(TARGET.into(), numbers(target));
        }
        let replay = self.replay.save(tensors);
        let saved = Saved { updates: self.updates, steps: self.steps, adam_steps: self.adam.steps, replay };
        serde_json::to_value(saved).expect("numbers become JSON")
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        let saved: Saved =
            serde_json::from_value(state.clone()).map_err(|e| PersistError::State(e.to_string()))?;
        self.adam.load(saved.adam_steps, tensors, parameters, device)?;
        self.replay.load(saved.replay, tensors)?;
        self.target = match saved.adam_steps {
            0 => None,
            _ => Some(tensor_from(tensors, TARGET, parameters, device)?),
        };
        (self.updates, self.steps) = (saved.updates, saved.steps);
        Ok(())
    }
}

//! Proximal policy optimisation: several epochs on one rollout, held near the policy that sampled
//! it by clipping, by a KL penalty, or by both.
//!
//! ```text
//! L(θ) = −Ê[ min(ρ·Â, clip(ρ, 1−ε, 1+ε)·Â) ]          the clipped surrogate   (eq. 7)
//!        + β·Ê[ KL(π_old ‖ π_θ) ]                      the penalty             (eq. 8)
//!        − c_e·Ê[ H(π_θ) ]                             the entropy bonus       (eq. 9)
//!        + c_v·Ê[ ½(V_φ − R)² ]                        the value loss          (eq. 9)
//! ```
//!
//! with `ρ = π_θ(a|s) / π_old(a|s)`. Without `clip` the first term is `ρ·Â`; without `kl` there is
//! no second. The penalty's KL is exact, over the whole law, from old to new; its β moves after
//! each update by the rule of [`KlController`].
//!
//! Schulman et al. 2017, *Proximal policy optimization algorithms*; details P1–P19 follow Huang et
//! al. 2022, *The 37 implementation details of PPO*.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rl_core::diagnostics::explained_variance;
use rl_core::dist::Distribution;
use rl_core::kl_control::KlController;
use rl_core::schedule::Schedule;
use rl_core::{surrogate, value_loss};
use rl_models::flat_params::{clip_grad_norm, flatten, unflatten};
use rl_models::{ActorCritic, Rows};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::error::{AlgoError, UpdateError, require, require_tiling};
use crate::rollout::Rollout;
use crate::update::{Persist, PersistError, Report, Update, numbers};

/// PPO's settings. The defaults are CleanRL's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// Steps of each environment per rollout, `T`.
    pub rollout_steps: usize,
    /// Passes over each rollout.
    pub epochs: usize,
    /// Rows per gradient step; must divide the rollout.
    pub minibatch_rows: usize,
    /// Discount γ.
    pub gamma: f64,
    /// λ of generalised advantage estimation.
    pub gae_lambda: f64,
    /// ε of the clipped surrogate, a number or a schedule; absent is no clipping.
    pub clip: Option<Schedule>,
    /// The penalty on KL(π_old ‖ π) and the rule that moves its β; absent is no penalty.
    pub kl: Option<KlController>,
    /// End the update at the first minibatch whose KL estimate (k3) exceeds 1.5 × this, nats.
    pub target_kl: Option<f64>,
    /// c_e, weight of the entropy bonus, a number or a schedule.
    pub entropy_coef: Schedule,
    /// c_v, weight of the value loss.
    pub value_coef: f64,
    /// Clip the value's move from V_old to this range; absent is the plain squared error.
    pub value_clip: Option<f64>,
    /// Over which decisions the advantage is brought to mean 0 and standard deviation 1.
    pub advantage_norm: AdvantageNorm,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam or AdamW.
    pub optimizer: AdamConfig,
}

/// Over which decisions the advantage is standardised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvantageNorm {
    /// Not at all.
    Off,
    /// Within each minibatch, as in classic PPO.
    #[default]
    Minibatch,
    /// Once over the whole rollout, as in RLHF.
    Rollout,
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            rollout_steps: 128,
            epochs: 4,
            minibatch_rows: 128,
            gamma: 0.99,
            gae_lambda: 0.95,
            clip: Some(Schedule::Constant(0.2)),
            kl: None,
            target_kl: None,
            entropy_coef: Schedule::Constant(0.01),
            value_coef: 0.5,
            value_clip: None,
            advantage_norm: AdvantageNorm::Minibatch,
            max_grad_norm: Some(0.5),
            optimizer: AdamConfig {
                learning_rate: Schedule::Linear { from: 2.5e-4, to: 0.0 },
                ..AdamConfig::default()
            },
        }
    }
}

impl PpoConfig {
    /// Checks every setting for a rollout of `envs` environments.
    ///
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self, envs: usize) -> Result<(), AlgoError> {
        require(self.rollout_steps > 0, "rollout_steps", "[1, ∞)", self.rollout_steps as f64)?;
        require(self.epochs > 0, "epochs", "[1, ∞)", self.epochs as f64)?;
        require_tiling(self.minibatch_rows, envs, self.rollout_steps)?;
        require((0.0..=1.0).contains(&self.gamma), "gamma", "[0, 1]", self.gamma)?;
        require((0.0..=1.0).contains(&self.gae_lambda), "gae_lambda", "[0, 1]", self.gae_lambda)?;
        if let Some(clip) = &self.clip {
            clip.validate("clip")?;
        }
        if let Some(kl) = &self.kl {
            kl.validate()?;
        }
        for (key, value) in [
            ("target_kl", self.target_kl),
            ("value_clip", self.value_clip),
            ("max_grad_norm", self.max_grad_norm),
        ] {
            let value = value.unwrap_or(1.0);
            require(value > 0.0 && value.is_finite(), key, "(0, ∞)", value)?;
        }
        self.entropy_coef.validate("entropy_coef")?;
        require((0.0..=1e3).contains(&self.value_coef), "value_coef", "[0, 1000]", self.value_coef)?;
        self.optimizer.validate()
    }
}

/// What one update did. Losses and fractions are means over the update's minibatches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PpoReport {
    /// −surrogate, without penalty and bonus.
    pub policy_loss: f64,
    /// ½(V − R)², before its weight.
    pub value_loss: f64,
    /// H(π), nats.
    pub entropy: f64,
    /// k1 estimate of KL(π_old ‖ π), nats.
    pub old_approx_kl: f64,
    /// k3 estimate of KL(π_old ‖ π), nats.
    pub approx_kl: f64,
    /// Share of decisions with |ρ − 1| > ε.
    pub clip_fraction: f64,
    /// 1 − Var(R − V_old) / Var(R).
    pub explained_variance: f64,
    /// ‖∇‖₂ over all parameters, before clipping.
    pub grad_norm: f64,
    /// Exact KL(π_old ‖ π) over the rollout after the update, nats, where a penalty is on.
    pub kl: Option<f64>,
    /// β of the penalty during this update, where one is on.
    pub kl_coef: Option<f64>,
    /// Step size of this update.
    pub learning_rate: f64,
    /// Epochs finished before `target_kl` ended the update (all of them, if it did not).
    pub epochs: f64,
}

impl Report for PpoReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.policy_loss);
        f("losses/value_loss", self.value_loss);
        f("losses/entropy", self.entropy);
        f("losses/old_approx_kl", self.old_approx_kl);
        f("losses/approx_kl", self.approx_kl);
        f("losses/clipfrac", self.clip_fraction);
        f("losses/explained_variance", self.explained_variance);
        f("losses/grad_norm", self.grad_norm);
        if let (Some(kl), Some(kl_coef)) = (self.kl, self.kl_coef) {
            f("losses/kl", kl);
            f("objective/kl_coef", kl_coef);
        }
        f("charts/learning_rate", self.learning_rate);
        f("charts/epochs", self.epochs);
    }
}

/// PPO's state between updates.
#[derive(Debug, Clone)]
pub struct Ppo {
    config: PpoConfig,
    /// The optimiser's moments.
    pub adam: Adam,
    /// The penalty's controller, β included.
    pub kl: Option<KlController>,
    /// Updates done.
    pub updates: u64,
    total_updates: u64,
}

/// The scalars of one minibatch, in the order of [`STATS`].
type Stats = Vec<Tensor<1>>;
const STATS: [&str; 7] = [
    "losses/policy_loss",
    "losses/value_loss",
    "losses/entropy",
    "losses/old_approx_kl",
    "losses/approx_kl",
    "losses/clipfrac",
    "losses/grad_norm",
];
const APPROX_KL: usize = 4;

impl Ppo {
    /// PPO for a run of `total_updates` updates, over which its schedules run. The settings must
    /// have passed [`PpoConfig::validate`].
    pub fn new(config: PpoConfig, total_updates: u64) -> Self {
        let (adam, kl) = (Adam::new(config.optimizer.clone()), config.kl);
        Self { config, adam, kl, updates: 0, total_updates }
    }

    /// The share of the run that is behind: 0 in the first update, below 1 in the last.
    fn progress(&self) -> f64 {
        self.updates as f64 / self.total_updates.max(1) as f64
    }

    /// −E[surrogate] + β·E[KL(π_old ‖ π)] − c_e·E[H(π)] on one minibatch; records its scalars.
    fn policy_loss<O: Rows, D: Distribution>(
        &self,
        law: &D,
        law_old: Option<&D>,
        batch: &Rollout<O, D>,
        stats: &mut Stats,
    ) -> Tensor<1> {
        let log_ratio = law.log_prob(&batch.actions) - batch.log_prob_old.clone();
        let ratio = log_ratio.clone().exp();
        let clip = self.config.clip.as_ref().map(|clip| clip.at(self.progress()));
        let objective = match clip {
            Some(epsilon) => surrogate::clipped(ratio.clone(), batch.advantage.clone(), epsilon),
            None => surrogate::importance_weighted(ratio.clone(), batch.advantage.clone()),
        };
        let policy_loss = batch.mean(objective).neg();
        let entropy = batch.mean(law.entropy());

        let (log_ratio, ratio) = (log_ratio.inner(), ratio.inner());
        let moved = (ratio.clone() - 1.0).abs().greater_elem(clip.unwrap_or(0.2)).float();
        stats.extend([
            policy_loss.clone().inner(),
            entropy.clone().inner(),
            batch.mean(log_ratio.clone().neg()),
            batch.mean(ratio - 1.0 - log_ratio),
            batch.mean(moved),
        ]);

        let mut loss = policy_loss;
        if let (Some(kl), Some(law_old)) = (self.kl, law_old) {
            loss = loss + batch.mean(law_old.kl(law)) * kl.beta();
        }
        match self.config.entropy_coef.at(self.progress()) {
            0.0 => loss,
            coef => loss - entropy * coef,
        }
    }

    /// c_v·E[½(V − R)²], clipped around V_old where asked; records the unweighted mean.
    fn value_loss<O: Rows, D: Distribution>(
        &self,
        value: Tensor<1>,
        batch: &Rollout<O, D>,
        stats: &mut Stats,
    ) -> Tensor<1> {
        let target = batch.value_target.clone();
        let errors = match self.config.value_clip {
            Some(range) => value_loss::clipped_max(value, batch.value_old.clone(), target, range),
            None => value_loss::squared(value, target),
        };
        let loss = batch.mean(errors);
        stats.insert(1, loss.clone().inner());
        loss * self.config.value_coef
    }

    /// The report's means from every minibatch's scalars, read back in one transfer.
    fn read_back(&self, stats: Vec<Stats>, per_epoch: usize) -> Result<[f64; STATS.len()], UpdateError> {
        let rows = stats.len();
        let flat: Vec<f64> = Tensor::cat(stats.into_iter().flatten().collect(), 0)
            .into_data()
            .try_to_vec_as()
            .expect("scalars are floats");
        let mut mean = [0.0; STATS.len()];
        for (i, row) in flat.chunks_exact(STATS.len()).enumerate() {
            for (k, &value) in row.iter().enumerate() {
                if !value.is_finite() {
                    let (update, epoch) = (self.updates + 1, i / per_epoch + 1);
                    return Err(UpdateError::NonFinite { what: STATS[k], value, update, epoch });
                }
                mean[k] += value / rows as f64;
            }
        }
        Ok(mean)
    }
}

impl<M: ActorCritic + Module> Update<M> for Ppo {
    type Data = Rollout<M::Obs, M::Dist>;
    type Report = PpoReport;

    fn update(
        &mut self,
        mut model: M,
        rollout: &Self::Data,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, PpoReport), UpdateError> {
        let learning_rate = self.config.optimizer.learning_rate.at(self.progress());
        let rows = rollout.obs.rows();
        let minibatches = rows / self.config.minibatch_rows;
        // π_old is the model as it is now; its laws are needed only where a penalty asks for them.
        let law_old = self.kl.map(|_| model.policy(&rollout.obs).params());

        let mut whole = rollout.clone();
        if self.config.advantage_norm == AdvantageNorm::Rollout {
            whole = whole.standardised();
        }
        let mut theta = flatten(&model);
        let mut order: Vec<usize> = (0..rows).collect();
        let mut stats: Vec<Stats> = Vec::with_capacity(self.config.epochs * minibatches);
        let mut epochs = 0;

        'update: for _ in 0..self.config.epochs {
            // One minibatch is the whole rollout in any order: nothing to shuffle, nothing to copy.
            if minibatches > 1 {
                order.shuffle(rng);
            }
            for chosen in order.chunks_exact(self.config.minibatch_rows) {
                let mut batch = if minibatches > 1 { whole.select(chosen) } else { whole.clone() };
                if self.config.advantage_norm == AdvantageNorm::Minibatch {
                    batch = batch.standardised();
                }
                let law_old = law_old.as_ref().map(|z| match minibatches {
                    1 => z.clone(),
                    _ => z.clone().select(0, whole.decisions_of(chosen)),
                });
                let (mut policy_stats, mut value_stats) = (Vec::new(), Vec::new());
                let grad = model.gradient(
                    &batch.obs,
                    rng,
                    |law| {
                        let law_old = law_old.map(|z| law.with_params(z));
                        self.policy_loss(&law, law_old.as_ref(), &batch, &mut policy_stats)
                    },
                    |value| self.value_loss(value, &batch, &mut value_stats),
                );
                let stop = match self.config.target_kl {
                    Some(target) => policy_stats[APPROX_KL - 1].clone().into_scalar::<f64>() > 1.5 * target,
                    None => false,
                };
                let (grad, norm) = match self.config.max_grad_norm {
                    Some(max) => clip_grad_norm(grad, max),
                    None => (grad.clone(), grad.square().sum().sqrt()),
                };
                let mut row = policy_stats;
                row.insert(1, value_stats.remove(0));
                row.push(norm);
                stats.push(row);
                if stop {
                    break 'update;
                }
                theta = self.adam.step(theta, grad, learning_rate);
                model = unflatten(model, &theta);
            }
            epochs += 1;
        }

        let [policy_loss, value_loss, entropy, old_approx_kl, approx_kl, clip_fraction, grad_norm] =
            self.read_back(stats, minibatches)?;
        let mut kl = None;
        let kl_coef = self.kl.map(|controller| controller.beta());
        if let (Some(controller), Some(z)) = (self.kl, law_old) {
            let law = model.policy(&rollout.obs);
            let mean = rollout.mean(law.with_params(z).kl(&law)).into_scalar::<f64>();
            self.kl = Some(controller.after(mean));
            kl = Some(mean);
        }
        self.updates += 1;
        let report = PpoReport {
            policy_loss,
            value_loss,
            entropy,
            old_approx_kl,
            approx_kl,
            clip_fraction,
            explained_variance: explained_variance(&numbers(&rollout.value_old), &numbers(&rollout.value_target)),
            grad_norm,
            kl,
            kl_coef,
            learning_rate,
            epochs: epochs as f64,
        };
        Ok((model, report))
    }
}

/// What a checkpoint holds beside the moments.
#[derive(Serialize, Deserialize)]
struct Saved {
    updates: u64,
    adam_steps: u64,
    kl: Option<KlController>,
}

impl Persist for Ppo {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save(tensors);
        let saved = Saved { updates: self.updates, adam_steps: self.adam.steps, kl: self.kl };
        serde_json::to_value(saved).expect("numbers become JSON")
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        let saved: Saved = serde_json::from_value(state.clone()).map_err(|e| PersistError::State(e.to_string()))?;
        self.adam.load(saved.adam_steps, tensors, parameters, device)?;
        (self.updates, self.kl) = (saved.updates, saved.kl);
        Ok(())
    }
}

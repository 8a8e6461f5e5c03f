//! Proximal policy optimisation: several epochs on one rollout, held near the policy that sampled
//! it by clipping, by a KL penalty, or by both.
//!
//! ```text
//! L(θ) = −Ê[ min(ρ·Â, clip(ρ, 1−ε, 1+ε)·Â) ]          the clipped surrogate   (eq. 7)
//!        + β·Ê[ KL(π_old ‖ π_θ) ]                      the penalty             (eq. 8)
//!        − c_e·Ê[ H(π_θ) ]                             the entropy bonus       (eq. 9)
//!        + c_v·Ê[ ½(V_φ − R)² ]                        the value loss          (eq. 9)
//!        + β_ref·Ê[ k(log π_θ, log π_ref) ]            only if the rollout prices a reference
//! ```
//!
//! with `ρ = π_θ(a|s) / π_old(a|s)`. Without `clip` the first term is `ρ·Â`; without `kl` there is
//! no second. The penalty's KL is exact, over the whole law, from old to new; its β moves after
//! each update by the rule of [`KlController`].
//!
//! Schulman et al. 2017, *Proximal policy optimization algorithms*; details P1–P19 follow Huang et
//! al. 2022, *The 37 implementation details of PPO*.

mod report;

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_core::kl_control::KlController;
use rl_core::schedule::Schedule;
use rl_core::{diagnostics, kl, surrogate, value_loss};
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use rl_models::{ActorCritic, Rows};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::error::{AlgoError, UpdateError, require, require_tiling};
use crate::rollout::{AdvantageNorm, Rollout};
use crate::scalars::Scalars;
use crate::team::Team;
use crate::update::{Persist, PersistError, Update};
pub use report::PpoReport;

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
    team: Team,
}

/// What [`Ppo::gradient`] says of a minibatch, in this order.
const MINIBATCH_METRICS: [&str; 7] = [
    "losses/policy_loss",
    "losses/entropy",
    "losses/old_approx_kl",
    "losses/approx_kl",
    "losses/clipfrac",
    "losses/value_loss",
    "losses/grad_norm",
];

impl Ppo {
    /// PPO for a run of `total_updates` updates, over which its schedules run. The settings must
    /// have passed [`PpoConfig::validate`].
    pub fn new(config: PpoConfig, total_updates: u64) -> Self {
        let (adam, kl) = (Adam::new(config.optimizer.clone()), config.kl);
        Self { config, adam, kl, updates: 0, total_updates, team: Team::default() }
    }

    /// Shares each minibatch with the other replicas of `team`, which must divide it evenly.
    pub fn with_team(mut self, team: Team) -> Self {
        self.team = team;
        self
    }

    /// The share of the run that is behind: 0 in the first update, below 1 in the last.
    fn progress(&self) -> f64 {
        self.updates as f64 / self.total_updates.max(1) as f64
    }

    /// −E[surrogate − β·KL(π_old ‖ π)] − c_e·E[H(π)] on one minibatch, and what it saw: policy loss,
    /// entropy, k1, k3, clip fraction.
    fn policy_loss<O: Rows, D: Distribution>(
        &self,
        law: &D,
        law_old: Option<&D>,
        batch: &Rollout<O, D>,
    ) -> (Tensor<1>, [Tensor<1>; 5]) {
        let log_prob = law.log_prob(&batch.actions);
        let log_ratio = log_prob.clone() - batch.log_prob_old.clone();
        let ratio = surrogate::ratio_of(log_ratio.clone());
        let clip = self.config.clip.as_ref().map(|clip| clip.at(self.progress()));
        let objective = match clip {
            Some(epsilon) => surrogate::clipped(ratio.clone(), batch.advantage.clone(), epsilon),
            None => surrogate::importance_weighted(ratio.clone(), batch.advantage.clone()),
        };
        let entropy_coef = self.config.entropy_coef.at(self.progress());
        // Without a bonus the entropy is only reported: no need to record it.
        let entropy = batch.mean(if entropy_coef == 0.0 { law.constant() } else { law.clone() }.entropy());
        let policy_loss = batch.mean(objective.clone()).neg();
        let (log_ratio, ratio) = (log_ratio.inner(), ratio.inner());
        let seen = [
            policy_loss.clone().inner(),
            entropy.clone().inner(),
            batch.mean(kl::k1(log_ratio.clone())),
            batch.mean(kl::k3(log_ratio)),
            batch.mean(diagnostics::outside_clip(&ratio, clip.unwrap_or(0.2))),
        ];
        let loss = match (self.kl, law_old) {
            (Some(kl), Some(law_old)) => {
                batch.mean(surrogate::kl_penalised(objective, law_old.kl(law), kl.beta())).neg()
            }
            _ => policy_loss,
        };
        let loss = batch.reference_penalty(&log_prob).map_or(loss.clone(), |penalty| loss + penalty);
        let loss = if entropy_coef == 0.0 { loss } else { loss - entropy * entropy_coef };
        (loss, seen)
    }

    /// E[½(V − R)²], clipped around V_old where asked.
    fn value_loss<O: Rows, D: Distribution>(&self, value: Tensor<1>, batch: &Rollout<O, D>) -> Tensor<1> {
        let target = batch.value_target.clone();
        batch.mean(match self.config.value_clip {
            Some(range) => value_loss::clipped_max(value, batch.value_old.clone(), target, range),
            None => value_loss::squared(value, target),
        })
    }

    /// ∇L on one minibatch, no longer than `max_grad_norm`, and its [`MINIBATCH_METRICS`].
    fn gradient<M: ActorCritic>(
        &self,
        model: &M,
        mut batch: Rollout<M::Obs, M::Dist>,
        mut z_old: Option<Tensor<2>>,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Tensor<1>, [Tensor<1>; 7]), UpdateError> {
        if self.config.advantage_norm == AdvantageNorm::Minibatch {
            batch = batch.standardised();
        }
        if let Some(share) = self.team.share(batch.obs.rows()) {
            z_old = z_old.map(|z| z.select(0, batch.decisions_of(&share)));
            batch = batch.select(&share);
        }
        let (mut policy_saw, mut value_saw) = (None, None);
        let grad = model.gradient(
            &batch.obs,
            rng,
            |law| {
                let law_old = z_old.map(|z| law.with_params(z));
                let (loss, seen) = self.policy_loss(&law, law_old.as_ref(), &batch);
                policy_saw = Some(seen);
                loss
            },
            |value| {
                let loss = self.value_loss(value, &batch);
                value_saw = Some(loss.clone().inner());
                loss * self.config.value_coef
            },
        );
        let [policy_loss, entropy, k1, k3, clipped] = policy_saw.expect("the policy's loss was asked for");
        let value_loss = value_saw.expect("the value's loss was asked for");
        let seen = [policy_loss, entropy, k1, k3, clipped, value_loss];
        let (grad, [policy_loss, entropy, k1, k3, clipped, value_loss]) =
            self.team.mean(grad, seen, self.updates + 1)?;
        let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
        Ok((grad, [policy_loss, entropy, k1, k3, clipped, value_loss, norm]))
    }

    /// Measures KL(π_old ‖ π) over the rollout, exactly, and lets the controller move β by it.
    fn move_beta<M: ActorCritic>(
        &mut self,
        model: &M,
        rollout: &Rollout<M::Obs, M::Dist>,
        z_old: Tensor<2>,
    ) -> f64 {
        let law = model.policy(&rollout.obs);
        let kl = rollout.mean(law.with_params(z_old).kl(&law)).into_scalar::<f64>();
        self.kl = self.kl.map(|controller| controller.after(kl));
        kl
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
        let z_old = self.kl.map(|_| model.policy(&rollout.obs).params());
        let whole = match self.config.advantage_norm {
            AdvantageNorm::Rollout => rollout.clone().standardised(),
            _ => rollout.clone(),
        };
        let (mut theta, mut order) = (flatten(&model), (0..rows).collect::<Vec<usize>>());
        let mut scalars = Scalars::new(MINIBATCH_METRICS);
        let mut epochs = 0;

        'update: for _ in 0..self.config.epochs {
            // One minibatch is the whole rollout in any order: nothing to shuffle, nothing to copy.
            if minibatches > 1 {
                order.shuffle(rng);
            }
            for chosen in order.chunks_exact(self.config.minibatch_rows) {
                let (batch, z_old) = match minibatches {
                    1 => (whole.clone(), z_old.clone()),
                    _ => {
                        (whole.select(chosen), z_old.clone().map(|z| z.select(0, whole.decisions_of(chosen))))
                    }
                };
                let (grad, seen) = self.gradient(&model, batch, z_old, rng)?;
                let approx_kl = seen[3].clone();
                scalars.push(seen);
                if self.config.target_kl.is_some_and(|target| approx_kl.into_scalar::<f64>() > 1.5 * target) {
                    break 'update;
                }
                theta = self.adam.step(theta, grad, learning_rate);
                model = unflatten(model, &theta);
            }
            epochs += 1;
        }

        let [policy_loss, entropy, old_approx_kl, approx_kl, clip_fraction, value_loss, grad_norm] =
            scalars.means(self.updates + 1, minibatches)?;
        let kl_coef = self.kl.map(|controller| controller.beta());
        let kl = z_old.map(|z| self.move_beta(&model, rollout, z));
        let (values, targets) = (rollout.real(&rollout.value_old), rollout.real(&rollout.value_target));
        self.updates += 1;
        let report = PpoReport {
            policy_loss,
            value_loss,
            entropy,
            old_approx_kl,
            approx_kl,
            clip_fraction,
            explained_variance: diagnostics::explained_variance(&values, &targets),
            grad_norm,
            kl,
            kl_coef,
            learning_rate,
            epochs: epochs as f64,
        };
        Ok((model, report))
    }
}

impl Persist for Ppo {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save(tensors);
        serde_json::to_value((self.updates, self.adam.steps, self.kl)).expect("numbers become JSON")
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
        (self.updates, adam_steps, self.kl) = saved;
        self.adam.load(adam_steps, tensors, parameters, device)
    }
}

//! Natural policy gradient and TRPO: steps measured in nats of the policy, not in parameters.
//!
//! ```text
//! maximise  Ê[ρ·Â]   subject to   Ê[KL(π_old ‖ π_θ)] ≤ δ
//! g = ∇Ê[ρ·Â],   F = Ê[Jᵀ·F_z·J],   x ≈ (F + λI)⁻¹·g   (conjugate gradients)
//! Δθ = √(2δ / gᵀx)·x
//! ```
//!
//! NPG takes the step (Kakade 2001, *A natural policy gradient*). TRPO checks it, since F is only the
//! second-order part of KL: it shrinks the step until the *measured* KL is at most δ and the
//! surrogate improves, and otherwise stays (Schulman et al. 2015, *Trust region policy optimization*,
//! appendix C). The one setting between them is `line_search`. Advantages are standardised over the
//! rollout; the value has its own optimiser, so policy and value are two networks ([`Separate`]).
//!
//! Products with `F` are those of [`Fisher`]; details T1–T5.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rl_core::conjugate_gradient::solve;
use rl_core::dist::Distribution;
use rl_core::line_search::{Backtracking, Search, Trial};
use rl_core::natural_gradient::trust_region_step;
use rl_core::real::dot;
use rl_core::{Schedule, diagnostics, surrogate, value_loss};
use rl_models::flat_params::{flatten, unflatten};
use rl_models::{Policy, Rows, Separate, ValueFunction};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::error::{AlgoError, UpdateError, require, require_tiling};
use crate::fisher::Fisher;
use crate::rollout::Rollout;
use crate::scalars::Scalars;
use crate::update::{Persist, PersistError, Report, Update, numbers};

/// Settings of NPG and TRPO. The defaults are those of sb3-contrib's TRPO, but for `rollout_steps`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrpoConfig {
    /// Steps of each environment per rollout, `T`.
    pub rollout_steps: usize,
    /// Discount γ.
    pub gamma: f64,
    /// λ of generalised advantage estimation.
    pub gae_lambda: f64,
    /// δ: the KL(π_old ‖ π) that a step may cost, nats. Standardised advantages are as large when only noise is
    /// left in them, so a δ that falls to 0 keeps a policy that has nothing left to learn from wandering.
    pub max_kl: Schedule,
    /// λ of `F + λI`: keeps conjugate gradients away from directions that F does not see. Advantages
    /// are standardised, so it is a share of the unit in which F is measured.
    pub damping: f64,
    /// Iterations of conjugate gradients.
    pub cg_iterations: usize,
    /// How TRPO shrinks a step that fails its check; absent is NPG, which takes every step.
    pub line_search: Option<Backtracking>,
    /// The share of the rollout's rows that Fisher products are computed on, in (0, 1].
    pub fisher_share: f64,
    /// Passes of the value's own optimiser over the rollout.
    pub value_epochs: usize,
    /// Rows per step of the value's optimiser; must divide the rollout.
    pub value_minibatch_rows: usize,
    /// The value's optimiser.
    pub optimizer: AdamConfig,
}

impl Default for TrpoConfig {
    fn default() -> Self {
        Self {
            rollout_steps: 512,
            gamma: 0.99,
            gae_lambda: 0.95,
            max_kl: Schedule::Constant(0.01),
            damping: 0.1,
            cg_iterations: 15,
            line_search: Some(Backtracking::default()),
            fisher_share: 1.0,
            value_epochs: 10,
            value_minibatch_rows: 128,
            optimizer: AdamConfig { learning_rate: 1e-3.into(), ..AdamConfig::default() },
        }
    }
}

impl TrpoConfig {
    /// Checks every setting for a rollout of `envs` environments.
    ///
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self, envs: usize) -> Result<(), AlgoError> {
        require(self.rollout_steps > 0, "rollout_steps", "[1, ∞)", self.rollout_steps as f64)?;
        require((0.0..=1.0).contains(&self.gamma), "gamma", "[0, 1]", self.gamma)?;
        require((0.0..=1.0).contains(&self.gae_lambda), "gae_lambda", "[0, 1]", self.gae_lambda)?;
        self.max_kl.validate("max_kl")?;
        require(self.max_kl.at(0.5) > 0.0, "max_kl", "(0, ∞)", self.max_kl.at(0.5))?;
        require(self.damping >= 0.0 && self.damping.is_finite(), "damping", "[0, ∞)", self.damping)?;
        require(self.cg_iterations > 0, "cg_iterations", "[1, ∞)", self.cg_iterations as f64)?;
        require(
            self.fisher_share > 0.0 && self.fisher_share <= 1.0,
            "fisher_share",
            "(0, 1]",
            self.fisher_share,
        )?;
        if let Some(search) = &self.line_search {
            search.validate()?;
        }
        require(self.value_epochs > 0, "value_epochs", "[1, ∞)", self.value_epochs as f64)?;
        require_tiling(self.value_minibatch_rows, envs, self.rollout_steps)?;
        self.optimizer.validate()
    }
}

/// What one update did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrpoReport {
    /// Ê[ρ·Â] after the step minus before, Â standardised: what the step gained.
    pub improvement: f64,
    /// What the linear model promised, `√(2δ·gᵀx)`.
    pub predicted_improvement: f64,
    /// Exact KL(π_old ‖ π) over the rollout after the step, nats.
    pub kl: f64,
    /// The share of the proposed step that was taken; 0 if it was rejected.
    pub step_scale: f64,
    /// How many lengths of the step were tried; without a line search 1.
    pub line_search_tries: f64,
    /// ‖g − (F + λI)·x‖ / ‖g‖: what conjugate gradients left unsolved.
    pub cg_residual: f64,
    /// δ of this update, nats.
    pub max_kl: f64,
    /// H(π_old), nats.
    pub entropy: f64,
    /// ½(V − R)², mean over the value's minibatches.
    pub value_loss: f64,
    /// 1 − Var(R − V_old) / Var(R).
    pub explained_variance: f64,
    /// ‖g‖₂ of the policy.
    pub grad_norm: f64,
    /// Step size of the value's optimiser.
    pub learning_rate: f64,
}

impl Report for TrpoReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("trust_region/improvement", self.improvement);
        f("trust_region/predicted_improvement", self.predicted_improvement);
        f("losses/kl", self.kl);
        f("trust_region/step_scale", self.step_scale);
        f("trust_region/line_search_tries", self.line_search_tries);
        f("trust_region/cg_residual", self.cg_residual);
        f("trust_region/max_kl", self.max_kl);
        f("losses/entropy", self.entropy);
        f("losses/value_loss", self.value_loss);
        f("losses/explained_variance", self.explained_variance);
        f("losses/grad_norm", self.grad_norm);
        f("charts/learning_rate", self.learning_rate);
    }
}

/// Where a policy step led.
struct PolicyStep<P> {
    policy: P,
    trial: Trial,
    scale: f64,
    tries: usize,
    predicted_improvement: f64,
    cg_residual: f64,
    grad_norm: f64,
}

/// NPG's or TRPO's state between updates: that of the value's optimiser.
#[derive(Debug, Clone)]
pub struct Trpo {
    config: TrpoConfig,
    /// The value's optimiser.
    pub adam: Adam,
    /// Updates done.
    pub updates: u64,
    total_updates: u64,
}

impl Trpo {
    /// For a run of `total_updates` updates, over which the value's step size runs. The settings must
    /// have passed [`TrpoConfig::validate`].
    pub fn new(config: TrpoConfig, total_updates: u64) -> Self {
        Self { adam: Adam::new(config.optimizer.clone()), config, updates: 0, total_updates }
    }

    /// One step of the policy along the natural gradient that may cost `max_kl`, checked where there is
    /// a line search. The advantages of `rollout` are taken as they are.
    fn policy_step<P: Policy>(
        &self,
        policy: P,
        rollout: &Rollout<P::Obs, P::Dist>,
        max_kl: f64,
        rng: &mut ChaCha8Rng,
    ) -> PolicyStep<P> {
        let objective = |law: &P::Dist| {
            let ratio = surrogate::ratio(law.log_prob(&rollout.actions), rollout.log_prob_old.clone());
            rollout.mean(surrogate::importance_weighted(ratio, rollout.advantage.clone()))
        };
        let theta = flatten(&policy);
        let gradient = host(&policy.gradient(&rollout.obs, rng, |law| objective(&law)));
        let seen = self.fisher_rollout(rollout, rng);
        let fisher = Fisher::new(&policy, &seen, self.config.damping);
        let product = |v: &[f64]| host(&fisher.product(&on_device_of(&theta, v), rng));
        let solution = solve(product, &gradient, self.config.cg_iterations, 1e-10);
        let step = trust_region_step(&gradient, &solution.x, max_kl);

        let law_old = policy.policy(&rollout.obs);
        let before = objective(&law_old).into_scalar::<f64>();
        let full = on_device_of(&theta, &step.step);
        let mut tried = None;
        let mut attempt = |scale: f64| {
            let moved = unflatten(policy.clone(), &(theta.clone() + full.clone() * scale));
            let law = moved.policy(&rollout.obs);
            tried = Some(moved);
            Trial {
                improvement: objective(&law).into_scalar::<f64>() - before,
                distance: rollout.mean(law_old.kl(&law)).into_scalar::<f64>(),
            }
        };
        // A rejected step leaves the parameters bit for bit: the old policy itself goes on.
        let still = Trial { improvement: 0.0, distance: 0.0 };
        let (scale, tries, trial) = match &self.config.line_search {
            None => (1.0, 1, attempt(1.0)),
            Some(search) => match search.search(max_kl, attempt) {
                Search::Accepted { scale, tries, trial } => (scale, tries, trial),
                Search::Rejected { tries } => (0.0, tries, still),
            },
        };
        let grad_norm = dot(&gradient, &gradient).sqrt();
        PolicyStep {
            policy: tried.filter(|_| scale > 0.0).unwrap_or(policy),
            trial,
            scale,
            tries,
            predicted_improvement: step.predicted_improvement,
            cg_residual: if grad_norm > 0.0 { solution.residual.sqrt() / grad_norm } else { 0.0 },
            grad_norm,
        }
    }

    /// What Fisher products are computed on: the whole rollout, or a random share of its rows.
    fn fisher_rollout<O: Rows, D: Distribution>(
        &self,
        rollout: &Rollout<O, D>,
        rng: &mut ChaCha8Rng,
    ) -> Rollout<O, D> {
        let rows = rollout.obs.rows();
        let seen = ((rows as f64 * self.config.fisher_share).ceil() as usize).clamp(1, rows);
        if seen == rows {
            return rollout.clone();
        }
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(rng);
        rollout.select(&order[..seen])
    }

    /// The value's own passes over the rollout: the network after them, and ½(V − R)².
    fn value_passes<V: ValueFunction, D: Distribution>(
        &mut self,
        mut value: V,
        rollout: &Rollout<V::Obs, D>,
        learning_rate: f64,
        rng: &mut ChaCha8Rng,
    ) -> Result<(V, f64), UpdateError> {
        let mut theta = flatten(&value);
        let mut order: Vec<usize> = (0..rollout.obs.rows()).collect();
        let per_epoch = order.len() / self.config.value_minibatch_rows;
        let mut losses = Scalars::new(["losses/value_loss"]);
        for _ in 0..self.config.value_epochs {
            order.shuffle(rng);
            for chosen in order.chunks_exact(self.config.value_minibatch_rows) {
                let batch = rollout.select(chosen);
                let grad = value.gradient(&batch.obs, rng, |v| {
                    let loss = batch.mean(value_loss::squared(v, batch.value_target.clone()));
                    losses.push([loss.clone().inner()]);
                    loss
                });
                theta = self.adam.step(theta, grad, learning_rate);
                value = unflatten(value, &theta);
            }
        }
        let [loss] = losses.means(self.updates + 1, per_epoch)?;
        Ok((value, loss))
    }
}

/// A vector `[P]` read back in double precision.
fn host(v: &Tensor<1>) -> Vec<f64> {
    v.clone().into_data().try_into_vec_as().expect("floats convert to f64")
}

/// A vector `[P]` of the host, where `like` is and as precise.
fn on_device_of(like: &Tensor<1>, v: &[f64]) -> Tensor<1> {
    Tensor::from_data(TensorData::new(v.to_vec(), [v.len()]), (&like.device(), like.dtype()))
}

impl<P: Policy, V: ValueFunction<Obs = P::Obs>> Update<Separate<P, V>> for Trpo {
    type Data = Rollout<P::Obs, P::Dist>;
    type Report = TrpoReport;

    fn update(
        &mut self,
        model: Separate<P, V>,
        rollout: &Self::Data,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Separate<P, V>, TrpoReport), UpdateError> {
        let progress = self.updates as f64 / self.total_updates.max(1) as f64;
        let learning_rate = self.config.optimizer.learning_rate.at(progress);
        let entropy = rollout.mean(model.policy.policy(&rollout.obs).entropy()).into_scalar::<f64>();
        let max_kl = self.config.max_kl.at(progress);
        let PolicyStep { policy, trial, scale, tries, predicted_improvement, cg_residual, grad_norm } =
            self.policy_step(model.policy, &rollout.clone().standardised(), max_kl, rng);
        for (what, value) in [
            ("losses/grad_norm", grad_norm),
            ("trust_region/improvement", trial.improvement),
            ("losses/kl", trial.distance),
        ] {
            if !value.is_finite() {
                return Err(UpdateError::NonFinite { what, value, update: self.updates + 1, epoch: 1 });
            }
        }
        let (value, value_loss) = self.value_passes(model.value, rollout, learning_rate, rng)?;
        self.updates += 1;
        let (values, targets) = (numbers(&rollout.value_old), numbers(&rollout.value_target));
        let report = TrpoReport {
            improvement: trial.improvement,
            predicted_improvement,
            kl: trial.distance,
            step_scale: scale,
            line_search_tries: tries as f64,
            cg_residual,
            max_kl,
            entropy,
            value_loss,
            explained_variance: diagnostics::explained_variance(&values, &targets),
            grad_norm,
            learning_rate,
        };
        Ok((Separate { policy, value }, report))
    }
}

impl Persist for Trpo {
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value {
        self.adam.save(tensors);
        // The optimiser moves the value's parameters alone; how many they are, only the moments know.
        let moments = self.adam.moments.as_ref().map_or(0, |(m, _)| m.dims()[0]);
        serde_json::to_value((self.updates, self.adam.steps, moments)).expect("numbers become JSON")
    }

    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError> {
        let saved = serde_json::from_value(state.clone()).map_err(|e| PersistError::State(e.to_string()))?;
        let (updates, adam_steps, moments): (u64, u64, usize) = saved;
        if moments > parameters {
            return Err(PersistError::State(format!(
                "the value's optimiser moved {moments} parameters, but the model has {parameters}"
            )));
        }
        self.updates = updates;
        self.adam.load(adam_steps, tensors, moments, device)
    }
}

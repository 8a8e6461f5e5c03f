//! Reward modelling: a model that scores the chosen answers of comparisons above the rejected ones.
//!
//! ```text
//! L(φ) = Ê[ −log σ(r_w − r_l − m) ] + c·Ê[ (r_w + r_l)² ]
//! ```
//!
//! m is the margin the label claims (Touvron 2023, eq. 2), 0 where it says nothing; the second term keeps scores, which
//! comparisons fix only up to a constant per prompt, around 0 (Eisenstein 2023).
//!
//! Ouyang et al. 2022, *Training language models to follow instructions*, eq. 1

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rl_core::preference::{self, accuracy, tie_fraction};
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use rl_models::lm::RewardModel;
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig, AdamKind};
use crate::error::{AlgoError, UpdateError, require};
use crate::pairs::PairBatch;
use crate::scalars::Scalars;
use crate::team::Team;
use crate::update::{Persist, PersistError, Report, Update};

/// Reward modelling's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardModelConfig {
    /// c, weight of the centring term.
    pub centring_coef: f64,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam or AdamW.
    pub optimizer: AdamConfig,
}

impl Default for RewardModelConfig {
    fn default() -> Self {
        Self {
            centring_coef: 0.0,
            max_grad_norm: Some(1.0),
            optimizer: AdamConfig { kind: AdamKind::Adamw, eps: 1e-8, ..AdamConfig::default() },
        }
    }
}

impl RewardModelConfig {
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        require((0.0..=1e3).contains(&self.centring_coef), "centring_coef", "[0, 1000]", self.centring_coef)?;
        if let Some(max) = self.max_grad_norm {
            require(max > 0.0 && max.is_finite(), "max_grad_norm", "(0, ∞)", max)?;
        }
        self.optimizer.validate()
    }
}

/// What one step did, before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RewardModelReport {
    /// The loss, centring included.
    pub loss: f64,
    /// Mean score of the chosen answers.
    pub reward_chosen: f64,
    /// Mean score of the rejected answers.
    pub reward_rejected: f64,
    /// Share of pairs in the right order; ties do not count.
    pub accuracy: f64,
    /// Share of pairs with equal scores.
    pub ties: f64,
    /// ‖∇‖₂ before clipping.
    pub grad_norm: f64,
    /// Step size.
    pub learning_rate: f64,
}

impl Report for RewardModelReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.loss);
        f("rewards/chosen", self.reward_chosen);
        f("rewards/rejected", self.reward_rejected);
        f("rewards/margins", self.reward_chosen - self.reward_rejected);
        f("rewards/accuracies", self.accuracy);
        f("rewards/ties", self.ties);
        f("losses/grad_norm", self.grad_norm);
        f("charts/learning_rate", self.learning_rate);
    }
}

const METRICS: [&str; 6] = [
    "losses/policy_loss",
    "rewards/chosen",
    "rewards/rejected",
    "rewards/accuracies",
    "rewards/ties",
    "losses/grad_norm",
];

/// Reward modelling's state between steps.
#[derive(Debug, Clone)]
pub struct RewardModelling {
    config: RewardModelConfig,
    adam: Adam,
    updates: u64,
    total_updates: u64,
    team: Team,
}

impl RewardModelling {
    /// For a run of `total_updates` steps. The settings must have passed [`RewardModelConfig::validate`].
    pub fn new(config: RewardModelConfig, total_updates: u64) -> Self {
        let adam = Adam::new(config.optimizer.clone());
        Self { config, adam, updates: 0, total_updates, team: Team::default() }
    }

    /// Shares each batch with the other replicas of `team`, which must divide it evenly.
    pub fn with_team(mut self, team: Team) -> Self {
        self.team = team;
        self
    }

    /// The loss of the scores of a batch, chosen first.
    ///
    /// # Shapes
    /// `scores: [2B]` → `[1]`
    fn loss(&self, scores: Tensor<1>, batch: &PairBatch) -> Tensor<1> {
        let scores = batch.halves(scores);
        let (chosen, rejected) = (scores.chosen, scores.rejected);
        let losses = match &batch.margin {
            Some(margin) => {
                preference::bradley_terry_with_margin(chosen.clone(), rejected.clone(), margin.clone())
            }
            None => preference::bradley_terry(chosen.clone(), rejected.clone()),
        };
        if self.config.centring_coef == 0.0 {
            return losses.mean();
        }
        losses.mean() + preference::centring(chosen, rejected).mean() * self.config.centring_coef
    }
}

impl Update<RewardModel> for RewardModelling {
    type Data = PairBatch;
    type Report = RewardModelReport;

    fn update(
        &mut self,
        model: RewardModel,
        batch: &PairBatch,
        _rng: &mut ChaCha8Rng,
    ) -> Result<(RewardModel, RewardModelReport), UpdateError> {
        let progress = self.updates as f64 / self.total_updates.max(1) as f64;
        let learning_rate = self.config.optimizer.learning_rate.at(progress);
        let share = self.team.share(batch.pairs()).map(|share| batch.select(&share));
        let batch = share.as_ref().unwrap_or(batch);
        let mut saw = None;
        let grad = model.gradient(&batch.tokens, |scores| {
            let seen = batch.halves(scores.clone().inner());
            let loss = self.loss(scores, batch);
            saw = Some((loss.clone().inner(), seen));
            loss
        });
        let (loss, seen) = saw.expect("the loss was asked for");
        let (chosen, rejected) = (seen.chosen, seen.rejected);
        let (right, equal) = (accuracy(&chosen, &rejected), tie_fraction(&chosen, &rejected));
        let seen = [loss, chosen.mean(), rejected.mean(), right, equal];
        let (grad, [loss, chosen, rejected, right, equal]) = self.team.mean(grad, seen, self.updates + 1)?;
        let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
        let mut scalars = Scalars::new(METRICS);
        scalars.push([loss, chosen, rejected, right, equal, norm]);
        let [loss, reward_chosen, reward_rejected, accuracy, ties, grad_norm] =
            scalars.means(self.updates + 1, 1)?;
        let theta = self.adam.step(flatten(&model), grad, learning_rate);
        let model = unflatten(model, &theta);
        self.updates += 1;
        let report = RewardModelReport {
            loss,
            reward_chosen,
            reward_rejected,
            accuracy,
            ties,
            grad_norm,
            learning_rate,
        };
        Ok((model, report))
    }
}

impl Persist for RewardModelling {
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

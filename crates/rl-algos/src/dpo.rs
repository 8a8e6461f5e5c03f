//! Direct preference optimisation and its relatives: the policy as its own reward model.
//!
//! ```text
//! r̂(x,y) = β·log(π_θ(y|x) / π_ref(y|x))          the reward of which π_θ is the KL-regularised optimum   (eq. 5)
//! L(θ)   = Ê[ p·ℓ(y_w, y_l) + (1−p)·ℓ(y_l, y_w) ] + c·Ê[ −log π_θ(y_w|x)/|y_w| ]
//! ℓ      = −log σ(r̂(x,y_w) − r̂(x,y_l))           or another of the family                              (eq. 7)
//! ∇ℓ     = −β·σ(r̂_l − r̂_w)·[∇log π(y_w) − ∇log π(y_l)]
//! ```
//!
//! p is the chance that the label is right ([`PairBatch::certainty`]), 1 where nothing is said. Each loss is a function
//! of [`rl_core::preference`]; here they are only chosen, averaged and followed downhill. A step may be split into
//! equal parts whose gradients add up to that of the whole.
//!
//! Rafailov et al. 2023, *Direct preference optimization*

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;
use rl_core::preference::{self, PairLogProb, accuracy, implicit_reward, tie_fraction};
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use rl_models::{Policy, Tokens};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig, AdamKind};
use crate::error::{AlgoError, UpdateError, require};
use crate::pairs::PairBatch;
use crate::scalars::Scalars;
use crate::team::Team;
use crate::update::{Persist, PersistError, Report, Update};

/// Which loss of the family; see [`rl_core::preference`] for what each does.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs)] // each is named after its function, where it is explained
pub enum PreferenceLoss {
    #[default]
    Dpo,
    Cdpo {
        label_smoothing: f64,
    },
    Robust {
        label_smoothing: f64,
    },
    Ipo,
    IpoNorm,
    Hinge,
    ExoPair {
        label_smoothing: f64,
    },
    SppoHard,
    NcaPair,
    BcoPair,
    ApoZero,
    ApoDown,
    KtoPair,
}

/// DPO's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpoConfig {
    /// Which loss.
    pub loss: PreferenceLoss,
    /// β: how far the policy may go from its reference, per unit of reward.
    pub beta: f64,
    /// c, weight of the chosen answers' own negative log-prob per token.
    pub sft_coef: f64,
    /// Parts of equal size that a step's gradient is added up from.
    pub accumulate: usize,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam or AdamW.
    pub optimizer: AdamConfig,
}

impl Default for DpoConfig {
    fn default() -> Self {
        Self {
            loss: PreferenceLoss::Dpo,
            beta: 0.1,
            sft_coef: 0.0,
            accumulate: 1,
            max_grad_norm: Some(1.0),
            optimizer: AdamConfig { kind: AdamKind::Adamw, eps: 1e-8, ..AdamConfig::default() },
        }
    }
}

impl DpoConfig {
    /// Checks every setting for steps of `pairs` pairs.
    ///
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self, pairs: usize) -> Result<(), AlgoError> {
        require(self.beta > 0.0 && self.beta.is_finite(), "beta", "(0, ∞)", self.beta)?;
        require((0.0..=1e3).contains(&self.sft_coef), "sft_coef", "[0, 1000]", self.sft_coef)?;
        let even = self.accumulate > 0 && pairs.is_multiple_of(self.accumulate);
        require(even, "accumulate", "a divisor of the pairs of a step", self.accumulate as f64)?;
        if let PreferenceLoss::Cdpo { label_smoothing: e }
        | PreferenceLoss::Robust { label_smoothing: e }
        | PreferenceLoss::ExoPair { label_smoothing: e } = self.loss
        {
            require((0.0..0.5).contains(&e), "loss.label_smoothing", "[0, 0.5)", e)?;
        }
        // Its KL is the batch's: parts would have others.
        let whole = self.loss != PreferenceLoss::KtoPair || self.accumulate == 1;
        require(
            whole,
            "accumulate",
            "1, since kto_pair compares with the whole batch",
            self.accumulate as f64,
        )?;
        if let Some(max) = self.max_grad_norm {
            require(max > 0.0 && max.is_finite(), "max_grad_norm", "(0, ∞)", max)?;
        }
        self.optimizer.validate()
    }
}

/// What one step did, before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DpoReport {
    /// The loss, the SFT term included.
    pub loss: f64,
    /// Mean implicit reward of the chosen answers.
    pub reward_chosen: f64,
    /// Mean implicit reward of the rejected answers.
    pub reward_rejected: f64,
    /// Share of pairs with the larger implicit reward on the chosen side; ties do not count.
    pub accuracy: f64,
    /// Share of pairs with equal implicit rewards.
    pub ties: f64,
    /// Mean `log π` of the chosen answers, nats.
    pub log_prob_chosen: f64,
    /// Mean `log π` of the rejected answers, nats.
    pub log_prob_rejected: f64,
    /// ‖∇‖₂ before clipping.
    pub grad_norm: f64,
    /// Step size.
    pub learning_rate: f64,
}

impl Report for DpoReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.loss);
        f("rewards/chosen", self.reward_chosen);
        f("rewards/rejected", self.reward_rejected);
        f("rewards/margins", self.reward_chosen - self.reward_rejected);
        f("rewards/accuracies", self.accuracy);
        f("rewards/ties", self.ties);
        f("logps/chosen", self.log_prob_chosen);
        f("logps/rejected", self.log_prob_rejected);
        f("losses/grad_norm", self.grad_norm);
        f("charts/learning_rate", self.learning_rate);
    }
}

const METRICS: [&str; 8] = [
    "losses/policy_loss",
    "rewards/chosen",
    "rewards/rejected",
    "rewards/accuracies",
    "rewards/ties",
    "logps/chosen",
    "logps/rejected",
    "losses/grad_norm",
];

/// DPO's state between steps.
#[derive(Debug, Clone)]
pub struct Dpo {
    config: DpoConfig,
    adam: Adam,
    updates: u64,
    total_updates: u64,
    team: Team,
}

impl Dpo {
    /// DPO for a run of `total_updates` steps. The settings must have passed [`DpoConfig::validate`].
    pub fn new(config: DpoConfig, total_updates: u64) -> Self {
        let adam = Adam::new(config.optimizer.clone());
        Self { config, adam, updates: 0, total_updates, team: Team::default() }
    }

    /// Shares each part of a step with the other replicas of `team`, which must divide it evenly. Not for `kto_pair`,
    /// whose KL is the batch's.
    pub fn with_team(mut self, team: Team) -> Self {
        self.team = team;
        self
    }

    /// The loss of each pair `[B]`.
    fn per_pair(&self, policy: PairLogProb, reference: PairLogProb, lengths: PairLogProb) -> Tensor<1> {
        let beta = self.config.beta;
        match self.config.loss {
            PreferenceLoss::Dpo => preference::dpo(policy, reference, beta),
            PreferenceLoss::Cdpo { label_smoothing } => {
                preference::cdpo(policy, reference, beta, label_smoothing)
            }
            PreferenceLoss::Robust { label_smoothing } => {
                preference::robust(policy, reference, beta, label_smoothing)
            }
            PreferenceLoss::Ipo => preference::ipo(policy, reference, beta),
            PreferenceLoss::IpoNorm => preference::ipo_norm(policy, reference, lengths, beta),
            PreferenceLoss::Hinge => preference::hinge(policy, reference, beta),
            PreferenceLoss::ExoPair { label_smoothing } => {
                preference::exo_pair(policy, reference, beta, label_smoothing)
            }
            PreferenceLoss::SppoHard => preference::sppo_hard(policy, reference, beta),
            PreferenceLoss::NcaPair => preference::nca_pair(policy, reference, beta),
            PreferenceLoss::BcoPair => preference::bco_pair(policy, reference, beta),
            PreferenceLoss::ApoZero => preference::apo_zero(policy, reference, beta),
            PreferenceLoss::ApoDown => preference::apo_down(policy, reference, beta),
            PreferenceLoss::KtoPair => preference::kto_pair(policy, reference, beta),
        }
    }

    /// The loss of a batch `[1]`, and [`METRICS`] of it but for the gradient's.
    fn loss(&self, law: &Categorical, batch: &PairBatch) -> (Tensor<1>, [Tensor<1>; 7]) {
        let policy = batch.log_probs(law);
        let reference =
            batch.reference.clone().expect("DPO compares with a reference: call `with_reference`");
        let lengths = batch.lengths();
        let mut losses = self.per_pair(policy.clone(), reference.clone(), lengths.clone());
        if let Some(p) = &batch.certainty {
            let turned = self.per_pair(swap(policy.clone()), swap(reference.clone()), swap(lengths.clone()));
            losses = losses * p.clone() + turned * (p.ones_like() - p.clone());
        }
        let mut loss = losses.mean();
        if self.config.sft_coef > 0.0 {
            let per_token = policy.clone().per_token(lengths).chosen;
            loss = loss - per_token.mean() * self.config.sft_coef;
        }
        let (chosen, rejected) = (policy.chosen.inner(), policy.rejected.inner());
        let reward = |log_prob: &Tensor<1>, log_prob_ref: Tensor<1>| {
            implicit_reward(log_prob.clone(), log_prob_ref, self.config.beta)
        };
        let (better, worse) = (reward(&chosen, reference.chosen), reward(&rejected, reference.rejected));
        let saw = [
            loss.clone().inner(),
            better.clone().mean(),
            worse.clone().mean(),
            accuracy(&better, &worse),
            tie_fraction(&better, &worse),
            chosen.mean(),
            rejected.mean(),
        ];
        (loss, saw)
    }
}

fn swap(pair: PairLogProb) -> PairLogProb {
    PairLogProb::new(pair.rejected, pair.chosen)
}

impl<M: Policy<Obs = Tokens, Dist = Categorical>> Update<M> for Dpo {
    type Data = PairBatch;
    type Report = DpoReport;

    fn update(
        &mut self,
        model: M,
        batch: &PairBatch,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, DpoReport), UpdateError> {
        let progress = self.updates as f64 / self.total_updates.max(1) as f64;
        let learning_rate = self.config.optimizer.learning_rate.at(progress);
        let parts = self.config.accumulate;
        let pairs: Vec<usize> = (0..batch.pairs()).collect();
        let mut saw = Vec::with_capacity(parts);
        let mut total: Option<Tensor<1>> = None;
        for part in pairs.chunks_exact(batch.pairs() / parts) {
            let part = if parts == 1 { batch.clone() } else { batch.select(part) };
            let part = self.team.share(part.pairs()).map_or(part.clone(), |share| part.select(&share));
            let mut seen = None;
            let grad = model.gradient(&part.tokens, rng, |law| {
                let (loss, of_part) = self.loss(&law, &part);
                seen = Some(of_part);
                loss / parts as f64
            });
            let (grad, seen) =
                self.team.mean(grad, seen.expect("the loss was asked for"), self.updates + 1)?;
            saw.push(seen);
            total = Some(match total {
                None => grad,
                Some(sum) => sum + grad,
            });
        }
        let grad = total.expect("a step has at least one part");
        let (grad, norm) = limit_grad_norm(grad, self.config.max_grad_norm);
        let mut scalars = Scalars::new(METRICS);
        for [loss, better, worse, right, equal, chosen, rejected] in saw {
            scalars.push([loss, better, worse, right, equal, chosen, rejected, norm.clone()]);
        }
        let [
            loss,
            reward_chosen,
            reward_rejected,
            accuracy,
            ties,
            log_prob_chosen,
            log_prob_rejected,
            grad_norm,
        ] = scalars.means(self.updates + 1, parts)?;
        let theta = self.adam.step(flatten(&model), grad, learning_rate);
        let model = unflatten(model, &theta);
        self.updates += 1;
        let report = DpoReport {
            loss,
            reward_chosen,
            reward_rejected,
            accuracy,
            ties,
            log_prob_chosen,
            log_prob_rejected,
            grad_norm,
            learning_rate,
        };
        Ok((model, report))
    }
}

impl Persist for Dpo {
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

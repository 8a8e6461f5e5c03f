//! What was sampled: rows for the network, decisions for the loss.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use rl_core::dist::Distribution;
use rl_core::kl::KlEstimator;
use rl_core::masked::{keep, masked_mean, masked_standardise, standardise};
use rl_models::Rows;
use serde::{Deserialize, Serialize};

use crate::update::numbers;

/// `R` rows and `N` decisions sampled from π_old, all on the plain device.
///
/// In classic control a row is one observation and one decision (`N = R`). For a language model a
/// row is a sequence and its decisions are the response's tokens.
#[derive(Debug, Clone)]
pub struct Rollout<O, D: Distribution> {
    /// What the policy saw, `R` rows.
    pub obs: O,
    /// What it did, `N` actions.
    pub actions: D::Event,
    /// log π_old of each action, nats `[N]`.
    pub log_prob_old: Tensor<1>,
    /// V_old of each decision's state `[N]`.
    pub value_old: Tensor<1>,
    /// Â of each decision `[N]`, not normalised.
    pub advantage: Tensor<1>,
    /// What V should have said: advantage + value, before any normalisation `[N]`.
    pub value_target: Tensor<1>,
    /// Which decisions count `[N]`; `None` is all.
    pub mask: Option<Tensor<1, Bool>>,
    /// What leaving a reference policy costs in the loss; `None` is nothing.
    pub reference: Option<InLossKl>,
}

/// `β·Ê[k(log π, log π_ref)]` as a loss term. How it differs from a KL in the reward: docs/kl-control.md.
#[derive(Debug, Clone)]
pub struct InLossKl {
    /// log π_ref of each action, nats `[N]`.
    pub log_prob_ref: Tensor<1>,
    /// Whether the estimate is of a row's summed log-ratio, or of each decision's own.
    pub per_response: bool,
    /// k2 or k3.
    pub estimator: KlEstimator,
    /// The price of a nat.
    pub beta: f64,
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

/// An index tensor `[n]` from host numbers.
pub fn indices(rows: &[usize], device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i64> = rows.iter().map(|&r| r as i64).collect();
    let n = rows.len();
    Tensor::from_data(TensorData::new(rows, [n]), device)
}

impl<O: Rows, D: Distribution> Rollout<O, D> {
    /// The number of decisions `N`.
    pub fn decisions(&self) -> usize {
        self.log_prob_old.dims()[0]
    }

    /// The decisions of the rows at `rows`, as an index `[rows·L]`.
    pub fn decisions_of(&self, rows: &[usize]) -> Tensor<1, Int> {
        let device = self.log_prob_old.device();
        match self.decisions() / self.obs.rows() {
            1 => indices(rows, &device),
            l => indices(&rows.iter().flat_map(|r| r * l..(r + 1) * l).collect::<Vec<_>>(), &device),
        }
    }

    /// The rollout's rows at `rows`, with all their decisions: a minibatch.
    pub fn select(&self, rows: &[usize]) -> Self {
        let index = self.decisions_of(rows);
        Self {
            obs: self.obs.select(indices(rows, &self.log_prob_old.device())),
            actions: D::select(&self.actions, index.clone()),
            log_prob_old: self.log_prob_old.clone().select(0, index.clone()),
            value_old: self.value_old.clone().select(0, index.clone()),
            advantage: self.advantage.clone().select(0, index.clone()),
            value_target: self.value_target.clone().select(0, index.clone()),
            mask: self.mask.clone().map(|mask| mask.select(0, index.clone())),
            reference: self
                .reference
                .clone()
                .map(|kl| InLossKl { log_prob_ref: kl.log_prob_ref.select(0, index), ..kl }),
        }
    }

    /// The mean of `values` `[N]` over the decisions that count → `[1]`.
    pub fn mean(&self, values: Tensor<1>) -> Tensor<1> {
        match &self.mask {
            None => values.mean(),
            Some(mask) => masked_mean(values, mask),
        }
    }

    /// `values` `[N]` of the decisions that count, on the host.
    pub fn real(&self, values: &Tensor<1>) -> Vec<f32> {
        let values = numbers(values);
        let Some(mask) = &self.mask else { return values };
        let mask: Vec<bool> = mask.clone().into_data().try_into_vec_as().expect("a mask can be read back");
        values.into_iter().zip(mask).filter_map(|(value, real)| real.then_some(value)).collect()
    }

    /// The price of the reference for this policy, `[1]`, to be added to a loss that is a mean over decisions.
    ///
    /// Per response it is `β·(1/N)·Σ_r k(Σ_t log π, Σ_t log π_ref)`: the mean over decisions of a sum over rows, so
    /// that it weighs against the surrogate as β·KL against the return.
    ///
    /// # Shapes
    /// `log_prob: [N]`
    ///
    /// # Panics
    /// With k1, which has no gradient; validation refuses it.
    pub fn reference_penalty(&self, log_prob: &Tensor<1>) -> Option<Tensor<1>> {
        let kl = self.reference.as_ref()?;
        let n = self.decisions();
        let kept = |x: Tensor<1>| self.mask.as_ref().map_or(x.clone(), |mask| keep(x, mask));
        let (policy, reference) = (kept(log_prob.clone()), kept(kl.log_prob_ref.clone()));
        let loss = |p, q| kl.estimator.loss(p, q).expect("k1 in the loss is refused before a run starts");
        if !kl.per_response {
            return Some(self.mean(loss(policy, reference)) * kl.beta);
        }
        let rows = self.obs.rows();
        let sum = |x: Tensor<1>| x.reshape([rows, n / rows]).sum_dim(1).reshape([rows]);
        let per_response = loss(sum(policy), sum(reference)).sum() * kl.beta;
        Some(match &self.mask {
            None => per_response / n as f64,
            Some(mask) => per_response / mask.clone().int().sum().float().clamp_min(1.0),
        })
    }

    /// The same rollout with advantages of mean 0 and standard deviation 1 over its decisions.
    #[must_use]
    pub fn standardised(mut self) -> Self {
        self.advantage = match &self.mask {
            None => standardise(self.advantage),
            Some(mask) => masked_standardise(self.advantage, mask),
        };
        self
    }
}

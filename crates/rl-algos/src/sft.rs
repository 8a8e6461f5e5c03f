//! Supervised fine-tuning, and pre-training from scratch: the likelihood of given text.
//!
//! ```text
//! L(θ) = −(1/N)·Σ_{counted tokens} log π_θ(y_t | x, y_<t)
//! ```
//!
//! N counts the tokens of the whole update, however it is cut into micro-batches: accumulated gradients are those of the
//! large batch.   Ouyang et al. 2022, §3.5 (the response alone counts); Radford et al. 2018, eq. 1 (every token counts)

use std::collections::BTreeMap;

use burn::tensor::{Bool, Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, Distribution};
use rl_core::masked::masked_sum;
use rl_core::schedule::Schedule;
use rl_models::flat_params::{flatten, limit_grad_norm, unflatten};
use rl_models::{Policy, Rows, Tokens};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig, AdamKind};
use crate::error::{AlgoError, UpdateError, require};
use crate::rollout::indices;
use crate::scalars::Scalars;
use crate::update::{Persist, PersistError, Report, Update};

/// Fine-tuning's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SftConfig {
    /// Rows of each update.
    pub batch: usize,
    /// Rows that are in memory at once; must divide `batch`. What it is changes nothing but memory and rounding.
    pub micro_batch: usize,
    /// Tokens of a row at most; packed text fills its rows.
    pub max_tokens: usize,
    /// Global norm that the gradient is scaled down to; absent is no limit.
    pub max_grad_norm: Option<f64>,
    /// Adam or AdamW.
    pub optimizer: AdamConfig,
}

impl Default for SftConfig {
    fn default() -> Self {
        let learning_rate = Schedule::WarmupCosine { warmup: 0.03, peak: 2e-5, to: 0.0 };
        Self {
            batch: 16,
            micro_batch: 16,
            max_tokens: 512,
            max_grad_norm: Some(1.0),
            optimizer: AdamConfig {
                kind: AdamKind::Adamw,
                learning_rate,
                eps: 1e-8,
                ..AdamConfig::default()
            },
        }
    }
}

impl SftConfig {
    /// # Errors
    /// Names the first setting that cannot work, its value and what would do.
    pub fn validate(&self) -> Result<(), AlgoError> {
        require(self.batch > 0, "batch", "[1, ∞)", self.batch as f64)?;
        let tiles = self.micro_batch > 0 && self.batch.is_multiple_of(self.micro_batch);
        require(tiles, "micro_batch", "the divisors of `batch`", self.micro_batch as f64)?;
        require(self.max_tokens > 1, "max_tokens", "[2, ∞)", self.max_tokens as f64)?;
        if let Some(max) = self.max_grad_norm {
            require(max > 0.0 && max.is_finite(), "max_grad_norm", "(0, ∞)", max)?;
        }
        self.optimizer.validate()
    }
}

/// The log-likelihood of the responses of a batch, token by token, and whether each token was the likeliest.
#[derive(Debug, Clone)]
pub struct Likelihood {
    /// `−Σ log π(y_t)` over the counted tokens, nats `[1]`.
    pub nll: Tensor<1>,
    /// How many of them were the likeliest `[1]`.
    pub right: Tensor<1>,
    /// How many were counted `[1]`.
    pub tokens: Tensor<1>,
}

impl Likelihood {
    /// Of a model's laws.
    pub fn of(law: &Categorical, batch: &Tokens) -> Self {
        let (actions, counted) = (batch.actions(), batch.mask());
        let right: Tensor<1, Bool> = law.mode().equal(actions.clone());
        let ones = |mask: Tensor<1, Bool>| {
            Tensor::<1>::ones(mask.dims(), &mask.device()).mask_fill(mask.bool_not(), 0.0).sum()
        };
        Self {
            nll: masked_sum(law.log_prob(&actions), &counted).neg(),
            right: ones(right.bool_and(counted.clone())),
            tokens: ones(counted),
        }
    }
}

/// Mean negative log-likelihood and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Nats per token.
    pub nll: f64,
    /// Share of tokens that were the likeliest.
    pub accuracy: f64,
    /// Tokens that were counted.
    pub tokens: u64,
}

impl Fit {
    /// `exp` of the nats per token: among how many equally likely tokens the model seems to choose.
    pub fn perplexity(&self) -> f64 {
        self.nll.exp()
    }

    /// How well `model` fits the responses of `rows`, `at_once` of them in memory.
    pub fn measure<M: Policy<Obs = Tokens, Dist = Categorical>>(
        model: &M,
        rows: &Tokens,
        at_once: usize,
    ) -> Self {
        let mut sums = [0.0; 3];
        for micro in pieces(rows, at_once) {
            let Likelihood { nll, right, tokens } = Likelihood::of(&model.policy(&micro), &micro);
            let read: Vec<f64> =
                Tensor::cat(vec![nll, right, tokens], 0).into_data().try_into_vec_as().expect("floats");
            sums.iter_mut().zip(read).for_each(|(sum, x)| *sum += x);
        }
        let [nll, right, tokens] = sums;
        let n = tokens.max(1.0);
        Self { nll: nll / n, accuracy: right / n, tokens: tokens as u64 }
    }
}

/// `at_once` rows after another.
fn pieces(rows: &Tokens, at_once: usize) -> impl Iterator<Item = Tokens> {
    let (n, device) = (rows.rows(), rows.ids.device());
    (0..n).step_by(at_once.max(1)).map(move |first| {
        let some: Vec<usize> = (first..n.min(first + at_once.max(1))).collect();
        if some.len() == n { rows.clone() } else { rows.select(indices(&some, &device)) }
    })
}

/// What one update did; the fit is the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SftReport {
    /// How well the batch was predicted.
    pub fit: Fit,
    /// ‖∇‖₂ before clipping.
    pub grad_norm: f64,
    /// Step size.
    pub learning_rate: f64,
}

impl Report for SftReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/nll", self.fit.nll);
        f("losses/perplexity", self.fit.perplexity());
        f("losses/token_accuracy", self.fit.accuracy);
        f("losses/grad_norm", self.grad_norm);
        f("charts/learning_rate", self.learning_rate);
        f("charts/tokens", self.fit.tokens as f64);
    }
}

const METRICS: [&str; 4] = ["losses/nll", "losses/token_accuracy", "charts/tokens", "losses/grad_norm"];

/// Fine-tuning's state between updates.
#[derive(Debug, Clone)]
pub struct Sft {
    config: SftConfig,
    adam: Adam,
    updates: u64,
    total_updates: u64,
}

impl Sft {
    /// For a run of `total_updates` updates. The settings must have passed [`SftConfig::validate`].
    pub fn new(config: &SftConfig, total_updates: u64) -> Self {
        Self { adam: Adam::new(config.optimizer.clone()), config: config.clone(), updates: 0, total_updates }
    }
}

/// A batch is `batch` rows; the response of each counts. Packed text is a prompt of one token and its response.
impl<M: Policy<Obs = Tokens, Dist = Categorical>> Update<M> for Sft {
    type Data = Tokens;
    type Report = SftReport;

    fn update(
        &mut self,
        model: M,
        batch: &Tokens,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, SftReport), UpdateError> {
        let progress = self.updates as f64 / self.total_updates.max(1) as f64;
        let learning_rate = self.config.optimizer.learning_rate.at(progress);
        let counted = batch.mask();
        let n = Tensor::<1>::ones(counted.dims(), &counted.device())
            .mask_fill(counted.bool_not(), 0.0)
            .sum()
            .clamp_min(1.0);
        let mut sums: Option<[Tensor<1>; 3]> = None;
        let mut gradient: Option<Tensor<1>> = None;
        for micro in pieces(batch, self.config.micro_batch) {
            let mut seen = None;
            let grad = model.gradient(&micro, rng, |law| {
                let of = Likelihood::of(&law, &micro);
                let loss = of.nll.clone() / n.clone();
                seen = Some([of.nll.inner() / n.clone(), of.right.inner() / n.clone(), of.tokens.inner()]);
                loss
            });
            let seen = seen.expect("the loss was asked for");
            sums = Some(match sums {
                Some(sums) => add(sums, seen),
                None => seen,
            });
            gradient = Some(match gradient {
                Some(sum) => sum + grad,
                None => grad,
            });
        }
        let (sums, gradient) = sums.zip(gradient).expect("a batch has rows");
        let (gradient, norm) = limit_grad_norm(gradient, self.config.max_grad_norm);
        let [nll, right, tokens] = sums;
        let mut scalars = Scalars::new(METRICS);
        scalars.push([nll, right, tokens, norm]);
        let [nll, accuracy, tokens, grad_norm] = scalars.means(self.updates + 1, 1)?;
        let theta = self.adam.step(flatten(&model), gradient, learning_rate);
        let model = unflatten(model, &theta);
        self.updates += 1;
        let fit = Fit { nll, accuracy, tokens: tokens as u64 };
        Ok((model, SftReport { fit, grad_norm, learning_rate }))
    }
}

fn add<const K: usize>(a: [Tensor<1>; K], b: [Tensor<1>; K]) -> [Tensor<1>; K] {
    let mut b = b.into_iter();
    a.map(|a| a + b.next().expect("as many"))
}

impl Persist for Sft {
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

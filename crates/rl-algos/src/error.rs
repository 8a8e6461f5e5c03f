//! What can go wrong: settings that make no sense, updates that went bad.

use rl_core::error::CoreError;
use rl_envs::EnvFault;

/// A setting that cannot work. The texts name the key, the value and the cure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AlgoError {
    /// A number outside its range, or another error of the mathematics below.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The minibatches do not tile the rollout.
    #[error(
        "`minibatch_rows` = {rows} does not divide the rollout of {rollout} rows \
         ({envs} envs × {steps} steps); try {hint}"
    )]
    Uneven {
        /// The minibatch asked for.
        rows: usize,
        /// Rows of one rollout.
        rollout: usize,
        /// Environments side by side.
        envs: usize,
        /// Steps of each environment per rollout.
        steps: usize,
        /// The nearest divisor of the rollout.
        hint: usize,
    },
    /// An answer without tokens: it has no log-prob and no last token.
    #[error(
        "pair {pair}: the {side} answer has no token, so that there is nothing to compare; leave the pair out"
    )]
    EmptyAnswer {
        /// The pair, counted from 1.
        pair: usize,
        /// `chosen` or `rejected`.
        side: &'static str,
    },
    /// GRPO with the KL anywhere but in its own loss.
    #[error(
        "GRPO charges its KL in the token loss as k3: set `rollout.kl_place = \"token_loss\"` and \
         `rollout.kl_estimator = \"k3\"`, or use `rloo`, which takes them all"
    )]
    GrpoKl,
}

/// An update that must not be built upon. The model moved in and is gone: resume from the last
/// checkpoint.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UpdateError {
    /// A quantity became infinite or not a number.
    #[error(
        "`{what}` is {value} in update {update}, epoch {epoch}; the last checkpoint is intact. \
         Try a smaller learning rate, or a smaller `max_grad_norm`"
    )]
    NonFinite {
        /// The first bad quantity, by its metric name.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The update, counted from 1.
        update: u64,
        /// The epoch within the update, counted from 1.
        epoch: usize,
    },
    /// Another replica of the run has gone.
    #[error(
        "update {update} was not finished: {what}; resume without it, or with others in its place (`--devices`)"
    )]
    Team {
        /// Which, and how that was noticed.
        what: String,
        /// The update, counted from 1.
        update: u64,
    },
    /// An optimiser step led to a parameter that is infinite or not a number.
    #[error(
        "parameter {index} of {of} is {value} after update {update}; the last checkpoint is intact. Try a smaller \
         learning rate, or a smaller `max_grad_norm`"
    )]
    Weights {
        /// Its place among all parameters, from 0.
        index: usize,
        /// How many there are.
        of: usize,
        /// Its value.
        value: f32,
        /// The update, counted from 1.
        update: u64,
    },
}

/// A collection that must not be learnt from. Nothing was learnt; the model is as it was.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CollectError {
    /// An environment failed.
    #[error("{0}; the last checkpoint is intact. Try that environment alone, or other settings of it")]
    Env(EnvFault),
    /// The model's answer to an observation is infinite or not a number.
    #[error(
        "`{what}` is {value} for environment {env} in step {step} of the rollout; the last checkpoint is intact. Try a \
         smaller learning rate, or `normalize.obs_clip`"
    )]
    NonFinite {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: f32,
        /// The environment, from 0.
        env: usize,
        /// The step of the collection, from 0.
        step: usize,
    },
}

impl From<EnvFault> for CollectError {
    fn from(fault: EnvFault) -> Self {
        Self::Env(fault)
    }
}

/// Requires that every number of `values`, `width` for each of the environments that `env` numbers, is one.
pub(crate) fn require_finite(
    what: &'static str,
    step: usize,
    values: &[f32],
    width: usize,
    env: impl Fn(usize) -> usize,
) -> Result<(), CollectError> {
    // Minus infinity is the logit of an action that is not allowed.
    let bad = |x: &f32| !(x.is_finite() || what == LOGITS && *x == f32::NEG_INFINITY);
    match values.iter().position(bad) {
        None => Ok(()),
        Some(i) => Err(CollectError::NonFinite { what, value: values[i], env: env(i / width), step }),
    }
}

/// What the parameters of a policy's law are called in errors.
pub(crate) const LOGITS: &str = "logits";

/// `Err(OutOfRange)` unless `ok`.
pub(crate) fn require(ok: bool, key: &'static str, range: &'static str, got: f64) -> Result<(), AlgoError> {
    if ok { Ok(()) } else { Err(CoreError::OutOfRange { key, range, got }.into()) }
}

/// `Err(Uneven)` unless `rows` divides `envs · steps`.
pub(crate) fn require_tiling(rows: usize, envs: usize, steps: usize) -> Result<(), AlgoError> {
    let rollout = envs * steps;
    if rows > 0 && rollout.is_multiple_of(rows) {
        return Ok(());
    }
    let hint =
        (1..=rollout).filter(|d| rollout.is_multiple_of(*d)).min_by_key(|d| d.abs_diff(rows)).unwrap_or(1);
    Err(AlgoError::Uneven { rows, rollout, envs, steps, hint })
}

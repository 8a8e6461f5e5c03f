//! What can go wrong: settings that make no sense, updates that went bad.

use rl_core::error::CoreError;

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
}

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

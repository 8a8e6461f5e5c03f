//! The seam that every algorithm shares: one update of a model from data, and what it reports.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::error::UpdateError;

/// One learning step on a model `M`. What persists between steps (optimiser, KL coefficient,
/// schedules) is the implementor; what is learned from is `Data`.
pub trait Update<M> {
    /// A rollout, or a batch of preferences.
    type Data;
    /// What the step has to say.
    type Report: Report;

    /// The model after one step.
    ///
    /// # Errors
    /// [`UpdateError`] is fatal: the model moved in; resume from the last checkpoint.
    fn update(
        &mut self,
        model: M,
        data: &Self::Data,
        rng: &mut ChaCha8Rng,
    ) -> Result<(M, Self::Report), UpdateError>;
}

/// Named numbers of one update. Every name has a row in `docs/metrics.md`.
pub trait Report {
    /// Calls `f` with each metric, always in the same order.
    fn each(&self, f: &mut dyn FnMut(&'static str, f64));
}

/// Somewhere metrics go: memory, a file, a screen.
pub trait MetricSink {
    /// One metric at an environment step.
    fn record(&mut self, step: u64, name: &'static str, value: f64);
}

/// Metrics in memory, for tests and notebooks.
impl MetricSink for Vec<(u64, &'static str, f64)> {
    fn record(&mut self, step: u64, name: &'static str, value: f64) {
        self.push((step, name, value));
    }
}

/// State that outlives a process: what an algorithm puts into a checkpoint, and takes back.
///
/// The model's parameters are the run's to save, not the algorithm's.
pub trait Persist {
    /// Adds this algorithm's tensors to `checkpoint`, and returns its other state.
    fn save(&self, tensors: &mut BTreeMap<String, Vec<f32>>) -> serde_json::Value;

    /// Takes both back, for a model of `parameters` parameters on `device`.
    ///
    /// # Errors
    /// Names the missing or mis-shaped piece. Nothing is reset silently.
    fn load(
        &mut self,
        state: &serde_json::Value,
        tensors: &BTreeMap<String, Vec<f32>>,
        parameters: usize,
        device: &Device,
    ) -> Result<(), PersistError>;
}

/// A checkpoint that is whole but does not fit the run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PersistError {
    /// A vector is missing or has another length.
    #[error("tensor `{name}` {what}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A piece of state is missing or of another kind.
    #[error("state: {0}")]
    State(String),
}

/// The tensor `name` of `len` numbers from a checkpoint, on `device`.
///
/// # Errors
/// [`PersistError::Tensor`] if it is missing or of another length.
pub fn tensor_from(
    tensors: &BTreeMap<String, Vec<f32>>,
    name: &str,
    len: usize,
    device: &Device,
) -> Result<Tensor<1>, PersistError> {
    let error = |what: String| PersistError::Tensor { name: name.to_owned(), what };
    let values = tensors.get(name).ok_or_else(|| error("is missing".into()))?;
    if values.len() != len {
        return Err(error(format!("has {} numbers, but the model has {len}", values.len())));
    }
    Ok(Tensor::from_data(TensorData::new(values.clone(), [len]), device))
}

/// A tensor's numbers for a checkpoint.
pub fn numbers(t: &Tensor<1>) -> Vec<f32> {
    t.clone().into_data().try_into_vec_as().expect("floats convert to f32")
}

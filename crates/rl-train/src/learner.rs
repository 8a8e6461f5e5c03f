//! What every run is made of: a model, what teaches it, the generator both draw from, and how far they are.

use std::collections::BTreeMap;

use anyhow::Result;
use burn::module::Module;
use rand_chacha::ChaCha8Rng;
use rl_algos::update::{numbers, tensor_from};
use rl_algos::{Persist, Report, Update, UpdateError};
use rl_models::flat_params::{count, flatten, unflatten};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::device::ChosenDevice;
use crate::metrics::Row;

/// The vectors of a checkpoint, by name.
pub type Tensors = BTreeMap<String, Vec<f32>>;

/// The parameters' name among them.
const PARAMETERS: &str = "model";

/// A model and what teaches it.
pub struct Learner<M, U> {
    /// What learns.
    pub model: M,
    /// How.
    pub algorithm: U,
    /// Draws actions, minibatches and dropout masks.
    pub rng: ChaCha8Rng,
    /// Where tensors live.
    pub device: ChosenDevice,
    /// Updates made.
    pub update: u64,
    /// Steps made: environment steps, responses, or rows of a dataset.
    pub step: u64,
}

/// What a checkpoint holds of a learner beside its tensors. Nothing in it depends on the clock, so that a resumed run
/// writes the checkpoints of an undisturbed one.
#[derive(Clone, Serialize, Deserialize)]
pub struct LearnerState {
    update: u64,
    step: u64,
    rng: ChaCha8Rng,
    algorithm: Value,
}

impl<M: Module, U: Persist> Learner<M, U> {
    /// A learner before its first update.
    pub fn new(model: M, algorithm: U, rng: ChaCha8Rng, device: ChosenDevice) -> Self {
        Self { model, algorithm, rng, device, update: 0, step: 0 }
    }

    /// One update from `data`, which took `steps` to come by, and its metrics.
    ///
    /// # Errors
    /// [`UpdateError`]; the model is then as it was, the optimiser perhaps not.
    pub fn learn<D>(&mut self, data: &D, steps: u64) -> Result<Row, UpdateError>
    where
        U: Update<M, Data = D>,
    {
        let (model, report) = self.algorithm.update(self.model.clone(), data, &mut self.rng)?;
        require_finite(&model, self.update + 1)?;
        self.model = model;
        self.update += 1;
        self.step += steps;
        let mut row = Row::new(self.update, self.step);
        report.each(&mut |name, value| row.push(name, value));
        Ok(row)
    }

    /// Adds its tensors to a checkpoint's, and returns the rest.
    pub fn save(&self, tensors: &mut Tensors) -> LearnerState {
        tensors.insert(PARAMETERS.to_owned(), numbers(&flatten(&self.model)));
        let algorithm = self.algorithm.save(tensors);
        LearnerState { update: self.update, step: self.step, rng: self.rng.clone(), algorithm }
    }

    /// The learner that [`save`](Self::save) saw.
    ///
    /// # Errors
    /// If a piece is missing or does not fit. Nothing is reset silently.
    pub fn load(self, state: LearnerState, tensors: &Tensors) -> Result<Self> {
        let learner = self.load_weights(&state, tensors)?;
        let LearnerState { update, step, rng, .. } = state;
        Ok(Self { update, step, rng, ..learner })
    }

    /// [`load_weights`](Self::load_weights), `steps` steps further, from which nothing is learnt.
    ///
    /// # Errors
    /// If a piece is missing or does not fit.
    pub fn past(self, steps: u64, state: &LearnerState, tensors: &Tensors) -> Result<Self> {
        let learner = self.load_weights(state, tensors)?;
        Ok(Self { step: learner.step + steps, ..learner })
    }

    /// Parameters and optimiser of a checkpoint; time and randomness go on.
    ///
    /// # Errors
    /// If a piece is missing or does not fit.
    pub fn load_weights(mut self, state: &LearnerState, tensors: &Tensors) -> Result<Self> {
        let (device, parameters) = (&self.device.device, count(&self.model));
        let theta = tensor_from(tensors, PARAMETERS, parameters, device)?;
        self.algorithm.load(&state.algorithm, tensors, parameters, device)?;
        self.model = unflatten(self.model, &theta);
        Ok(self)
    }
}

/// Requires that every parameter of `model` is a number after update `update`. Read back only if one is not.
fn require_finite<M: Module>(model: &M, update: u64) -> Result<(), UpdateError> {
    let theta = flatten(model);
    if theta.clone().is_finite().all().into_scalar::<bool>() {
        return Ok(());
    }
    let theta = numbers(&theta);
    match theta.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(UpdateError::Weights { index, of: theta.len(), value: theta[index], update }),
    }
}

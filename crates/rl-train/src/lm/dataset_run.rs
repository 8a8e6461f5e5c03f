//! A run on given examples: rows in random order, each once per epoch, one update per batch.

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use rand::seq::SliceRandom;
use rl_algos::{OnAlarm, Persist, Update, streams};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::drive::{Advanced, Findings, Session};
use crate::learner::{Learner, LearnerState, Tensors};
use crate::metrics::Row;
use crate::run_folder::RunFolder;

/// Examples that a model `M` learns from, and how well it has learnt.
pub trait Dataset<M> {
    /// What one update learns from.
    type Batch;
    /// What an evaluation finds.
    type Findings: Findings;

    /// What its rows are called.
    const ROWS: &'static str;

    /// How many rows there are to learn from; at least one.
    fn rows(&self) -> usize;

    /// Those at `rows`.
    fn batch(&self, rows: &[usize]) -> Self::Batch;

    /// A number that another dataset would hardly have: a run goes on with its own examples only.
    fn fingerprint(&self) -> u64;

    /// What the model has come to, on rows that it has not learnt from.
    ///
    /// # Errors
    /// If it cannot be measured.
    fn evaluate(&self, model: &M) -> Result<Self::Findings>;

    /// The number that the progress line begins with.
    fn headline(row: &Row) -> Option<(&'static str, f64)>;

    /// After the last update: writes the model into the run's folder.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(&self, model: &M, folder: &RunFolder) -> Result<()>;
}

/// A run on a dataset and how far it is.
pub struct DatasetSession<D, M, U> {
    learner: Learner<M, U>,
    data: D,
    batch: usize,
    seed: u64,
    on_alarm: OnAlarm,
    epochs: Epochs,
    /// This epoch's order of the rows: `seed` and the epoch decide it.
    order: Vec<usize>,
}

/// How far the rows have been gone through.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Epochs {
    /// Epochs finished.
    epoch: u64,
    /// Rows of this one that are done.
    next: usize,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    learner: LearnerState,
    epochs: Epochs,
    fingerprint: u64,
}

impl<D: Dataset<M>, M, U> DatasetSession<D, M, U> {
    /// A run before its first update; each takes `batch` rows, in an order that `seed` decides.
    pub fn new(learner: Learner<M, U>, data: D, batch: usize, seed: u64) -> Self {
        let order = order(data.rows(), seed, 0);
        Self {
            learner,
            data,
            batch,
            seed,
            on_alarm: OnAlarm::Warn,
            epochs: Epochs { epoch: 0, next: 0 },
            order,
        }
    }

    /// What bad numbers lead to.
    pub fn with_on_alarm(mut self, on_alarm: OnAlarm) -> Self {
        self.on_alarm = on_alarm;
        self
    }

    /// The next rows; an epoch's last are followed by the next one's first.
    fn next_rows(&mut self) -> Vec<usize> {
        let mut rows = Vec::with_capacity(self.batch);
        while rows.len() < self.batch {
            if self.epochs.next == self.order.len() {
                self.epochs = Epochs { epoch: self.epochs.epoch + 1, next: 0 };
                self.order = order(self.order.len(), self.seed, self.epochs.epoch);
            }
            rows.push(self.order[self.epochs.next]);
            self.epochs.next += 1;
        }
        rows
    }
}

fn order(rows: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(&mut streams::epoch(seed, epoch));
    order
}

impl<D, M, U> Session for DatasetSession<D, M, U>
where
    D: Dataset<M>,
    M: Module,
    U: Update<M, Data = D::Batch> + Persist,
{
    type Findings = D::Findings;
    const STEPS: &'static str = D::ROWS;

    fn update(&self) -> u64 {
        self.learner.update
    }

    fn step(&self) -> u64 {
        self.learner.step
    }

    fn advance(&mut self) -> Result<Advanced> {
        let rows = self.next_rows();
        let batch = self.data.batch(&rows);
        let mut row = self.learner.learn(&batch, rows.len() as u64)?;
        row.push(
            "charts/epoch",
            self.epochs.epoch as f64 + self.epochs.next as f64 / self.order.len() as f64,
        );
        Ok(Advanced { row, alarms: vec![] })
    }

    fn evaluate(&self) -> Result<D::Findings> {
        self.data.evaluate(&self.learner.model)
    }

    fn save(&self, tensors: &mut Tensors) -> Result<Value> {
        let learner = self.learner.save(tensors);
        let saved = Saved { learner, epochs: self.epochs, fingerprint: self.data.fingerprint() };
        serde_json::to_value(saved).context("the run's state does not become JSON")
    }

    fn load(mut self, state: Value, tensors: &Tensors) -> Result<Self> {
        let Saved { learner, epochs, fingerprint } = serde_json::from_value(state)?;
        ensure!(
            fingerprint == self.data.fingerprint() && epochs.next <= self.order.len(),
            "the examples are not those that the run began with; put the old ones back"
        );
        self.learner = self.learner.load(learner, tensors)?;
        self.order = order(self.order.len(), self.seed, epochs.epoch);
        self.epochs = epochs;
        Ok(self)
    }

    fn on_alarm(&self) -> OnAlarm {
        self.on_alarm
    }

    /// Parameters and optimiser of the checkpoint; the rows that it stumbled over stay behind.
    fn roll_back(mut self, state: Value, tensors: &Tensors) -> Result<(Self, String)> {
        let Saved { learner, .. } = serde_json::from_value(state)?;
        self.learner = self.learner.load_weights(&learner, tensors)?;
        Ok((self, "without the rows of that update".to_owned()))
    }

    fn headline(&self, row: &Row) -> Option<(&'static str, f64)> {
        D::headline(row)
    }

    fn finish(&self, folder: &RunFolder) -> Result<()> {
        self.data.finish(&self.learner.model, folder)
    }
}

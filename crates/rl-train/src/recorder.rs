//! What a run leaves behind while it goes on: metrics, timings and checkpoints, and the way back from a checkpoint.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rl_algos::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::RunConfig;
use crate::drive::Session;
use crate::learner::Tensors;
use crate::metrics::{MetricFiles, Row, Timing};
use crate::process;
use crate::run_folder::RunFolder;

/// The open files of a run, and its clock.
pub struct Recorder<'a> {
    folder: &'a RunFolder,
    config: &'a RunConfig,
    text: &'a str,
    files: MetricFiles,
    /// The sittings before this one.
    before: Timing,
    started: Instant,
    cpu: Option<f64>,
    best: Vec<Best>,
}

/// What a checkpoint holds beside tensors.
#[derive(Serialize, Deserialize)]
struct Saved {
    algorithm: String,
    /// The text of `config.toml`.
    config: String,
    /// The length of `metrics.jsonl`.
    metrics_bytes: u64,
    /// The best evaluations, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    best: Vec<Best>,
    /// What the session said.
    session: Value,
}

/// An evaluation that was among the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After which update.
    pub update: u64,
    /// Its score: more is better.
    pub score: f64,
}

impl Best {
    /// The best evaluations that a checkpoint knows of, the best first.
    ///
    /// # Errors
    /// If the checkpoint is of no run.
    pub fn of(checkpoint: &Checkpoint) -> Result<Vec<Self>> {
        Ok(serde_json::from_value::<Saved>(checkpoint.state.clone())?.best)
    }
}

/// What a checkpoint says of the files beside it; all zero in a new run.
#[derive(Debug, Default)]
pub struct Past {
    bytes: u64,
    best: Vec<Best>,
}

impl<'a> Recorder<'a> {
    /// Goes on after `past` and the timing of `update`; 0 in a new run.
    ///
    /// # Errors
    /// If the files cannot be written, or are shorter than that.
    pub fn open(
        folder: &'a RunFolder,
        config: &'a RunConfig,
        text: &'a str,
        past: Past,
        update: u64,
    ) -> Result<Self> {
        let Past { bytes, best } = past;
        let metrics = folder.file("metrics.jsonl");
        let (files, before) = MetricFiles::open(&metrics, bytes, &folder.file("timing.jsonl"), update)
            .with_context(|| format!("cannot go on with `{}`", metrics.display()))?;
        Ok(Self {
            folder,
            config,
            text,
            files,
            before,
            started: Instant::now(),
            cpu: process::cpu_seconds(),
            best,
        })
    }

    /// Writes the metrics of one update, which came at `steps_per_s`, and returns what the clock said.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&mut self, row: &Row, steps_per_s: f64) -> Result<Timing> {
        let (elapsed_s, cpu_s) = (self.elapsed_s(), self.cpu_s());
        let timing = Timing { step: row.step, update: row.update, steps_per_s, elapsed_s, cpu_s };
        self.files.write(row, &timing).with_context(|| self.unwritable())?;
        Ok(timing)
    }

    /// Writes a checkpoint.
    ///
    /// # Errors
    /// What the operating system says; older checkpoints are then still there.
    pub fn save<S: Session>(&mut self, session: &S) -> Result<(Checkpoint, PathBuf)> {
        let checkpoint = self.checkpoint(session)?;
        let path = self.folder.save(&checkpoint, session.update(), self.config.checkpoint.keep)?;
        Ok((checkpoint, path))
    }

    /// Keeps a checkpoint of an evaluation that scored `score`, if it is among the best.
    ///
    /// # Errors
    /// What the operating system says; the best so far are then still there.
    pub fn rank<S: Session>(&mut self, session: &S, score: f64) -> Result<()> {
        let (update, keep) = (session.update(), self.config.checkpoint.keep_best);
        if score.is_nan() || self.best.iter().any(|best| best.update == update) {
            return Ok(());
        }
        // Of equal ones the first stays.
        let place = self.best.iter().position(|best| score > best.score).unwrap_or(self.best.len());
        if place >= keep {
            return Ok(());
        }
        self.best.insert(place, Best { update, score });
        self.best.truncate(keep);
        let checkpoint = self.checkpoint(session)?;
        self.folder.save_best(&checkpoint, update, &self.best)
    }

    /// The best evaluation so far.
    pub fn best(&self) -> Option<Best> {
        self.best.first().copied()
    }

    fn checkpoint<S: Session>(&mut self, session: &S) -> Result<Checkpoint> {
        let metrics_bytes = self.files.sync().with_context(|| self.unwritable())?;
        let mut tensors = Tensors::new();
        let saved = Saved {
            algorithm: self.config.algo.name().to_owned(),
            config: self.text.to_owned(),
            metrics_bytes,
            best: self.best.clone(),
            session: session.save(&mut tensors)?,
        };
        let state = serde_json::to_value(saved).context("the run's state does not become JSON")?;
        Ok(Checkpoint { state, tensors })
    }

    /// The session with the weights of a checkpoint, and what else was done.
    ///
    /// # Errors
    /// If a piece is missing.
    pub fn roll_back<S: Session>(&self, session: S, healthy: &Checkpoint) -> Result<(S, String)> {
        let saved: Saved = serde_json::from_value(healthy.state.clone())?;
        session.roll_back(saved.session, &healthy.tensors)
    }

    /// Seconds of training in all sittings.
    pub fn elapsed_s(&self) -> f64 {
        self.before.elapsed_s + self.started.elapsed().as_secs_f64()
    }

    /// CPU seconds of training in all sittings, where the system tells.
    pub fn cpu_s(&self) -> Option<f64> {
        Some(self.before.cpu_s.unwrap_or(0.0) + process::cpu_seconds()? - self.cpu?)
    }

    fn unwritable(&self) -> String {
        format!("cannot write `{}`", self.folder.file("metrics.jsonl").display())
    }
}

/// The run as `checkpoint`, read from `path`, has it, and what it says of the files beside it.
///
/// # Errors
/// If it is of another run or another algorithm, or a piece is missing. Nothing is reset silently.
pub fn restore<S: Session>(
    session: S,
    checkpoint: &Checkpoint,
    path: &Path,
    algorithm: &str,
    config: &str,
) -> Result<(S, Past)> {
    let unfit = || format!("checkpoint `{}` does not fit this run", path.display());
    let saved: Saved = serde_json::from_value(checkpoint.state.clone()).with_context(unfit)?;
    let of = &saved.algorithm;
    ensure!(of == algorithm, "{}: it is of a `{of}` run, but this one is `{algorithm}`", unfit());
    ensure!(
        saved.config == config,
        "{}: `config.toml` has changed since it was written ({}); put the old line back",
        unfit(),
        first_difference(&saved.config, config)
    );
    let session = session.load(saved.session, &checkpoint.tensors).with_context(unfit)?;
    Ok((session, Past { bytes: saved.metrics_bytes, best: saved.best }))
}

/// The first line in which two texts differ, as `old → new`.
fn first_difference(old: &str, new: &str) -> String {
    let mut lines = old.lines().zip(new.lines());
    match lines.find(|(old, new)| old != new) {
        Some((old, new)) => format!("`{old}` is now `{new}`"),
        None => "lines were added or removed at its end".to_owned(),
    }
}

//! A run between two updates: everything that the rest of it depends on.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Tensor;
use rand_chacha::ChaCha8Rng;
use rl_algos::checkpoint::Checkpoint;
use rl_algos::collect_env::{ActionOf, CollectorState};
use rl_algos::update::{numbers, tensor_from};
use rl_algos::{Evaluation, Persist, Report, Rollout, Update, UpdateError, evaluate};
use rl_core::dist::Distribution;
use rl_envs::{Env, EpisodeWindow, VecEnv};
use rl_models::ActorCritic;
use rl_models::flat_params::{count, flatten, unflatten};
use serde::{Deserialize, Serialize};

use crate::assemble::Parts;
use crate::metrics::Row;

/// Episodes over which the progress line averages returns.
const WINDOW: usize = 100;

/// A run and how far it is.
pub struct Session<E: Env, M, U> {
    /// What it is made of.
    pub parts: Parts<E, M, U>,
    /// Updates made.
    pub update: u64,
    /// Environment steps made.
    pub step: u64,
    /// The last episodes.
    pub episodes: EpisodeWindow,
}

/// What a checkpoint holds beside parameters and moments. Nothing in it depends on the clock, so that
/// a resumed run writes the checkpoints of an undisturbed one.
#[derive(Serialize, Deserialize)]
struct Saved {
    algorithm: String,
    /// The text of `config.toml`.
    config: String,
    update: u64,
    step: u64,
    rng: ChaCha8Rng,
    collector: CollectorState,
    algorithm_state: serde_json::Value,
    episodes: EpisodeWindow,
    metrics_bytes: u64,
}

/// The parameters' name among a checkpoint's tensors.
const PARAMETERS: &str = "model";

impl<E, M, U> Session<E, M, U>
where
    E: Env,
    M: ActorCritic<Obs = Tensor<2>>,
    <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    U: Update<M, Data = Rollout<Tensor<2>, M::Dist>> + Persist,
{
    /// A run before its first update.
    pub fn new(parts: Parts<E, M, U>) -> Self {
        Self { parts, update: 0, step: 0, episodes: EpisodeWindow::new(WINDOW) }
    }

    /// One rollout, one update, and their metrics.
    ///
    /// # Errors
    /// [`UpdateError`]; the model is gone with it.
    pub fn advance(mut self) -> Result<(Self, Row), UpdateError> {
        let parts = &mut self.parts;
        let (rollout, finished) = parts.collector.collect(&parts.model, &mut parts.rng);
        let (model, report) = self.parts.algorithm.update(self.parts.model, &rollout, &mut self.parts.rng)?;
        self.parts.model = model;
        self.update += 1;
        self.step += rollout.decisions() as u64;

        let mut row = Row::new(self.update, self.step);
        let mut f = |name, value| row.push(name, value);
        report.each(&mut f);
        let n = finished.0.len() as f64;
        f("charts/episodes", n);
        if n > 0.0 {
            f("charts/episodic_return", finished.0.iter().map(|episode| episode.return_sum).sum::<f64>() / n);
            f(
                "charts/episodic_length",
                finished.0.iter().map(|episode| episode.length as f64).sum::<f64>() / n,
            );
        }
        self.episodes.extend(finished.0);
        Ok((self, row))
    }

    /// Greedy episodes in environments of their own: nothing of the run moves.
    pub fn evaluate(&self, episodes: usize, seed: u64) -> Evaluation {
        let envs = VecEnv::new((0..episodes).map(|_| (self.parts.make_env)()).collect(), seed);
        let (model, norm) = (&self.parts.model, self.parts.collector.obs_norm());
        evaluate(|obs| model.policy(obs), envs, norm, &self.parts.device.device)
    }

    /// The run as it stands, for a run of the given config, after that many bytes of metrics.
    pub fn checkpoint(&self, algorithm: &str, config: &str, metrics_bytes: u64) -> Result<Checkpoint> {
        let parts = &self.parts;
        let mut tensors = BTreeMap::from([(PARAMETERS.to_owned(), numbers(&flatten(&parts.model)))]);
        let algorithm_state = parts.algorithm.save(&mut tensors);
        let saved = Saved {
            algorithm: algorithm.to_owned(),
            config: config.to_owned(),
            update: self.update,
            step: self.step,
            rng: parts.rng.clone(),
            collector: parts.collector.state(),
            algorithm_state,
            episodes: self.episodes.clone(),
            metrics_bytes,
        };
        let state = serde_json::to_value(saved).context("the run's state does not become JSON")?;
        Ok(Checkpoint { state, tensors })
    }

    /// The run as `checkpoint`, read from `path`, has it, and the bytes of metrics before it.
    ///
    /// # Errors
    /// If it is of another run or another algorithm, or a piece is missing. Nothing is reset silently.
    pub fn restore(
        mut self,
        checkpoint: &Checkpoint,
        path: &Path,
        algorithm: &str,
        config: &str,
    ) -> Result<(Self, u64)> {
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
        let Parts { model, algorithm, collector, rng, make_env, device } = self.parts;
        let (parameters, mut algorithm, mut collector, _) = (count(&model), algorithm, collector, rng);
        let theta =
            tensor_from(&checkpoint.tensors, PARAMETERS, parameters, &device.device).with_context(unfit)?;
        let model = unflatten(model, &theta);
        algorithm
            .load(&saved.algorithm_state, &checkpoint.tensors, parameters, &device.device)
            .with_context(unfit)?;
        collector.set_state(saved.collector);
        self.parts = Parts { model, algorithm, collector, rng: saved.rng, make_env, device };
        (self.update, self.step, self.episodes) = (saved.update, saved.step, saved.episodes);
        Ok((self, saved.metrics_bytes))
    }
}

/// The first line in which two texts differ, as `old → new`.
fn first_difference(old: &str, new: &str) -> String {
    let mut lines = old.lines().zip(new.lines());
    match lines.find(|(old, new)| old != new) {
        Some((old, new)) => format!("`{old}` is now `{new}`"),
        None => "lines were added or removed at its end".to_owned(),
    }
}

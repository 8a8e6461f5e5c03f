//! An RLHF run between two updates.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use rand_chacha::ChaCha8Rng;
use rl_algos::checkpoint::Checkpoint;
use rl_algos::collect_lm::LmCollectorState;
use rl_algos::guard::{Alarm, Guards, Vitals};
use rl_algos::update::{numbers, tensor_from};
use rl_algos::{GuardConfig, Persist, Report, Responses, Update};
use rl_envs::token_world::exact::{
    entropy, expectation, frontier, kl, objective, sentence_law, tilt, tilted,
};
use rl_models::flat_params::{count, flatten, unflatten};
use rl_models::{Policy, Response, Sampler, TablePolicy};
use serde::{Deserialize, Serialize};

use super::RlhfParts;
use crate::metrics::Row;

/// A run and how far it is.
pub struct RlhfSession<M, U> {
    /// What it is made of.
    pub parts: RlhfParts<M, U>,
    /// Updates made.
    pub update: u64,
    /// Responses sampled.
    pub step: u64,
    /// The guards.
    pub guards: Guards,
}

/// What a checkpoint holds beside parameters and moments.
#[derive(Serialize, Deserialize)]
struct Saved {
    algorithm: String,
    config: String,
    update: u64,
    step: u64,
    rng: ChaCha8Rng,
    collector: LmCollectorState,
    guards: Guards,
    algorithm_state: serde_json::Value,
    metrics_bytes: u64,
}

const PARAMETERS: &str = "model";

/// One update, measured.
pub struct Advanced {
    /// Its metrics.
    pub row: Row,
    /// What the guards say.
    pub alarms: Vec<Alarm>,
}

impl<M, U> RlhfSession<M, U>
where
    M: Sampler + Module,
    U: Update<M, Data = Responses> + Persist,
{
    /// A run before its first update. Samples the reference once, so that the guards know what is normal.
    pub fn new(mut parts: RlhfParts<M, U>, guards: GuardConfig) -> Self {
        let responses = Self::sample(&mut parts);
        let gold = parts.task.gold(&responses.written);
        let reference = Vitals::of(&responses, Some(&gold));
        Self { parts, update: 0, step: 0, guards: Guards::new(guards, reference) }
    }

    fn sample(parts: &mut RlhfParts<M, U>) -> Responses {
        let RlhfParts { model, laws, reference, collector, task, rng, .. } = parts;
        let judge = |_: &[&[u32]], written: &[Response]| task.score(written);
        collector.collect(model, *laws, |tokens| Policy::policy(reference, tokens), judge, rng)
    }

    /// Responses for the startup self-check, of a run that does not move by it.
    pub fn probe(&mut self) -> Responses {
        let (rng, state) = (self.parts.rng.clone(), self.parts.collector.state().clone());
        let responses = Self::sample(&mut self.parts);
        self.parts.rng = rng;
        self.parts.collector.set_state(state);
        responses
    }

    /// One rollout, one update, and their metrics.
    ///
    /// # Errors
    /// If a number is not finite; the model is gone with it.
    pub fn advance(mut self) -> Result<(Self, Advanced)> {
        let responses = Self::sample(&mut self.parts);
        let gold = self.parts.task.gold(&responses.written);
        let vitals = Vitals::of(&responses, Some(&gold));
        let (model, report) =
            self.parts.algorithm.update(self.parts.model, &responses, &mut self.parts.rng)?;
        self.parts.model = model;
        self.parts.collector.move_beta(vitals.kl);
        self.update += 1;
        self.step += responses.rows() as u64;

        let mut row = Row::new(self.update, self.step);
        let mut f = |name, value| row.push(name, value);
        report.each(&mut f);
        vitals.each(&mut f);
        f("objective/ref_coef", responses.price.beta);
        f("objective/non_score_reward", -responses.price.beta * vitals.kl);
        f("objective/rlhf_reward", vitals.score - responses.price.beta * vitals.kl);
        let alarms = self.guards.watch(self.update, &vitals);
        f("guards/alarms", alarms.len() as f64);
        Ok((self, Advanced { row, alarms }))
    }

    /// What the policy is, exactly.
    pub fn exact(&self) -> Exact {
        let RlhfParts { model, table, task, collector, .. } = &self.parts;
        let (world, beta) = (&task.world, collector.state().controller.beta());
        let v = world.vocabulary();
        let temperature = collector.config().temperature;
        let law_of = |table: &TablePolicy| sentence_law(&table.next_token_laws(temperature), v);
        let (law, reference) = (law_of(table(model)), law_of(&task.reference()));
        let cost = kl(&law, &reference);
        let best = (beta > 0.0).then(|| tilt(&reference, &task.reward, beta));
        Exact {
            score: expectation(&law, &task.reward),
            gold: world.gold_of(&law),
            kl: cost,
            entropy: entropy(&law),
            frontier: frontier(&reference, world.gold(), cost),
            objective: objective(&law, &reference, &task.reward, beta),
            optimum: best.map(|best| best.objective()),
            kl_to_optimum: best.map(|best| kl(&law, &tilted(&reference, &task.reward, best.beta))),
        }
    }

    /// The run as it stands.
    ///
    /// # Errors
    /// If its state does not become JSON.
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
            collector: parts.collector.state().clone(),
            guards: self.guards.clone(),
            algorithm_state,
            metrics_bytes,
        };
        let state = serde_json::to_value(saved).context("the run's state does not become JSON")?;
        Ok(Checkpoint { state, tensors })
    }

    /// The run as `checkpoint`, read from `path`, has it, and the bytes of metrics before it.
    ///
    /// # Errors
    /// If it is of another run, or a piece is missing.
    pub fn restore(
        mut self,
        checkpoint: &Checkpoint,
        path: &Path,
        algorithm: &str,
        config: &str,
    ) -> Result<(Self, u64)> {
        let unfit = || format!("checkpoint `{}` does not fit this run", path.display());
        let saved: Saved = serde_json::from_value(checkpoint.state.clone()).with_context(unfit)?;
        ensure!(saved.algorithm == algorithm, "{}: it is of a `{}` run", unfit(), saved.algorithm);
        ensure!(saved.config == config, "{}: `config.toml` has changed since it was written", unfit());
        self = self.take(&saved, checkpoint).with_context(unfit)?;
        self.parts.rng = saved.rng;
        self.parts.collector.set_state(saved.collector);
        self.guards = saved.guards;
        (self.update, self.step) = (saved.update, saved.step);
        Ok((self, saved.metrics_bytes))
    }

    /// Parameters and optimiser of a healthy checkpoint under a dearer β; time goes on.
    ///
    /// # Errors
    /// If a piece is missing.
    pub fn roll_back(mut self, healthy: &Checkpoint) -> Result<Self> {
        let saved: Saved = serde_json::from_value(healthy.state.clone())?;
        self = self.take(&saved, healthy)?;
        let raise = self.guards.config().raise_beta;
        self.parts.collector.raise_beta(raise);
        self.guards.reset();
        Ok(self)
    }

    fn take(mut self, saved: &Saved, checkpoint: &Checkpoint) -> Result<Self> {
        let (device, parameters) = (&self.parts.device.device, count(&self.parts.model));
        let theta = tensor_from(&checkpoint.tensors, PARAMETERS, parameters, device)?;
        self.parts.algorithm.load(&saved.algorithm_state, &checkpoint.tensors, parameters, device)?;
        self.parts.model = unflatten(self.parts.model, &theta);
        Ok(self)
    }
}

/// A policy, enumerated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Exact {
    /// `E_π[score]`.
    pub score: f64,
    /// `E_π[gold]`.
    pub gold: f64,
    /// KL(π ‖ π_ref), nats.
    pub kl: f64,
    /// H(π), nats.
    pub entropy: f64,
    /// The highest gold at this KL.
    pub frontier: f64,
    /// `E_π[score] − β·KL`.
    pub objective: f64,
    /// `β·log Z`, the best objective, where β > 0.
    pub optimum: Option<f64>,
    /// KL(π ‖ π*), nats, where β > 0.
    pub kl_to_optimum: Option<f64>,
}

impl Report for Exact {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("exact/score", self.score);
        f("exact/gold", self.gold);
        f("exact/kl", self.kl);
        f("exact/entropy", self.entropy);
        f("exact/frontier", self.frontier);
        f("exact/objective", self.objective);
        if let (Some(optimum), Some(kl)) = (self.optimum, self.kl_to_optimum) {
            f("exact/optimum", optimum);
            f("exact/kl_to_optimum", kl);
        }
    }
}

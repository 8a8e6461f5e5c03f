//! An RLHF run between two updates.

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use rl_algos::collect_lm::LmCollectorState;
use rl_algos::guard::self_check::{Start, self_check};
use rl_algos::guard::{Guards, OnAlarm, Vitals};
use rl_algos::{GuardConfig, Persist, Report, Responses, Update};
use rl_envs::token_world::exact::{
    entropy, expectation, frontier, kl, objective, sentence_law, tilt, tilted,
};
use rl_models::{Policy, Response, Sampler, TablePolicy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RlhfParts, TokenTask};
use crate::drive::{Advanced, Findings, Session};
use crate::learner::{LearnerState, Tensors};
use crate::metrics::Row;

/// A run and how far it is.
pub struct RlhfSession<M, U> {
    parts: RlhfParts<M, U>,
    guards: Guards,
    /// The reference's law over sentences, at the run's temperature.
    reference_law: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    learner: LearnerState,
    collector: LmCollectorState,
    guards: Guards,
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
        let temperature = parts.collector.config().temperature;
        let reference_law = parts.task.law(&parts.task.reference(), temperature);
        Self { parts, guards: Guards::new(guards, reference), reference_law }
    }

    fn sample(parts: &mut RlhfParts<M, U>) -> Responses {
        let RlhfParts { learner, laws, reference, collector, task, .. } = parts;
        let judge = |_: &[&[u32]], written: &[Response]| task.score(written);
        collector.collect(
            &learner.model,
            *laws,
            |tokens| Policy::policy(reference, tokens),
            judge,
            &mut learner.rng,
        )
    }

    /// Responses for the startup self-check, of a run that does not move by it.
    fn probe(&mut self) -> Responses {
        let (rng, state) = (self.parts.learner.rng.clone(), self.parts.collector.state().clone());
        let responses = Self::sample(&mut self.parts);
        self.parts.learner.rng = rng;
        self.parts.collector.set_state(state);
        responses
    }

    fn beta(&self) -> f64 {
        self.parts.collector.state().controller.beta()
    }

    /// What the policy is, exactly.
    fn exact(&self) -> Exact {
        let RlhfParts { learner, table, task, collector, .. } = &self.parts;
        let law = task.law(table(&learner.model), collector.config().temperature);
        task.exact(&law, &self.reference_law, self.beta())
    }
}

impl TokenTask {
    /// The law over sentences of a table at a temperature, `[K]`, log-probabilities.
    pub fn law(&self, table: &TablePolicy, temperature: f64) -> Vec<f64> {
        sentence_law(&table.next_token_laws(temperature), self.world.vocabulary())
    }

    /// What a law over sentences is worth, and what it costs against `reference`.
    pub fn exact(&self, law: &[f64], reference: &[f64], beta: f64) -> Exact {
        let cost = kl(law, reference);
        let best = (beta > 0.0).then(|| tilt(reference, &self.reward, beta));
        Exact {
            beta,
            score: expectation(law, &self.reward),
            gold: self.world.gold_of(law),
            kl: cost,
            entropy: entropy(law),
            frontier: frontier(reference, self.world.gold(), cost),
            objective: objective(law, reference, &self.reward, beta),
            optimum: best.map(|best| best.objective()),
            kl_to_optimum: best.map(|best| kl(law, &tilted(reference, &self.reward, best.beta))),
        }
    }
}

impl<M, U> Session for RlhfSession<M, U>
where
    M: Sampler + Module,
    U: Update<M, Data = Responses> + Persist,
{
    type Findings = Exact;
    const STEPS: &'static str = "responses";

    fn update(&self) -> u64 {
        self.parts.learner.update
    }

    fn step(&self) -> u64 {
        self.parts.learner.step
    }

    /// The startup self-check.
    fn start(&mut self) -> Result<()> {
        let start = if self.update() == 0 { Start::AtReference } else { Start::Elsewhere };
        let responses = self.probe();
        let RlhfParts { learner, laws, reference, task, .. } = &self.parts;
        let found = self_check(
            &responses,
            |tokens| laws(&learner.model, tokens),
            |tokens| Policy::policy(reference, tokens),
            |written| task.score(written),
            start,
        );
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        ensure!(found.is_empty(), "{}", texts.join("\n"));
        Ok(())
    }

    fn advance(&mut self) -> Result<Advanced> {
        let responses = Self::sample(&mut self.parts);
        let gold = self.parts.task.gold(&responses.written);
        let vitals = Vitals::of(&responses, Some(&gold));
        responses.require_finite(self.update() + 1)?;
        let mut row = self.parts.learner.learn(&responses, responses.rows() as u64)?;
        self.parts.collector.move_beta(vitals.kl);
        let mut f = |name, value| row.push(name, value);
        vitals.each(&mut f);
        f("objective/ref_coef", responses.price.beta);
        f("objective/non_score_reward", -responses.price.beta * vitals.kl);
        f("objective/rlhf_reward", vitals.score - responses.price.beta * vitals.kl);
        let alarms = self.guards.watch(self.update(), &vitals);
        row.push("guards/alarms", alarms.len() as f64);
        Ok(Advanced { row, alarms })
    }

    fn evaluate(&self) -> Result<Exact> {
        Ok(self.exact())
    }

    fn save(&self, tensors: &mut Tensors) -> Result<Value> {
        let learner = self.parts.learner.save(tensors);
        let collector = self.parts.collector.state().clone();
        let saved = Saved { learner, collector, guards: self.guards.clone() };
        serde_json::to_value(saved).context("the run's state does not become JSON")
    }

    fn load(mut self, state: Value, tensors: &Tensors) -> Result<Self> {
        let Saved { learner, collector, guards } = serde_json::from_value(state)?;
        self.parts.learner = self.parts.learner.load(learner, tensors)?;
        self.parts.collector.set_state(collector);
        self.guards = guards;
        Ok(self)
    }

    fn headline(&self, row: &Row) -> Option<(&'static str, f64)> {
        row.get("objective/rlhf_reward").map(|reward| ("reward", reward))
    }

    fn on_alarm(&self) -> OnAlarm {
        self.guards.config().on_alarm
    }

    fn healthy(&self) -> bool {
        self.guards.healthy()
    }

    fn roll_back(mut self, state: Value, tensors: &Tensors) -> Result<(Self, String)> {
        let Saved { learner, .. } = serde_json::from_value(state)?;
        self.parts.learner = self.parts.learner.load_weights(&learner, tensors)?;
        self.parts.collector.raise_beta(self.guards.config().raise_beta);
        self.guards.reset();
        let done = format!("with β = {:.4}", self.beta());
        Ok((self, done))
    }
}

/// A policy, enumerated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Exact {
    /// The controller's coefficient.
    pub beta: f64,
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

impl Findings for Exact {
    fn score(&self) -> Option<(&'static str, f64)> {
        Some(("exact/objective", self.objective))
    }

    fn brief(&self) -> String {
        let Self { beta, score, gold, kl, entropy, frontier, objective, optimum, kl_to_optimum } = self;
        let mut text = format!(
            "exact: score {score:.3}, gold {gold:.3}, KL {kl:.3} nats, entropy {entropy:.2} nats, β {beta:.4}\n\
             the highest gold that any policy has at this KL is {frontier:.3}"
        );
        if let (Some(optimum), Some(distance)) = (optimum, kl_to_optimum) {
            let share = 100.0 * objective / optimum;
            text += &format!(
                "\nscore − β·KL = {objective:.4}, {share:.1}% of the best there is; KL(π ‖ π*) = {distance:.4} nats"
            );
        }
        text
    }
}

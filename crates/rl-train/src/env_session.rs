//! A run in environments: rollouts, episodes, greedy evaluation.

use std::time::Duration;

use anyhow::{Context, Result};
use burn::tensor::Tensor;
use rl_algos::collect_env::ActionOf;
use rl_algos::{Collector, Evaluation, OnAlarm, Persist, Report, Update, evaluate};
use rl_core::dist::Distribution;
use rl_envs::{Env, EpisodeWindow, VecEnv};
use rl_models::ActorCritic;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::assemble::Parts;
use crate::config::EvalConfig;
use crate::drive::{Advanced, Findings, Session};
use crate::learner::{Learner, LearnerState, Tensors};
use crate::live::screen;
use crate::metrics::Row;
use crate::watchdog;

/// Episodes over which the progress line averages returns.
const WINDOW: usize = 100;

/// A run in environments and how far it is.
pub struct EnvSession<E: Env, M, C, U> {
    /// What learns.
    pub learner: Learner<M, U>,
    /// What samples.
    pub collector: C,
    /// Makes one more environment.
    pub make_env: fn() -> E,
    eval: EvalConfig,
    on_alarm: OnAlarm,
    /// The task's name, and how long one step of it may take.
    patience: Option<(String, Duration)>,
    /// The last episodes.
    episodes: EpisodeWindow,
}

#[derive(Serialize, Deserialize)]
struct Saved<S> {
    learner: LearnerState,
    collector: S,
    episodes: EpisodeWindow,
}

impl<E, M, C, U> EnvSession<E, M, C, U>
where
    E: Env,
    M: ActorCritic<Obs = Tensor<2>>,
    <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    C: Collector<M>,
    U: Update<M, Data = C::Data> + Persist,
{
    /// A run before its first update, evaluated as `eval` says.
    pub fn new(parts: Parts<E, M, C, U>, eval: EvalConfig) -> Self {
        let Parts { learner, collector, make_env } = parts;
        let on_alarm = OnAlarm::Warn;
        Self {
            learner,
            collector,
            make_env,
            eval,
            on_alarm,
            patience: None,
            episodes: EpisodeWindow::new(WINDOW),
        }
    }

    /// What bad numbers and failing environments lead to.
    pub fn with_on_alarm(mut self, on_alarm: OnAlarm) -> Self {
        self.on_alarm = on_alarm;
        self
    }

    /// Ends the process if an environment of `task` does not answer for `limit`.
    pub fn with_patience(mut self, task: String, limit: Option<Duration>) -> Self {
        self.patience = limit.map(|limit| (task, limit));
        self
    }

    /// New data, one update, and their metrics.
    ///
    /// # Errors
    /// If an environment fails or a number is not finite.
    pub fn collect_and_update(&mut self) -> Result<Row> {
        let (data, finished) = self.collector.try_collect(&self.learner.model, &mut self.learner.rng)?;
        let mut row = self.learner.learn(&data, C::steps(&data) as u64)?;
        let n = finished.0.len() as f64;
        row.push("charts/episodes", n);
        if n > 0.0 {
            let mean = |of: fn(&rl_envs::Episode) -> f64| finished.0.iter().map(of).sum::<f64>() / n;
            row.push("charts/episodic_return", mean(|episode| episode.return_sum));
            row.push("charts/episodic_length", mean(|episode| episode.length as f64));
        }
        self.episodes.extend(finished.0);
        Ok(row)
    }
}

impl<E, M, C, U> Session for EnvSession<E, M, C, U>
where
    E: Env,
    M: ActorCritic<Obs = Tensor<2>>,
    <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    C: Collector<M>,
    U: Update<M, Data = C::Data> + Persist,
{
    type Findings = Greedy;

    fn update(&self) -> u64 {
        self.learner.update
    }

    fn step(&self) -> u64 {
        self.learner.step
    }

    fn start(&mut self) -> Result<()> {
        let Some((task, limit)) = self.patience.clone() else { return Ok(()) };
        watchdog::watch(self.collector.pulses(), task, limit, |hang| {
            screen::give_back();
            eprintln!("error: {hang}");
            std::process::exit(1);
        })
    }

    fn advance(&mut self) -> Result<Advanced> {
        Ok(Advanced { row: self.collect_and_update()?, alarms: vec![] })
    }

    /// In environments of its own.
    fn evaluate(&self) -> Result<Greedy> {
        let EvalConfig { episodes, seed, .. } = self.eval;
        let envs = VecEnv::new((0..episodes).map(|_| (self.make_env)()).collect(), seed);
        let (model, norm) = (&self.learner.model, self.collector.obs_norm());
        Ok(Greedy(evaluate(|obs| model.policy(obs), envs, norm, &self.learner.device.device)))
    }

    fn save(&self, tensors: &mut Tensors) -> Result<Value> {
        let learner = self.learner.save(tensors);
        let saved = Saved { learner, collector: self.collector.state(), episodes: self.episodes.clone() };
        serde_json::to_value(saved).context("the run's state does not become JSON")
    }

    fn load(mut self, state: Value, tensors: &Tensors) -> Result<Self> {
        let Saved::<C::State> { learner, collector, episodes } = serde_json::from_value(state)?;
        self.learner = self.learner.load(learner, tensors)?;
        self.collector.set_state(collector);
        self.episodes = episodes;
        Ok(self)
    }

    fn on_alarm(&self) -> OnAlarm {
        self.on_alarm
    }

    /// Learner and environments of the checkpoint; the noise of actions goes on, so that other things happen.
    fn roll_back(mut self, state: Value, tensors: &Tensors) -> Result<(Self, String)> {
        let Saved::<C::State> { learner, collector, .. } = serde_json::from_value(state)?;
        self.learner = self.learner.load_weights(&learner, tensors)?;
        self.collector.set_state(collector);
        Ok((self, "with its environments; other actions follow".to_owned()))
    }

    fn headline(&self, _row: &Row) -> Option<(&'static str, f64)> {
        self.episodes.mean_return().map(|mean| ("return", mean))
    }
}

/// Greedy episodes of a frozen policy.
pub struct Greedy(pub Evaluation);

impl Report for Greedy {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("eval/return_mean", self.0.mean());
        f("eval/return_std", self.0.std());
    }
}

impl Serialize for Greedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            /// Mean undiscounted return.
            eval_return_mean: f64,
            /// Its standard deviation over episodes.
            eval_return_std: f64,
            eval_episodes: usize,
        }
        let Self(evaluation) = self;
        let (eval_return_mean, eval_return_std) = (evaluation.mean(), evaluation.std());
        Fields { eval_return_mean, eval_return_std, eval_episodes: evaluation.returns.len() }
            .serialize(serializer)
    }
}

impl Findings for Greedy {
    fn score(&self) -> Option<(&'static str, f64)> {
        Some(("eval/return_mean", self.0.mean()))
    }

    fn brief(&self) -> String {
        let (mean, std, n) = (self.0.mean(), self.0.std(), self.0.returns.len());
        format!("evaluation: return {mean:.1} ± {std:.1} over {n} greedy episodes")
    }

    fn whole(&self) -> String {
        let Evaluation { returns, lengths } = &self.0;
        let (mean, std, n) = (self.0.mean(), self.0.std(), returns.len());
        let length = lengths.iter().sum::<usize>() as f64 / n as f64;
        let each: Vec<String> = returns.iter().map(f64::to_string).collect();
        let each = each.join(" ");
        format!("{n} greedy episodes\nreturn {mean} ± {std}\nlength {length}\nreturns {each}")
    }
}

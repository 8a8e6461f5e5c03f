//! Gymnasium's own episodes, replayed step by step in double precision.
//!
//! A case is checked twice:
//!
//! * **strictly**, from each stored state to the next stored one, through the time limit: states and rewards within the
//!   file's tolerance, the kind of end at every step;
//! * **as one full replay** from the start: length, end and total return. CartPole is unstable and Acrobot chaotic, so
//!   an unlucky tie in the last bit may change an episode: one case in twenty is allowed to.

use rl_envs::{Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum, StepEnd, TimeLimit};
use serde::Deserialize;
use serde_json::Value;

use crate::compare::Comparison;
use crate::replay::{Replay, Traced};
use crate::suite::{Formula::OwnSchema, Formulas};

pub const FORMULAS: Formulas = &[
    ("env_trace:Acrobot-v1", OwnSchema(|file| check(file, &Acrobot::v1()))),
    ("env_trace:CartPole-v1", OwnSchema(|file| check(file, &CartPole::v1()))),
    ("env_trace:MountainCar-v0", OwnSchema(|file| check(file, &MountainCar::v0()))),
    ("env_trace:MountainCarContinuous-v0", OwnSchema(|file| check(file, &MountainCarContinuous::v0()))),
    ("env_trace:Pendulum-v1", OwnSchema(|file| check(file, &Pendulum::v1()))),
];

/// A file of episodes of one environment.
#[derive(Deserialize)]
struct Traces {
    max_episode_steps: usize,
    rtol: f64,
    atol: f64,
    cases: Vec<Trace>,
}

/// One episode.
#[derive(Deserialize)]
struct Trace {
    start_state: Vec<f64>,
    actions: Vec<f64>,
    length: usize,
    /// 0 is the start, i the state after action i − 1.
    state_index: Vec<usize>,
    states: Vec<Vec<f64>>,
    terminated_at_end: bool,
    truncated_at_end: bool,
    total_reward: f64,
    final_observation_f32: Vec<f64>,
    /// The rewards of some steps (continuous environments) …
    reward_index: Option<Vec<usize>>,
    rewards: Option<Vec<f64>>,
    /// … or of the first and the last (discrete ones).
    reward_first: Option<f64>,
    reward_last: Option<f64>,
}

impl Trace {
    /// The end of step `t`: every step but the last continues, and a termination wins over a cut.
    fn end(&self, t: usize) -> StepEnd {
        match (t + 1 == self.length, self.terminated_at_end, self.truncated_at_end) {
            (true, true, _) => StepEnd::Terminated,
            (true, false, true) => StepEnd::Truncated,
            _ => StepEnd::Continues,
        }
    }

    /// The stored rewards as (step, reward).
    fn known_rewards(&self) -> Vec<(usize, f64)> {
        let indexed = self.reward_index.iter().flatten().copied().zip(self.rewards.iter().flatten().copied());
        let first = self.reward_first.map(|reward| (0, reward));
        let last = self.reward_last.map(|reward| (self.length - 1, reward));
        indexed.chain(first).chain(last).collect()
    }
}

/// Compares numbers, remembering how many and which differ.
struct Judge {
    result: Comparison,
    rtol: f64,
    atol: f64,
}

impl Judge {
    fn near(&mut self, got: f64, want: f64, what: impl Fn() -> String) {
        self.within(got, want, self.atol + self.rtol * want.abs(), what);
    }

    fn within(&mut self, got: f64, want: f64, allowed: f64, what: impl Fn() -> String) {
        let agrees = (got - want).abs() <= allowed; // false for NaN
        self.check(agrees, || format!("{}: got {got}, want {want} (allowed {allowed:.1e})", what()));
    }

    fn check(&mut self, agrees: bool, fault: impl FnOnce() -> String) {
        self.result.compared += 1;
        if !agrees {
            self.result.faults.push(fault());
        }
    }
}

fn check<E: Traced + Clone>(file: &Value, env: &TimeLimit<E>) -> Comparison {
    let traces = Traces::deserialize(file).unwrap_or_else(|error| panic!("not a trace file: {error}"));
    assert_eq!(traces.max_episode_steps, env.max_steps(), "the time limit");
    let mut judge = Judge { result: Comparison::default(), rtol: traces.rtol, atol: traces.atol };
    let mut unlucky = vec![];
    for (number, trace) in traces.cases.iter().enumerate() {
        strictly(number, trace, env, &mut judge);
        if !as_one_replay(trace, env, &judge) {
            unlucky.push(number);
        }
    }
    let all = traces.cases.len();
    judge.check(unlucky.len() * 20 <= all, || format!("of {all} full replays, {unlucky:?} part ways"));
    judge.result
}

/// From every stored state to the next.
fn strictly<E: Traced + Clone>(number: usize, trace: &Trace, env: &TimeLimit<E>, judge: &mut Judge) {
    let of = |what: &str, t: usize| format!("case {number}, {what} {t}");
    assert_eq!(trace.states.first(), Some(&trace.start_state), "case {number}: the first state is the start");
    assert_eq!(trace.length, trace.actions.len(), "case {number}: one action per step");
    let ends = (trace.state_index.first(), trace.state_index.last());
    assert_eq!(ends, (Some(&0), Some(&trace.length)), "case {number}: the states cover the episode");
    let rewards = trace.known_rewards();
    assert!(!rewards.is_empty(), "case {number} holds no reward");

    for (span, states) in trace.state_index.windows(2).zip(trace.states.windows(2)) {
        let mut replay = Replay::start(env, &states[0], span[0]);
        for t in span[0]..span[1] {
            let (reward, end) = replay.step(trace.actions[t]);
            judge.check(end == trace.end(t), || format!("{}: got {end:?}", of("end of step", t)));
            for &(_, want) in rewards.iter().filter(|(step, _)| *step == t) {
                judge.near(reward, want, || of("reward of step", t));
            }
        }
        for (i, (&got, &want)) in replay.state().iter().zip(&states[1]).enumerate() {
            judge.near(got, want, || format!("{}, entry {i}", of("state after step", span[1])));
        }
        if span[1] == trace.length {
            let want = &trace.final_observation_f32;
            assert_eq!(replay.obs().len(), want.len(), "case {number}: observation size");
            for (i, (&got, &want)) in replay.obs().iter().zip(want).enumerate() {
                let allowed = 1e-6 * (1.0 + want.abs());
                judge.within(f64::from(got), want, allowed, || of("final observation, entry", i));
            }
        }
    }
}

/// From the start to the end without looking back; whether end, length and return agree.
fn as_one_replay<E: Traced + Clone>(trace: &Trace, env: &TimeLimit<E>, judge: &Judge) -> bool {
    let mut replay = Replay::start(env, &trace.start_state, 0);
    let (mut total, mut end, mut length) = (0.0, StepEnd::Continues, 0);
    for &action in &trace.actions {
        let (reward, last) = replay.step(action);
        (total, end, length) = (total + reward, last, length + 1);
        if end.is_over() {
            break;
        }
    }
    let allowed = judge.atol * trace.actions.len() as f64 + judge.rtol * trace.total_reward.abs();
    end == trace.end(trace.length - 1)
        && length == trace.length
        && (total - trace.total_reward).abs() <= allowed
}

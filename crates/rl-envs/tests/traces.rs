//! Replays Gymnasium's own episodes, step by step, in double precision.
//!
//! Every `env_<id>.json` of the golden folder (`RL_GOLDEN_DIR`, by default `tests/golden` of the
//! repository) is one environment. A case is checked twice:
//!
//! * **strictly**, from each stored state to the next stored one, through the time limit: states and
//!   rewards within the file's tolerance, the kind of end at every step;
//! * **as one full replay** from the start: length, end and total return. CartPole is unstable and
//!   Acrobot chaotic, so an unlucky tie in the last bit may change an episode: one case in twenty
//!   is allowed to.

use std::path::{Path, PathBuf};

use rl_envs::{
    Acrobot, ActionSpace, CartPole, Env, EnvRng, MountainCar, MountainCarContinuous, Pendulum, Step, StepEnd,
    TimeLimit, env_rng,
};
use serde_json::Value;

/// A number, or one of the strings that stand for what JSON cannot write.
fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        Some("nan") => f64::NAN,
        Some(other) => panic!("not a number: {other}"),
        None => value.as_f64().unwrap_or_else(|| panic!("not a number: {value}")),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().expect("a list").iter().map(|v| v.as_u64().expect("an index") as usize).collect()
}

/// A classic environment that takes the trace's double-precision actions.
trait Traced: Env {
    /// One step: the reward in double precision where there is one, and the end.
    fn replay(&mut self, action: f64, rng: &mut EnvRng, obs: &mut [f32]) -> (f64, StepEnd);
}

macro_rules! traced_discrete {
    ($($env:ty),*) => {$(
        impl Traced for $env {
            fn replay(&mut self, action: f64, rng: &mut EnvRng, obs: &mut [f32]) -> (f64, StepEnd) {
                let step = self.step(&(action as usize), rng, obs);
                (f64::from(step.reward), step.end)
            }
        }
    )*};
}
traced_discrete!(CartPole, MountainCar, Acrobot);

macro_rules! traced_continuous {
    ($($env:ty),*) => {$(
        impl Traced for $env {
            fn replay(&mut self, action: f64, rng: &mut EnvRng, obs: &mut [f32]) -> (f64, StepEnd) {
                // The physics in double precision must be the physics of `step`.
                let mut twin = self.clone();
                let (reward, end) = self.advance(action);
                self.observe(obs);
                let mut twin_obs = vec![0.0; obs.len()];
                let step = twin.step(&[action as f32], rng, &mut twin_obs);
                assert!((f64::from(step.reward) - reward).abs() <= 1e-5 * (1.0 + reward.abs()));
                (reward, end)
            }
        }
    )*};
}
traced_continuous!(MountainCarContinuous, Pendulum);

/// An environment driven by double-precision actions that remembers its last reward unrounded, so
/// that the real [`TimeLimit`] can be put around it.
#[derive(Clone)]
struct Precise<E> {
    env: E,
    reward: f64,
}

impl<E: Traced> Env for Precise<E> {
    type Action = f64;

    fn obs_dim(&self) -> usize {
        self.env.obs_dim()
    }

    fn action_space(&self) -> ActionSpace {
        self.env.action_space()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.env.reset(rng, obs);
    }

    fn step(&mut self, &action: &f64, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        let (reward, end) = self.env.replay(action, rng, obs);
        self.reward = reward;
        Step { reward: reward as f32, end }
    }

    fn state(&self) -> Vec<f64> {
        self.env.state()
    }

    fn set_state(&mut self, state: &[f64]) {
        self.env.set_state(state);
    }

    fn observe(&self, obs: &mut [f32]) {
        self.env.observe(obs);
    }
}

/// A run of a time-limited environment from some state at some step of its episode.
struct Run<E> {
    env: TimeLimit<Precise<E>>,
    rng: EnvRng,
    obs: Vec<f32>,
}

impl<E: Traced + Clone> Run<E> {
    fn start(env: &TimeLimit<E>, state: &[f64], elapsed: usize) -> Self {
        let precise = Precise { env: env.inner().clone(), reward: 0.0 };
        let mut limited = TimeLimit::new(precise, env.max_steps());
        limited.set_state(&[state, &[elapsed as f64]].concat());
        Self { env: limited, rng: env_rng(0, 0), obs: vec![0.0; env.obs_dim()] }
    }

    fn step(&mut self, action: f64) -> (f64, StepEnd) {
        let end = self.env.step(&action, &mut self.rng, &mut self.obs).end;
        (self.env.inner().reward, end)
    }

    fn state(&self) -> Vec<f64> {
        self.env.inner().state()
    }
}

/// What a file came to.
#[derive(Default)]
struct Tally {
    cases: usize,
    steps: usize,
    unlucky: usize,
    worst: f64,
}

impl Tally {
    /// Demands `|got − want| ≤ atol + rtol·|want|` and remembers the largest deviation.
    fn near(&mut self, got: f64, want: f64, [rtol, atol]: [f64; 2], what: impl Fn() -> String) {
        let deviation = (got - want).abs();
        self.worst = self.worst.max(deviation / (1.0 + want.abs()));
        assert!(deviation <= atol + rtol * want.abs(), "{}: got {got}, want {want}", what());
    }
}

fn check<E: Traced + Clone>(file: &Value, env: &TimeLimit<E>) -> Tally {
    let id = file["env"].as_str().expect("an id");
    assert_eq!(file["max_episode_steps"].as_u64(), Some(env.max_steps() as u64), "{id}: time limit");
    let mut tally = Tally::default();
    for (c, case) in file["cases"].as_array().expect("cases").iter().enumerate() {
        let of = |key: &str| if case[key].is_null() { number(&file[key]) } else { number(&case[key]) };
        let tolerance = [of("rtol"), of("atol")];
        strict(&format!("{id} case {c}"), case, env, tolerance, &mut tally);
        tally.unlucky += usize::from(!full(case, env, tolerance));
        tally.cases += 1;
    }
    assert!(tally.cases > 0, "{id}: no cases");
    assert!(
        tally.unlucky * 20 <= tally.cases,
        "{id}: {} of {} full replays differ",
        tally.unlucky,
        tally.cases
    );
    tally
}

/// The end of the last step: terminated wins over truncated.
fn last_end(case: &Value) -> StepEnd {
    match (case["terminated_at_end"].as_bool(), case["truncated_at_end"].as_bool()) {
        (Some(true), Some(_)) => StepEnd::Terminated,
        (Some(false), Some(true)) => StepEnd::Truncated,
        (Some(false), Some(false)) => StepEnd::Continues,
        flags => panic!("flags must be booleans: {flags:?}"),
    }
}

/// The reward that the trace stores for step `t`, if any.
fn stored_reward(case: &Value, t: usize, length: usize) -> Option<f64> {
    if let Some(rewards) = case["rewards"].as_array() {
        let at = indices(&case["reward_index"]).iter().position(|&index| index == t)?;
        return Some(number(&rewards[at]));
    }
    match t {
        _ if t + 1 == length => Some(number(&case["reward_last"])),
        0 => Some(number(&case["reward_first"])),
        _ => None,
    }
}

/// From every stored state to the next.
fn strict<E: Traced + Clone>(
    name: &str,
    case: &Value,
    env: &TimeLimit<E>,
    tolerance: [f64; 2],
    tally: &mut Tally,
) {
    let (index, actions) = (indices(&case["state_index"]), numbers(&case["actions"]));
    let states: Vec<Vec<f64>> = case["states"].as_array().expect("states").iter().map(numbers).collect();
    assert_eq!(states[0], numbers(&case["start_state"]), "{name}: the first state is the start");
    assert_eq!(
        (index.first(), index.last()),
        (Some(&0), Some(&actions.len())),
        "{name}: states cover the episode"
    );
    for (span, pair) in index.windows(2).zip(states.windows(2)) {
        let mut run = Run::start(env, &pair[0], span[0]);
        for t in span[0]..span[1] {
            let (reward, end) = run.step(actions[t]);
            let last = t + 1 == actions.len();
            let want = if last { last_end(case) } else { StepEnd::Continues };
            assert_eq!(end, want, "{name}: end of step {t}");
            if let Some(want) = stored_reward(case, t, actions.len()) {
                tally.near(reward, want, tolerance, || format!("{name}: reward of step {t}"));
            }
            tally.steps += 1;
        }
        for (i, (&got, &want)) in run.state().iter().zip(&pair[1]).enumerate() {
            tally.near(got, want, tolerance, || format!("{name}: state entry {i} after step {}", span[1]));
        }
        if span[1] == actions.len() {
            let final_obs = numbers(&case["final_observation_f32"]);
            assert_eq!(final_obs.len(), run.obs.len(), "{name}: observation size");
            for (&got, want) in run.obs.iter().zip(final_obs) {
                let got = f64::from(got);
                assert!(
                    (got - want).abs() <= 1e-6 * (1.0 + want.abs()),
                    "{name}: final observation {got}, not {want}"
                );
            }
        }
    }
}

/// From the start to the end without looking back; whether end, length and return agree.
fn full<E: Traced + Clone>(case: &Value, env: &TimeLimit<E>, [rtol, atol]: [f64; 2]) -> bool {
    let actions = numbers(&case["actions"]);
    let mut run = Run::start(env, &numbers(&case["start_state"]), 0);
    let (mut total, mut end, mut length) = (0.0, StepEnd::Continues, 0);
    for &action in &actions {
        let (reward, last) = run.step(action);
        (total, end, length) = (total + reward, last, length + 1);
        if end.is_over() {
            break;
        }
    }
    let want = number(&case["total_reward"]);
    let per_step = atol * actions.len() as f64;
    end == last_end(case)
        && Some(length) == case["length"].as_u64()
        && (total - want).abs() <= per_step + rtol * want.abs()
}

fn golden_dir() -> PathBuf {
    std::env::var_os("RL_GOLDEN_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden"), PathBuf::from)
}

fn check_file(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let id = file["env"].as_str().expect("`env` names the environment").to_owned();
    let tally = match id.as_str() {
        "CartPole-v1" => check(&file, &CartPole::v1()),
        "MountainCar-v0" => check(&file, &MountainCar::v0()),
        "MountainCarContinuous-v0" => check(&file, &MountainCarContinuous::v0()),
        "Acrobot-v1" => check(&file, &Acrobot::v1()),
        "Pendulum-v1" => check(&file, &Pendulum::v1()),
        other => panic!("{}: no environment of ours is `{other}`", path.display()),
    };
    let Tally { cases, steps, unlucky, worst } = tally;
    println!(
        "{id}: {cases} cases, {steps} steps strictly, {unlucky} full replays part ways, worst deviation {worst:.1e}"
    );
    id
}

#[test]
fn every_trace_of_gymnasium_is_reproduced_step_by_step() {
    let dir = golden_dir();
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("env_") && name.ends_with(".json")
    });
    paths.sort();
    let ids: Vec<String> = paths.iter().map(|path| check_file(path)).collect();
    let known = ["Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"];
    assert_eq!(ids, known, "{} must hold one trace file of each classic", dir.display());
}

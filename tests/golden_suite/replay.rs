//! Our environments driven by a trace's double-precision actions from a given state, through their time limit.

use rl_envs::{
    Acrobot, ActionSpace, CartPole, Env, EnvRng, MountainCar, MountainCarContinuous, Pendulum, Step, StepEnd,
    TimeLimit, env_rng,
};

/// A classic environment that takes the trace's double-precision actions.
pub trait Traced: Env {
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

/// An environment that remembers its last reward unrounded, so that the real [`TimeLimit`] can be put around it.
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

/// A time-limited environment that goes on from some state at some step of its episode.
pub struct Replay<E> {
    env: TimeLimit<Precise<E>>,
    rng: EnvRng,
    obs: Vec<f32>,
}

impl<E: Traced + Clone> Replay<E> {
    /// `elapsed` steps into an episode of `env`, in `state`.
    pub fn start(env: &TimeLimit<E>, state: &[f64], elapsed: usize) -> Self {
        let precise = Precise { env: env.inner().clone(), reward: 0.0 };
        let mut limited = TimeLimit::new(precise, env.max_steps());
        limited.set_state(&[state, &[elapsed as f64]].concat());
        Self { env: limited, rng: env_rng(0, 0), obs: vec![0.0; env.obs_dim()] }
    }

    /// The reward of one step, and its end.
    pub fn step(&mut self, action: f64) -> (f64, StepEnd) {
        let end = self.env.step(&action, &mut self.rng, &mut self.obs).end;
        (self.env.inner().reward, end)
    }

    /// The environment's state, without the time limit's.
    pub fn state(&self) -> Vec<f64> {
        self.env.inner().state()
    }

    /// The last observation.
    pub fn obs(&self) -> &[f32] {
        &self.obs
    }
}

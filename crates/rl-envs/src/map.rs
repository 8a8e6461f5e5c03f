//! Own transforms of observations and rewards as closures: [`MapObs`] and [`MapReward`].
//!
//! Both take a *pure* function (`Fn`, not `FnMut`): the wrapped environment stays exactly resumable
//! because there is nothing new to save. A transform that learns from what it sees (running
//! normalisation) shares statistics between environments and belongs to the learner; see
//! [`vec_env`](crate::vec_env).

use std::fmt;

use crate::env::{ActionSpace, Env, EnvRng, Step};

/// An environment seen through a function of the observation, `o' = f(o)`.
///
/// ```
/// use rl_envs::{Env, MapObs, MountainCar, env_rng};
/// // Centre the valley and bring the velocity (at most 0.07) to the size of the position.
/// let mut env = MapObs::new(MountainCar::v0(), 2, |o, mapped| {
///     mapped.copy_from_slice(&[o[0] + 0.5, o[1] * 10.0]);
/// });
/// let mut obs = [0.0; 2];
/// env.reset(&mut env_rng(1, 0), &mut obs);
/// assert!(obs[0].abs() <= 0.1 && obs[1] == 0.0);
/// ```
#[derive(Clone)]
pub struct MapObs<E, F> {
    env: E,
    obs_dim: usize,
    map: F,
    raw: Vec<f32>,
}

impl<E: Env, F: Fn(&[f32], &mut [f32]) + Send> MapObs<E, F> {
    /// Wraps `env`; `map` reads the raw observation and fills the new one of `obs_dim` entries.
    pub fn new(env: E, obs_dim: usize, map: F) -> Self {
        let raw = vec![0.0; env.obs_dim()];
        Self { env, obs_dim, map, raw }
    }

    /// The environment behind the transform.
    pub fn inner(&self) -> &E {
        &self.env
    }
}

impl<E: Env, F: Fn(&[f32], &mut [f32]) + Send> Env for MapObs<E, F> {
    type Action = E::Action;

    fn obs_dim(&self) -> usize {
        self.obs_dim
    }

    fn action_space(&self) -> ActionSpace {
        self.env.action_space()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.env.reset(rng, &mut self.raw);
        (self.map)(&self.raw, obs);
    }

    fn step(&mut self, action: &E::Action, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        let step = self.env.step(action, rng, &mut self.raw);
        (self.map)(&self.raw, obs);
        step
    }

    fn state(&self) -> Vec<f64> {
        self.env.state()
    }

    fn set_state(&mut self, state: &[f64]) {
        self.env.set_state(state);
    }

    fn observe(&self, obs: &mut [f32]) {
        let mut raw = vec![0.0; self.env.obs_dim()];
        self.env.observe(&mut raw);
        (self.map)(&raw, obs);
    }
}

impl<E: fmt::Debug, F> fmt::Debug for MapObs<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapObs")
            .field("env", &self.env)
            .field("obs_dim", &self.obs_dim)
            .finish_non_exhaustive()
    }
}

/// An environment whose reward goes through a function, `r' = f(r)`.
///
/// Episode statistics of a [`VecEnv`](crate::VecEnv) outside the wrapper count mapped rewards.
///
/// ```
/// use rl_envs::{MapReward, Pendulum, VecEnv};
/// // Pendulum pays −16 … 0 a step; scale it to about one.
/// let mut envs = VecEnv::new(vec![MapReward::new(Pendulum::v1(), |r| r / 8.0)], 1);
/// let step = envs.step(|_| &[0.0][..]);
/// assert!(step.rewards[0] <= 0.0 && step.rewards[0] > -2.1);
/// ```
#[derive(Clone)]
pub struct MapReward<E, F> {
    env: E,
    map: F,
}

impl<E: Env, F: Fn(f32) -> f32 + Send> MapReward<E, F> {
    /// Wraps `env`; every reward becomes `map(reward)`.
    pub fn new(env: E, map: F) -> Self {
        Self { env, map }
    }

    /// The environment behind the transform.
    pub fn inner(&self) -> &E {
        &self.env
    }
}

impl<E: Env, F: Fn(f32) -> f32 + Send> Env for MapReward<E, F> {
    type Action = E::Action;

    fn obs_dim(&self) -> usize {
        self.env.obs_dim()
    }

    fn action_space(&self) -> ActionSpace {
        self.env.action_space()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.env.reset(rng, obs);
    }

    fn step(&mut self, action: &E::Action, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        let step = self.env.step(action, rng, obs);
        Step { reward: (self.map)(step.reward), ..step }
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

impl<E: fmt::Debug, F> fmt::Debug for MapReward<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapReward").field("env", &self.env).finish_non_exhaustive()
    }
}

//! An environment that fails on purpose, once: [`Flaky`]. For tests of what a program does with environments that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::env::{ActionSpace, Env, EnvRng, Step};

/// How an environment fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// It panics.
    Panic,
    /// Its reward is this number.
    Reward(f32),
    /// The last entry of its observation is this number.
    Observation(f32),
    /// It writes an observation of one entry more than there is room for.
    Shape,
    /// It answers after this time only.
    Hang(Duration),
}

/// `E`, that fails in one of its steps.
///
/// The steps that are left until then are no part of its [`state`](Env::state): who goes back to an earlier state and on
/// from there meets no second failure, as with failures of the world outside.
#[derive(Clone, Debug)]
pub struct Flaky<E> {
    env: E,
    failure: Failure,
    /// Steps until it fails; 0 once it has.
    left: Arc<AtomicU64>,
}

impl<E: Env> Flaky<E> {
    /// `env`, that fails by `failure` in its step number `step`, counted from 1; 0 is never.
    pub fn new(env: E, failure: Failure, step: u64) -> Self {
        Self { env, failure, left: Arc::new(AtomicU64::new(step)) }
    }
}

impl<E: Env> Env for Flaky<E> {
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
        let mut step = self.env.step(action, rng, obs);
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left != 1 {
            return step;
        }
        match self.failure {
            Failure::Panic => panic!("the simulator has crashed"),
            Failure::Reward(reward) => step.reward = reward,
            Failure::Observation(value) => *obs.last_mut().expect("an observation has entries") = value,
            Failure::Shape => obs.copy_from_slice(&vec![0.0; obs.len() + 1]),
            Failure::Hang(time) => std::thread::sleep(time),
        }
        step
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

//! The mountain car with a pedal instead of a switch: `MountainCarContinuous-v0`.
//!
//! ```text
//! v ← clip(v + 0.0015·clip(a, ±1) − 0.0025·cos 3x, ±0.07)
//! x ← clip(x + v, [−1.2, 0.6]);   v ← 0 at the left wall
//! r = 100·1[x ≥ 0.45] − 0.1·a²
//! ```
//!
//! Two peculiarities of Gymnasium are part of the process: fuel is charged for the *unclipped*
//! action, and the state is stored in single precision after every step. Driving costs fuel long
//! before the goal pays, so standing still (return 0) is a local optimum.
//!
//! Source: Moore, *Efficient Memory-based Learning for Robot Control*, 1990; constants of
//! Gymnasium 1.x.

use rand::RngExt;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::time_limit::TimeLimit;

const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const MAX_SPEED: f64 = 0.07;
const GOAL_POSITION: f64 = 0.45;
const GOAL_VELOCITY: f64 = 0.0;
const POWER: f64 = 0.0015;
const GRAVITY: f64 = 0.0025;

/// The continuous mountain car without a time limit.
///
/// Observation = state `(x, v)`; one action, the throttle, applied within ±1. Episodes start at
/// rest with `x` uniform in `[−0.6, −0.4]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MountainCarContinuous {
    position: f64,
    velocity: f64,
}

impl MountainCarContinuous {
    /// A car at rest at the bottom of the valley, without a time limit.
    pub fn new() -> Self {
        Self { position: -0.5, velocity: 0.0 }
    }

    /// `MountainCarContinuous-v0`: cut after 999 steps, solved at a mean return of 90.
    pub fn v0() -> TimeLimit<Self> {
        TimeLimit::new(Self::new(), 999)
    }

    /// One step with the throttle and the reward in double precision (the physics behind
    /// [`Env::step`], whose actions and rewards are single).
    pub fn advance(&mut self, throttle: f64) -> (f64, StepEnd) {
        let mut velocity =
            self.velocity + throttle.clamp(-1.0, 1.0) * POWER - GRAVITY * (3.0 * self.position).cos();
        velocity = velocity.clamp(-MAX_SPEED, MAX_SPEED);
        let position = (self.position + velocity).clamp(MIN_POSITION, MAX_POSITION);
        if position == MIN_POSITION && velocity < 0.0 {
            velocity = 0.0;
        }
        let arrived = position >= GOAL_POSITION && velocity >= GOAL_VELOCITY;
        let prize = if arrived { 100.0 } else { 0.0 };
        (self.position, self.velocity) = (f64::from(position as f32), f64::from(velocity as f32));
        (prize - 0.1 * throttle.powi(2), StepEnd::terminated_if(arrived))
    }
}

impl Default for MountainCarContinuous {
    fn default() -> Self {
        Self::new()
    }
}

impl Env for MountainCarContinuous {
    type Action = [f32];

    fn obs_dim(&self) -> usize {
        2
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Continuous { low: vec![-1.0], high: vec![1.0] }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.position = rng.random_range(-0.6..-0.4);
        self.velocity = 0.0;
        self.observe(obs);
    }

    fn step(&mut self, action: &[f32], _: &mut EnvRng, obs: &mut [f32]) -> Step {
        let &[throttle] = action else {
            panic!("MountainCarContinuous takes 1 action entry, but got {}", action.len());
        };
        let (reward, end) = self.advance(f64::from(throttle));
        self.observe(obs);
        Step { reward: reward as f32, end }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.position, self.velocity]
    }

    fn set_state(&mut self, state: &[f64]) {
        [self.position, self.velocity] = exactly("MountainCarContinuous", state);
    }

    fn observe(&self, obs: &mut [f32]) {
        obs.copy_from_slice(&[self.position as f32, self.velocity as f32]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_is_charged_for_the_action_asked_for_but_the_motor_gives_at_most_one() {
        let (mut asked_three, mut asked_one) = (MountainCarContinuous::new(), MountainCarContinuous::new());
        assert!((asked_three.advance(3.0).0 + 0.9).abs() < 1e-12);
        assert!((asked_one.advance(1.0).0 + 0.1).abs() < 1e-12);
        assert_eq!(asked_three, asked_one);
    }

    #[test]
    fn the_state_is_single_precision_after_a_step() {
        let mut env = MountainCarContinuous::new();
        env.advance(0.3);
        for value in env.state() {
            assert_eq!(value, f64::from(value as f32));
        }
    }
}

//! A car too weak for its hill: `MountainCar-v0`.
//!
//! The car must first drive away from the goal to gather speed. With throttle `a ∈ {−1, 0, 1}`:
//!
//! ```text
//! v ← clip(v + 0.001·a − 0.0025·cos 3x, ±0.07)
//! x ← clip(x + v, [−1.2, 0.6]);   v ← 0 at the left wall
//! ```
//!
//! Every step pays −1 until `x ≥ 0.5`. A random policy never gets there within the time limit, so
//! every return looks alike (−200): the classic test of exploration.
//!
//! Source: Moore, *Efficient Memory-based Learning for Robot Control*, 1990; constants of Sutton
//! and Barto 2018, example 10.1, and of Gymnasium 1.x.

use rand::RngExt;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::time_limit::TimeLimit;

const MIN_POSITION: f64 = -1.2;
const MAX_POSITION: f64 = 0.6;
const MAX_SPEED: f64 = 0.07;
const GOAL_POSITION: f64 = 0.5;
const GOAL_VELOCITY: f64 = 0.0;
const THROTTLE: f64 = 0.001;
const GRAVITY: f64 = 0.0025;

/// The mountain car without a time limit.
///
/// Observation = state `(x, v)`; actions 0 = back, 1 = coast, 2 = forward. Episodes start at rest
/// with `x` uniform in `[−0.6, −0.4]`, around the bottom of the valley.
#[derive(Clone, Debug, PartialEq)]
pub struct MountainCar {
    position: f64,
    velocity: f64,
}

impl MountainCar {
    /// A car at rest at the bottom of the valley, without a time limit.
    pub fn new() -> Self {
        Self { position: -0.5, velocity: 0.0 }
    }

    /// `MountainCar-v0`: cut after 200 steps, solved at a mean return of −110.
    pub fn v0() -> TimeLimit<Self> {
        TimeLimit::new(Self::new(), 200)
    }
}

impl Default for MountainCar {
    fn default() -> Self {
        Self::new()
    }
}

impl Env for MountainCar {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        2
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: 3 }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.position = rng.random_range(-0.6..-0.4);
        self.velocity = 0.0;
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        assert!(action < 3, "MountainCar has actions 0, 1 and 2, but got {action}");
        let throttle = action as f64 - 1.0;
        self.velocity += throttle * THROTTLE - (3.0 * self.position).cos() * GRAVITY;
        self.velocity = self.velocity.clamp(-MAX_SPEED, MAX_SPEED);
        self.position = (self.position + self.velocity).clamp(MIN_POSITION, MAX_POSITION);
        if self.position == MIN_POSITION && self.velocity < 0.0 {
            self.velocity = 0.0;
        }
        self.observe(obs);
        let arrived = self.position >= GOAL_POSITION && self.velocity >= GOAL_VELOCITY;
        Step { reward: -1.0, end: StepEnd::terminated_if(arrived) }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.position, self.velocity]
    }

    fn set_state(&mut self, state: &[f64]) {
        [self.position, self.velocity] = exactly("MountainCar", state);
    }

    fn observe(&self, obs: &mut [f32]) {
        obs.copy_from_slice(&[self.position as f32, self.velocity as f32]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::env_rng;

    #[test]
    fn the_left_wall_stops_the_car() {
        let (mut env, mut obs) = (MountainCar::new(), [0.0; 2]);
        env.set_state(&[-1.19, -0.07]);
        env.step(&0, &mut env_rng(0, 0), &mut obs);
        assert_eq!(env.state(), [-1.2, 0.0]);
    }

    #[test]
    fn pushing_along_the_velocity_climbs_the_hill() {
        let (mut env, mut rng, mut obs) = (MountainCar::v0(), env_rng(3, 0), [0.0; 2]);
        env.reset(&mut rng, &mut obs);
        let end = (0..200)
            .map(|_| env.step(if obs[1] < 0.0 { &0 } else { &2 }, &mut rng, &mut obs).end)
            .find(|end| end.is_over());
        assert_eq!(end, Some(StepEnd::Terminated));
    }
}

//! Swinging up a pendulum and holding it there: `Pendulum-v1`.
//!
//! A rod of unit mass and length (`θ = 0` upright) driven at its hinge by a torque `u` too weak to
//! lift it in one go:
//!
//! ```text
//! θ̇ ← clip(θ̇ + (3g/(2l)·sin θ + 3/(m·l²)·u)·0.05, ±8),   u = clip(a, ±2)
//! θ ← θ + θ̇·0.05
//! r = −(wrap(θ)² + 0.1·θ̇² + 0.001·u²)       of the state *before* the step
//! ```
//!
//! The pendulum never terminates, so every episode ends [`Truncated`](StepEnd::Truncated) by its
//! time limit of 200 steps: treating that as a true end makes the critic believe in a future of
//! value 0 at a moment the observation cannot show.
//!
//! Source: Gymnasium 1.x (equations and constants), after the under-actuated pendulum of control
//! textbooks.

use std::f64::consts::PI;

use rand::RngExt;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::time_limit::TimeLimit;

const MAX_SPEED: f64 = 8.0;
const MAX_TORQUE: f64 = 2.0;
const DT: f64 = 0.05;
const GRAVITY: f64 = 10.0;
const MASS: f64 = 1.0;
const LENGTH: f64 = 1.0;

/// The pendulum without a time limit.
///
/// State `(θ, θ̇)`, the angle not wrapped; observation `(cos θ, sin θ, θ̇)`; one action, the torque,
/// applied within ±2. Episodes start with `θ` uniform in ±π and `θ̇` uniform in ±1.
#[derive(Clone, Debug, PartialEq)]
pub struct Pendulum {
    theta: f64,
    theta_dot: f64,
}

impl Pendulum {
    /// A pendulum hanging at rest, without a time limit.
    pub fn new() -> Self {
        Self { theta: PI, theta_dot: 0.0 }
    }

    /// `Pendulum-v1`: cut after 200 steps. A good policy returns about −150.
    pub fn v1() -> TimeLimit<Self> {
        TimeLimit::new(Self::new(), 200)
    }

    /// One step with the torque and the reward in double precision (the physics behind
    /// [`Env::step`], whose actions and rewards are single).
    pub fn advance(&mut self, torque: f64) -> (f64, StepEnd) {
        let u = torque.clamp(-MAX_TORQUE, MAX_TORQUE);
        let cost = wrap(self.theta).powi(2) + 0.1 * self.theta_dot.powi(2) + 0.001 * u.powi(2);
        let acceleration =
            3.0 * GRAVITY / (2.0 * LENGTH) * self.theta.sin() + 3.0 / (MASS * LENGTH.powi(2)) * u;
        self.theta_dot = (self.theta_dot + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
        self.theta += self.theta_dot * DT;
        (-cost, StepEnd::Continues)
    }
}

/// The angle in `[−π, π)`: `((θ + π) mod 2π) − π`.
fn wrap(theta: f64) -> f64 {
    (theta + PI).rem_euclid(2.0 * PI) - PI
}

impl Default for Pendulum {
    fn default() -> Self {
        Self::new()
    }
}

impl Env for Pendulum {
    type Action = [f32];

    fn obs_dim(&self) -> usize {
        3
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Continuous { low: vec![-MAX_TORQUE as f32], high: vec![MAX_TORQUE as f32] }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.theta = rng.random_range(-PI..PI);
        self.theta_dot = rng.random_range(-1.0..1.0);
        self.observe(obs);
    }

    fn step(&mut self, action: &[f32], _: &mut EnvRng, obs: &mut [f32]) -> Step {
        let &[torque] = action else {
            panic!("Pendulum takes 1 action entry, but got {}", action.len());
        };
        let (reward, end) = self.advance(f64::from(torque));
        self.observe(obs);
        Step { reward: reward as f32, end }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.theta, self.theta_dot]
    }

    fn set_state(&mut self, state: &[f64]) {
        [self.theta, self.theta_dot] = exactly("Pendulum", state);
    }

    fn observe(&self, obs: &mut [f32]) {
        let (sin, cos) = self.theta.sin_cos();
        obs.copy_from_slice(&[cos as f32, sin as f32, self.theta_dot as f32]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upright_and_still_costs_nothing_and_hanging_costs_pi_squared() {
        let mut env = Pendulum::new();
        assert!((env.advance(0.0).0 + PI * PI).abs() < 1e-9);
        env.set_state(&[0.0, 0.0]);
        assert_eq!(env.advance(0.0).0, 0.0);
        assert_eq!(env.state(), [0.0, 0.0]);
    }

    #[test]
    fn a_torque_beyond_the_bound_acts_and_costs_like_the_bound() {
        let (mut wild, mut strong) = (Pendulum::new(), Pendulum::new());
        assert_eq!(wild.advance(50.0), strong.advance(2.0));
        assert_eq!(wild, strong);
    }

    #[test]
    fn angles_are_wrapped_into_one_turn() {
        for (theta, want) in [(PI + 0.1, 0.1 - PI), (-PI - 0.1, PI - 0.1), (4.0 * PI + 0.5, 0.5)] {
            assert!((wrap(theta) - want).abs() < 1e-12);
        }
    }
}

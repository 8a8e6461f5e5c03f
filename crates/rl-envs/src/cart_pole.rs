//! Balancing a pole on a cart: `CartPole-v1`.
//!
//! A cart on a rail is pushed left or right with 10 N; the pole hinged on it must not tip. With
//! total mass `M = m_c + m_p`, half pole length `l`, force `F` and angle `θ` (0 = upright):
//!
//! ```text
//! q  = (F + m_p·l·θ̇²·sin θ) / M
//! θ̈ = (g·sin θ − cos θ·q) / (l·(4/3 − m_p·cos²θ / M))
//! ẍ  = q − m_p·l·θ̈·cos θ / M
//! ```
//!
//! integrated by explicit Euler with `τ = 0.02 s`. Every step pays 1; the process terminates when
//! `|x| > 2.4 m` or `|θ| > 12°`.
//!
//! Source: Barto, Sutton and Anderson, *Neuronlike Adaptive Elements*, 1983, appendix (there with
//! friction), in the form and with the constants of Gymnasium 1.x, whose traces this file matches
//! in double precision.

use rand::RngExt;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::time_limit::TimeLimit;

const GRAVITY: f64 = 9.8;
const POLE_MASS: f64 = 0.1;
const TOTAL_MASS: f64 = 1.0 + POLE_MASS;
/// Half the pole's length, in metres.
const LENGTH: f64 = 0.5;
const POLE_MASS_LENGTH: f64 = POLE_MASS * LENGTH;
const FORCE: f64 = 10.0;
const TAU: f64 = 0.02;
const ANGLE_LIMIT: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0;
const POSITION_LIMIT: f64 = 2.4;

/// The cart-pole without a time limit.
///
/// Observation = state `(x, ẋ, θ, θ̇)` in metres, radians and seconds; actions 0 = push left,
/// 1 = push right. Episodes start with all four uniform in ±0.05.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CartPole {
    x: f64,
    x_dot: f64,
    theta: f64,
    theta_dot: f64,
}

impl CartPole {
    /// A cart-pole at rest, upright, without a time limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// `CartPole-v1`: cut after 500 steps, solved at a mean return of 475.
    pub fn v1() -> TimeLimit<Self> {
        TimeLimit::new(Self::new(), 500)
    }
}

impl Env for CartPole {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        4
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: 2 }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        for value in [&mut self.x, &mut self.x_dot, &mut self.theta, &mut self.theta_dot] {
            *value = rng.random_range(-0.05..0.05);
        }
        self.observe(obs);
    }

    #[inline]
    fn step(&mut self, &action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        assert!(action < 2, "CartPole has actions 0 and 1, but got {action}");
        let force = if action == 1 { FORCE } else { -FORCE };
        let (sin, cos) = self.theta.sin_cos();
        let push = (force + POLE_MASS_LENGTH * self.theta_dot.powi(2) * sin) / TOTAL_MASS;
        let theta_acc =
            (GRAVITY * sin - cos * push) / (LENGTH * (4.0 / 3.0 - POLE_MASS * cos * cos / TOTAL_MASS));
        let x_acc = push - POLE_MASS_LENGTH * theta_acc * cos / TOTAL_MASS;

        self.x += TAU * self.x_dot;
        self.x_dot += TAU * x_acc;
        self.theta += TAU * self.theta_dot;
        self.theta_dot += TAU * theta_acc;

        self.observe(obs);
        let fell = self.x.abs() > POSITION_LIMIT || self.theta.abs() > ANGLE_LIMIT;
        Step { reward: 1.0, end: StepEnd::terminated_if(fell) }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.x, self.x_dot, self.theta, self.theta_dot]
    }

    fn set_state(&mut self, state: &[f64]) {
        [self.x, self.x_dot, self.theta, self.theta_dot] = exactly("CartPole", state);
    }

    #[inline]
    fn observe(&self, obs: &mut [f32]) {
        let state = [self.x, self.x_dot, self.theta, self.theta_dot];
        obs.copy_from_slice(&state.map(|value| value as f32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::env_rng;

    #[test]
    fn the_first_push_to_the_right_matches_the_equations_by_hand() {
        let (mut env, mut obs) = (CartPole::new(), [0.0; 4]);
        env.step(&1, &mut env_rng(0, 0), &mut obs);
        // Upright and at rest: q = 10/1.1, θ̈ = −q/(0.5·(4/3 − 0.1/1.1)), ẍ = q − 0.05·θ̈/1.1.
        let push = 10.0 / 1.1;
        let theta_acc = -push / (0.5 * (4.0 / 3.0 - 0.1 / 1.1));
        let want = [0.0, 0.02 * (push - 0.05 * theta_acc / 1.1), 0.0, 0.02 * theta_acc];
        for (got, want) in env.state().iter().zip(want) {
            assert!((got - want).abs() < 1e-15);
        }
    }

    #[test]
    fn leaning_past_twelve_degrees_terminates() {
        let (mut env, mut obs) = (CartPole::new(), [0.0; 4]);
        env.set_state(&[0.0, 0.0, 0.2094, 1.0]);
        assert_eq!(env.step(&0, &mut env_rng(0, 0), &mut obs).end, StepEnd::Terminated);
    }

    #[test]
    #[should_panic(expected = "actions 0 and 1, but got 2")]
    fn an_action_that_does_not_exist_panics() {
        CartPole::new().step(&2, &mut env_rng(0, 0), &mut [0.0; 4]);
    }
}

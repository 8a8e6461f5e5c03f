//! Swinging up a two-link pendulum by its elbow: `Acrobot-v1`.
//!
//! Only the joint between the links is driven (torque −1, 0 or 1); the tip must rise above the bar
//! by one link length. With unit masses and lengths, centres of mass at ½, unit moments of inertia
//! and `θ₁` from hanging, `θ₂` relative to the first link:
//!
//! ```text
//! d₁ = m₁·l_c1² + m₂·(l₁² + l_c2² + 2·l₁·l_c2·cos θ₂) + I₁ + I₂
//! d₂ = m₂·(l_c2² + l₁·l_c2·cos θ₂) + I₂
//! φ₂ = m₂·l_c2·g·cos(θ₁ + θ₂ − π/2)
//! φ₁ = −m₂·l₁·l_c2·θ̇₂²·sin θ₂ − 2·m₂·l₁·l_c2·θ̇₂·θ̇₁·sin θ₂ + (m₁·l_c1 + m₂·l₁)·g·cos(θ₁ − π/2) + φ₂
//! θ̈₂ = (τ + d₂/d₁·φ₁ − m₂·l₁·l_c2·θ̇₁²·sin θ₂ − φ₂) / (m₂·l_c2² + I₂ − d₂²/d₁)
//! θ̈₁ = −(d₂·θ̈₂ + φ₁) / d₁
//! ```
//!
//! integrated by one classical Runge–Kutta step of 0.2 s per action; then angles are wrapped to
//! `[−π, π]` and velocities clipped to ±4π and ±9π. Every step pays −1, the one that arrives 0.
//!
//! Source: Sutton and Barto, 1998, §11.3 (the "book" dynamics; Sutton's earlier 1996 paper drops the
//! `θ̇₁²` term), as in Gymnasium 1.x. The motion is chaotic: two implementations that differ in the
//! last bit part ways within a few hundred steps, so traces are compared from one stored state to
//! the next.

use std::f64::consts::PI;

use rand::RngExt;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::time_limit::TimeLimit;

const DT: f64 = 0.2;
const GRAVITY: f64 = 9.8;
/// Mass of each link.
const M: f64 = 1.0;
/// Length of the first link.
const L: f64 = 1.0;
/// Distance of each link's centre of mass from its joint.
const LC: f64 = 0.5;
/// Moment of inertia of each link.
const I: f64 = 1.0;
const MAX_VELOCITY: [f64; 2] = [4.0 * PI, 9.0 * PI];

/// The acrobot without a time limit.
///
/// State `(θ₁, θ₂, θ̇₁, θ̇₂)`; observation `(cos θ₁, sin θ₁, cos θ₂, sin θ₂, θ̇₁, θ̇₂)`; action `a`
/// applies the torque `a − 1`. Episodes start with all four uniform in ±0.1 (rounded to single
/// precision, as in Gymnasium).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acrobot {
    state: [f64; 4],
}

impl Acrobot {
    /// An acrobot hanging at rest, without a time limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// `Acrobot-v1`: cut after 500 steps, solved at a mean return of −100.
    pub fn v1() -> TimeLimit<Self> {
        TimeLimit::new(Self::new(), 500)
    }

    /// Height of the tip over the bar, in link lengths: `−cos θ₁ − cos(θ₁ + θ₂)`.
    pub fn tip_height(&self) -> f64 {
        let [theta1, theta2, ..] = self.state;
        -theta1.cos() - (theta2 + theta1).cos()
    }
}

/// Time derivative of the state under a constant torque (the equations above).
fn derivative([theta1, theta2, dtheta1, dtheta2]: [f64; 4], torque: f64) -> [f64; 4] {
    let (sin2, cos2) = theta2.sin_cos();
    let d1 = M * LC * LC + M * (L * L + LC * LC + 2.0 * L * LC * cos2) + I + I;
    let d2 = M * (LC * LC + L * LC * cos2) + I;
    let phi2 = M * LC * GRAVITY * (theta1 + theta2 - PI / 2.0).cos();
    let phi1 = -M * L * LC * dtheta2.powi(2) * sin2 - 2.0 * M * L * LC * dtheta2 * dtheta1 * sin2
        + (M * LC + M * L) * GRAVITY * (theta1 - PI / 2.0).cos()
        + phi2;
    let ddtheta2 = (torque + d2 / d1 * phi1 - M * L * LC * dtheta1.powi(2) * sin2 - phi2)
        / (M * LC * LC + I - d2 * d2 / d1);
    let ddtheta1 = -(d2 * ddtheta2 + phi1) / d1;
    [dtheta1, dtheta2, ddtheta1, ddtheta2]
}

/// One classical Runge–Kutta step of length [`DT`]: `y + Δt/6·(k₁ + 2k₂ + 2k₃ + k₄)`.
fn runge_kutta(y: [f64; 4], torque: f64) -> [f64; 4] {
    let ahead = |k: [f64; 4], dt: f64| std::array::from_fn(|i| y[i] + dt * k[i]);
    let k1 = derivative(y, torque);
    let k2 = derivative(ahead(k1, DT / 2.0), torque);
    let k3 = derivative(ahead(k2, DT / 2.0), torque);
    let k4 = derivative(ahead(k3, DT), torque);
    std::array::from_fn(|i| y[i] + DT / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}

/// Brings an angle into `[−π, π]` by whole turns; what is not finite stays as it is.
fn wrap(mut angle: f64) -> f64 {
    const TURN: f64 = 2.0 * PI;
    if angle.abs() > 100.0 * TURN {
        angle %= TURN; // far beyond what one step can turn; also ends the loops below for any input
    }
    while angle > PI {
        angle -= TURN;
    }
    while angle < -PI {
        angle += TURN;
    }
    angle
}

impl Env for Acrobot {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        6
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: 3 }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.state = std::array::from_fn(|_| f64::from(rng.random_range(-0.1..0.1) as f32));
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        assert!(action < 3, "Acrobot has actions 0, 1 and 2, but got {action}");
        let [theta1, theta2, dtheta1, dtheta2] = runge_kutta(self.state, action as f64 - 1.0);
        self.state = [
            wrap(theta1),
            wrap(theta2),
            dtheta1.clamp(-MAX_VELOCITY[0], MAX_VELOCITY[0]),
            dtheta2.clamp(-MAX_VELOCITY[1], MAX_VELOCITY[1]),
        ];
        self.observe(obs);
        let arrived = self.tip_height() > 1.0;
        Step { reward: if arrived { 0.0 } else { -1.0 }, end: StepEnd::terminated_if(arrived) }
    }

    fn state(&self) -> Vec<f64> {
        self.state.to_vec()
    }

    fn set_state(&mut self, state: &[f64]) {
        self.state = exactly("Acrobot", state);
    }

    fn observe(&self, obs: &mut [f32]) {
        let [theta1, theta2, dtheta1, dtheta2] = self.state;
        let values = [theta1.cos(), theta1.sin(), theta2.cos(), theta2.sin(), dtheta1, dtheta2];
        obs.copy_from_slice(&values.map(|value| value as f32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::env_rng;

    #[test]
    fn hanging_still_without_torque_is_an_equilibrium() {
        let (mut env, mut obs) = (Acrobot::new(), [0.0; 6]);
        env.step(&1, &mut env_rng(0, 0), &mut obs);
        assert!(env.state().iter().all(|value| value.abs() < 1e-12), "{:?}", env.state());
        assert_eq!(env.tip_height(), -2.0);
    }

    #[test]
    fn mirrored_torque_gives_the_mirrored_motion() {
        let (mut left, mut right, mut obs) = (Acrobot::new(), Acrobot::new(), [0.0; 6]);
        for _ in 0..20 {
            left.step(&0, &mut env_rng(0, 0), &mut obs);
            right.step(&2, &mut env_rng(0, 0), &mut obs);
        }
        for (l, r) in left.state().iter().zip(right.state()) {
            assert!((l + r).abs() < 1e-9, "{l} {r}");
        }
    }

    #[test]
    fn angles_are_wrapped_by_whole_turns() {
        assert!((wrap(PI + 0.1) - (0.1 - PI)).abs() < 1e-12);
        assert!((wrap(-5.0 * PI - 0.1) - (PI - 0.1)).abs() < 1e-12);
        assert_eq!(wrap(PI), PI);
    }
}

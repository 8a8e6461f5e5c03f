//! The one-dimensional linear-quadratic regulator: a continuous world with a closed form.
//!
//! ```text
//! x_{t+1} = a·x_t + b·u_t + σ·w_t,   w_t ~ N(0, 1),     r_t = −(q·x_t² + r·u_t²)
//! ```
//!
//! For a linear policy `u = −k·x` the discounted cost-to-go is quadratic, `C(x) = P·x² + c`, with
//!
//! ```text
//! any gain   P_k = (q + r·k²) / (1 − γ·(a − b·k)²),   c = γ·P·σ² / (1 − γ)
//! Riccati    P   = q + γa²P − (γabP)² / (r + γb²P),   k* = γabP / (r + γb²P)
//! ```
//!
//! and no policy whatever, linear or not, costs less than `k*`. The optimum does not depend on the
//! noise, which only adds the constant `c`.
//!
//! Sources: Bertsekas, *Dynamic Programming and Optimal Control*, vol. 1, 2005, §4.1 (Riccati
//! equation); Kakade 2001, §4 (the world of [`Lqr::kakade`]).

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::error::EnvError;

/// The numbers of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LqrConfig {
    /// How the state carries over, `a`.
    pub a: f64,
    /// How the control acts, `b ≠ 0`.
    pub b: f64,
    /// Cost of the state, `q > 0`.
    pub q: f64,
    /// Cost of the control, `r ≥ 0`.
    pub r: f64,
    /// Standard deviation of the noise, `σ ≥ 0`.
    pub noise: f64,
    /// Standard deviation of the first state (mean 0).
    pub start: f64,
}

impl Default for LqrConfig {
    /// A drifting particle, `x' = x + u + 0.1·w`, with equal costs.
    fn default() -> Self {
        Self { a: 1.0, b: 1.0, q: 1.0, r: 1.0, noise: 0.1, start: 1.0 }
    }
}

/// The optimum at one discount factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LqrOptimum {
    /// The gain `k*` of the optimal policy `u = −k*·x`.
    pub gain: f64,
    /// `P` of the cost-to-go `P·x² + c`.
    pub curvature: f64,
    /// `c` of the cost-to-go: what the noise costs whatever one does.
    pub constant: f64,
}

/// The regulator as an environment that never ends; wrap it in a [`TimeLimit`](crate::TimeLimit).
///
/// Observation: `x`. One action, `u`, without bounds: clipping it would break the closed form. An
/// unstable policy therefore drives `x` far away within a long episode; keep the limit short
/// (50 steps) while learning.
#[derive(Clone, Debug, PartialEq)]
pub struct Lqr {
    config: LqrConfig,
    x: f64,
}

impl Lqr {
    /// A regulator from its numbers.
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`], naming the number.
    pub fn new(config: LqrConfig) -> Result<Self, EnvError> {
        let LqrConfig { a, b, q, r, noise, start } = config;
        let check = |key, range, got: f64, fine: bool| {
            if fine && got.is_finite() { Ok(()) } else { Err(EnvError::OutOfRange { key, range, got }) }
        };
        check("a", "(−∞, ∞)", a, true)?;
        check("b", "(−∞, 0) or (0, ∞)", b, b != 0.0)?;
        check("q", "(0, ∞)", q, q > 0.0)?;
        check("r", "[0, ∞)", r, r >= 0.0)?;
        check("noise", "[0, ∞)", noise, noise >= 0.0)?;
        check("start", "[0, ∞)", start, start >= 0.0)?;
        Ok(Self { config, x: 0.0 })
    }

    /// `x' = 0.7·x + u + w`, cost `x²`: with free control the optimum is the gain 0.7 exactly, for
    /// any `γ > 0`. Kakade 2001, §4.
    pub fn kakade() -> Self {
        let config = LqrConfig { a: 0.7, b: 1.0, q: 1.0, r: 0.0, noise: 1.0, start: 1.0 };
        Self { config, x: 0.0 }
    }

    /// The numbers of the process.
    pub fn config(&self) -> LqrConfig {
        self.config
    }

    /// The optimal gain and cost: the positive root of the Riccati equation.
    ///
    /// Times its denominator the equation is quadratic, `A·P² + B·P − q·r = 0` with `A = γb²` and
    /// `B = r·(1 − γa²) − q·γb²`.
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`] for `gamma` outside `[0, 1)`.
    pub fn optimum(&self, gamma: f64) -> Result<LqrOptimum, EnvError> {
        let LqrConfig { a, b, q, r, noise, .. } = self.config;
        check_gamma(gamma)?;
        let quadratic = gamma * b * b;
        if quadratic == 0.0 {
            // Nothing after this step counts: do nothing, pay for the state.
            return Ok(LqrOptimum { gain: 0.0, curvature: q, constant: 0.0 });
        }
        let linear = r * (1.0 - gamma * a * a) - q * quadratic;
        let root = (linear * linear + 4.0 * quadratic * q * r).sqrt();
        // Of the two forms of the root, the one that does not subtract nearly equal numbers.
        let p =
            if linear > 0.0 { 2.0 * q * r / (linear + root) } else { (root - linear) / (2.0 * quadratic) };
        let gain = gamma * a * b * p / (r + quadratic * p);
        Ok(LqrOptimum { gain, curvature: p, constant: gamma * p * noise * noise / (1.0 - gamma) })
    }

    /// Expected discounted cost `Σ γ^t·(q·x² + r·u²)` of the policy `u = −gain·x` from state `x`;
    /// infinite if the closed loop does not contract, `γ·(a − b·gain)² ≥ 1`.
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`] for `gamma` outside `[0, 1)`.
    pub fn cost_of_gain(&self, gain: f64, gamma: f64, x: f64) -> Result<f64, EnvError> {
        let LqrConfig { a, b, q, r, noise, .. } = self.config;
        check_gamma(gamma)?;
        let contraction = gamma * (a - b * gain).powi(2);
        if contraction >= 1.0 {
            return Ok(f64::INFINITY);
        }
        let p = (q + r * gain * gain) / (1.0 - contraction);
        Ok(p * x * x + gamma * p * noise * noise / (1.0 - gamma))
    }
}

fn check_gamma(gamma: f64) -> Result<(), EnvError> {
    if (0.0..1.0).contains(&gamma) {
        Ok(())
    } else {
        Err(EnvError::OutOfRange { key: "gamma", range: "[0, 1)", got: gamma })
    }
}

impl Env for Lqr {
    type Action = [f32];

    fn obs_dim(&self) -> usize {
        1
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Continuous { low: vec![f32::NEG_INFINITY], high: vec![f32::INFINITY] }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.x = self.config.start * rng.sample::<f64, _>(StandardNormal);
        self.observe(obs);
    }

    fn step(&mut self, action: &[f32], rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        let &[u] = action else { panic!("Lqr takes 1 action entry, but got {}", action.len()) };
        let LqrConfig { a, b, q, r, noise, .. } = self.config;
        let u = f64::from(u);
        let cost = q * self.x * self.x + r * u * u;
        self.x = a * self.x + b * u + noise * rng.sample::<f64, _>(StandardNormal);
        self.observe(obs);
        Step { reward: -cost as f32, end: StepEnd::Continues }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.x]
    }

    fn set_state(&mut self, state: &[f64]) {
        [self.x] = exactly("Lqr", state);
    }

    fn observe(&self, obs: &mut [f32]) {
        obs.copy_from_slice(&[self.x as f32]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_free_control_the_optimum_cancels_the_drift() {
        for gamma in [0.1, 0.9, 0.99] {
            let optimum = Lqr::kakade().optimum(gamma).unwrap();
            assert!((optimum.gain - 0.7).abs() < 1e-12);
            assert!((optimum.curvature - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_undiscounted_limit_of_the_drifting_particle_is_the_golden_ratio() {
        // γ → 1, a = b = q = r = 1: P = 1 + P/(1 + P), hence P = (1 + √5)/2 and k = P/(1 + P).
        let optimum = Lqr::new(LqrConfig::default()).unwrap().optimum(1.0 - 1e-12).unwrap();
        assert!((optimum.curvature - (1.0 + 5.0_f64.sqrt()) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_control_without_effect_is_refused() {
        let error = Lqr::new(LqrConfig { b: 0.0, ..LqrConfig::default() }).unwrap_err();
        assert_eq!(error.to_string(), "`b` must be in (−∞, 0) or (0, ∞), but is 0");
    }
}

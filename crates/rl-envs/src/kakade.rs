//! Kakade's two-state chain: where the plain policy gradient stalls and the natural one does not.
//!
//! ```text
//!     r = 1                    r = 2
//!    ┌────┐    r = 0          ┌────┐
//!    └► i ─────────────────►  j ◄──┘        action 0 stays, action 1 moves to the other state
//!         ◄─────────────────
//!              r = 0
//! ```
//!
//! With `p_s` the probability to stay in state `s` the chain is ergodic, and everything is exact:
//!
//! ```text
//! visitation      ρ_i = (1 − p_j) / (2 − p_i − p_j),    ρ_j = 1 − ρ_i
//! average reward  η   = ρ_i·p_i·1 + ρ_j·p_j·2
//! ```
//!
//! Staying in `j` for ever is best, `η → 2`. From the start of the paper's figure (`p = (0.8, 0.2)`,
//! thus `ρ = (0.8, 0.2)`) the plain gradient first learns to stay in `i`, because that is where it
//! mostly is; then it hardly ever visits `j`, whose gradient carries the factor `ρ_j`, and stalls at
//! `η ≈ 1`. The natural gradient divides `ρ_s` out again.
//!
//! Source: Kakade, *A Natural Policy Gradient*, NIPS 2001, §4 and figure 2.

use rand::RngExt;

use crate::bandit::one_hot;
use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, exactly};
use crate::error::EnvError;
use crate::value_iteration::TabularMdp;

/// Reward of staying in state `i` and in state `j`.
const STAY_REWARD: [f64; 2] = [1.0, 2.0];

/// The chain as an environment that never ends.
///
/// Observation: one-hot of the state. Episodes start in `i` with probability 0.8, else in `j`, the
/// start visitation of the paper's figure. Wrap it in a [`TimeLimit`](crate::TimeLimit) for episodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kakade {
    state: usize,
}

impl Kakade {
    /// Probability to start in state `i`.
    pub const START: f64 = 0.8;

    /// The chain in state `i`.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The chain as a process with discount γ, with states `i, j` and actions stay, move.
///
/// # Errors
/// [`EnvError::OutOfRange`] for `gamma` outside `[0, 1]`.
pub fn model(gamma: f64) -> Result<TabularMdp, EnvError> {
    let transitions = vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0];
    TabularMdp::new(2, 2, transitions, vec![STAY_REWARD[0], 0.0, STAY_REWARD[1], 0.0], gamma)
}

/// Long-run share of time in `(i, j)` under staying probabilities `stay`.
///
/// # Panics
/// If both are 1: two absorbing states have no unique long run.
pub fn visitation(stay: [f64; 2]) -> [f64; 2] {
    let leave = stay.map(|p| 1.0 - p);
    let total = leave[0] + leave[1];
    assert!(total > 0.0, "with both states absorbing the long run depends on the start");
    [leave[1] / total, leave[0] / total]
}

/// Average reward per step, `η = Σ_s ρ_s·p_s·r_s`.
pub fn average_reward(stay: [f64; 2]) -> f64 {
    let visits = visitation(stay);
    (0..2).map(|s| visits[s] * stay[s] * STAY_REWARD[s]).sum()
}

/// Gradient of the average reward in the logits `θ_s` of staying, `p_s = σ(θ_s)`.
///
/// `∂η/∂θ_s = p_s(1 − p_s)·∂η/∂p_s`, the quotient rule on `η` above. It carries the factor `ρ_s`
/// (the policy gradient theorem), the cause of the stall.
pub fn average_reward_gradient(stay: [f64; 2]) -> [f64; 2] {
    let [p, q] = stay;
    let total = 2.0 - p - q;
    let eta = average_reward(stay);
    // η·total = (1 − q)·p·r_i + (1 − p)·q·r_j, differentiated in p and in q.
    let [ri, rj] = STAY_REWARD;
    let wrt_p = ((1.0 - q) * ri - q * rj + eta) / total;
    let wrt_q = ((1.0 - p) * rj - p * ri + eta) / total;
    [p * (1.0 - p) * wrt_p, q * (1.0 - q) * wrt_q]
}

/// Natural gradient of the average reward in the same logits, `F⁻¹∇η` with the diagonal Fisher
/// matrix `F_ss = ρ_s·p_s(1 − p_s)`. Kakade 2001, §2.
pub fn natural_gradient(stay: [f64; 2]) -> [f64; 2] {
    let (gradient, visits) = (average_reward_gradient(stay), visitation(stay));
    std::array::from_fn(|s| gradient[s] / (visits[s] * stay[s] * (1.0 - stay[s])))
}

impl Env for Kakade {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        2
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: 2 }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.state = usize::from(!rng.random_bool(Self::START));
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, _: &mut EnvRng, obs: &mut [f32]) -> Step {
        let reward = match action {
            0 => STAY_REWARD[self.state],
            1 => {
                self.state = 1 - self.state;
                0.0
            }
            other => panic!("Kakade has actions 0 (stay) and 1 (move), but got {other}"),
        };
        self.observe(obs);
        Step { reward: reward as f32, end: StepEnd::Continues }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.state as f64]
    }

    fn set_state(&mut self, state: &[f64]) {
        let [state] = exactly("Kakade", state);
        assert!(state == 0.0 || state == 1.0, "Kakade has states 0 and 1, not {state}");
        self.state = state as usize;
    }

    fn observe(&self, obs: &mut [f32]) {
        one_hot(self.state, obs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ascends from the paper's start until `η > 1.9`; returns the updates and the least visitation of `j`.
    fn climb(rate: f64, direction: impl Fn([f64; 2]) -> [f64; 2]) -> (usize, f64) {
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (mut logits, mut least) = ([0.8_f64, 0.2].map(|p| (p / (1.0 - p)).ln()), 1.0_f64);
        for update in 0..10_000 {
            let stay = logits.map(logistic);
            least = least.min(visitation(stay)[1]);
            if average_reward(stay) > 1.9 {
                return (update, least);
            }
            let step = direction(stay);
            logits = std::array::from_fn(|s| logits[s] + rate * step[s]);
        }
        panic!("never above 1.9")
    }

    #[test]
    fn the_plain_gradient_stalls_where_the_natural_gradient_passes() {
        let (updates, least) = climb(1.0, average_reward_gradient);
        assert_eq!((updates, (least * 1e3).round()), (309, 12.0));
        let (updates, least) = climb(0.1, natural_gradient);
        assert_eq!((updates, (least * 1e2).round()), (18, 14.0));
    }
}

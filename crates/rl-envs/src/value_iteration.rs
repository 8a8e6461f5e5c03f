//! The oracle: exact values of small Markov decision processes.
//!
//! Value-based reinforcement learning in its purest form, and the contrast to everything else in
//! this project: knowing the model, act greedily on the fixed point of Bellman's operator.
//!
//! ```text
//! optimality   q*(s, a) = r(s, a) + γ·Σ_s' P(s'|s, a)·v*(s'),    v*(s) = max_a q*(s, a)
//! evaluation   v_π      = (I − γ·P_π)⁻¹ r_π
//! ```
//!
//! The operator contracts distances by `γ`, hence iterating it converges, and a sweep that moves by
//! `ε` is within `ε·γ/(1 − γ)` of the fixed point.
//!
//! **Ends are missing probability.** A row of `P` may sum to less than 1; the rest is the chance
//! that the episode terminates, after which nothing is earned. No absorbing dummy states, and
//! `γ = 1` works when every policy ends.
//!
//! Source: Bellman, *Dynamic Programming*, 1957; Sutton and Barto 2018, §4.1 and §4.4.

use crate::error::EnvError;

/// A finite Markov decision process, as numbers.
///
/// ```
/// use rl_envs::TabularMdp;
/// // One state. Action 0 pays 1 and goes on with probability ½; action 1 pays 1.5 and ends.
/// let mdp = TabularMdp::new(1, 2, vec![0.5, 0.0], vec![1.0, 1.5], 1.0).unwrap();
/// let solution = mdp.value_iteration(1e-12).unwrap();
/// assert!((solution.values[0] - 2.0).abs() < 1e-9);
/// assert_eq!(mdp.greedy_policy(&solution.values), [0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TabularMdp {
    states: usize,
    actions: usize,
    /// `P(s'|s, a)`, `[S·A·S]`, state-major.
    transitions: Vec<f64>,
    /// Expected reward `r(s, a)`, `[S·A]`.
    rewards: Vec<f64>,
    gamma: f64,
}

/// What value iteration found.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// `v*`, `[S]`.
    pub values: Vec<f64>,
    /// Sweeps made.
    pub sweeps: usize,
    /// The largest change of a value in the last sweep.
    pub residual: f64,
}

impl TabularMdp {
    /// A process of `states` states and `actions` actions.
    ///
    /// # Shapes
    /// `transitions: [S·A·S]` (state, action, next state), `rewards: [S·A]`
    ///
    /// # Errors
    /// [`EnvError::NotADistribution`] for a row with a negative entry or a sum above 1;
    /// [`EnvError::OutOfRange`] for `gamma` outside `[0, 1]`.
    ///
    /// # Panics
    /// On other shapes.
    pub fn new(
        states: usize,
        actions: usize,
        transitions: Vec<f64>,
        rewards: Vec<f64>,
        gamma: f64,
    ) -> Result<Self, EnvError> {
        assert!(states > 0 && actions > 0, "a process needs a state and an action");
        assert_eq!(transitions.len(), states * actions * states, "transitions must be [S·A·S]");
        assert_eq!(rewards.len(), states * actions, "rewards must be [S·A]");
        if !(0.0..=1.0).contains(&gamma) {
            return Err(EnvError::OutOfRange { key: "gamma", range: "[0, 1]", got: gamma });
        }
        for (row, probs) in transitions.chunks_exact(states).enumerate() {
            let sum: f64 = probs.iter().map(|&p| if p >= 0.0 { p } else { f64::NAN }).sum();
            if sum.is_nan() || sum > 1.0 + 1e-9 {
                return Err(EnvError::NotADistribution { state: row / actions, action: row % actions, sum });
            }
        }
        Ok(Self { states, actions, transitions, rewards, gamma })
    }

    /// The number of states, `S`.
    pub fn states(&self) -> usize {
        self.states
    }

    /// The number of actions, `A`.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The discount factor `γ`.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// `P(·|s, a)`, `[S]`; what its sum lacks to 1 is the chance that the episode ends.
    pub fn next(&self, state: usize, action: usize) -> &[f64] {
        let row = state * self.actions + action;
        &self.transitions[row * self.states..(row + 1) * self.states]
    }

    /// Expected reward `r(s, a)`.
    pub fn reward(&self, state: usize, action: usize) -> f64 {
        self.rewards[state * self.actions + action]
    }

    /// `q(s, a) = r(s, a) + γ·Σ_s' P(s'|s, a)·v(s')`.
    ///
    /// # Shapes
    /// `values: [S]` → `[S·A]`
    pub fn q_values(&self, values: &[f64]) -> Vec<f64> {
        assert_eq!(values.len(), self.states, "values must be [S]");
        let future = |probs: &[f64]| -> f64 { probs.iter().zip(values).map(|(p, v)| p * v).sum() };
        let rows = self.transitions.chunks_exact(self.states);
        self.rewards.iter().zip(rows).map(|(r, probs)| r + self.gamma * future(probs)).collect()
    }

    /// The fixed point of Bellman's optimality operator, swept until no value moves by more than
    /// `tolerance`. Sutton and Barto 2018, eq. 4.10.
    ///
    /// # Errors
    /// [`EnvError::NotConverged`] after 100,000 sweeps: with `γ = 1` a policy that never ends may
    /// earn without bound.
    pub fn value_iteration(&self, tolerance: f64) -> Result<Solution, EnvError> {
        const MAX_SWEEPS: usize = 100_000;
        let (mut values, mut residual) = (vec![0.0; self.states], f64::INFINITY);
        for sweeps in 1..=MAX_SWEEPS {
            let q = self.q_values(&values);
            let best: Vec<f64> = q.chunks_exact(self.actions).map(|q| q[argmax(q)]).collect();
            residual = best.iter().zip(&values).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
            values = best;
            if residual <= tolerance {
                return Ok(Solution { values, sweeps, residual });
            }
        }
        Err(EnvError::NotConverged { sweeps: MAX_SWEEPS, residual })
    }

    /// The action of highest `q` in every state; at ties the lowest number.
    ///
    /// # Shapes
    /// `values: [S]` → `[S]`
    pub fn greedy_policy(&self, values: &[f64]) -> Vec<usize> {
        self.q_values(values).chunks_exact(self.actions).map(argmax).collect()
    }

    /// Exact values of a stochastic policy, `v_π = (I − γP_π)⁻¹ r_π`, by elimination.
    ///
    /// # Shapes
    /// `policy: [S·A]`, the probabilities `π(a|s)` → `[S]`
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`] for `gamma` if the system is singular: `γ = 1` under a policy that
    /// never ends.
    pub fn policy_evaluation(&self, policy: &[f64]) -> Result<Vec<f64>, EnvError> {
        assert_eq!(policy.len(), self.rewards.len(), "a policy must be [S·A]");
        let n = self.states;
        let mut rows = Vec::with_capacity(n); // [I − γP_π | r_π]
        for s in 0..n {
            let mut row = vec![0.0; n + 1];
            row[s] = 1.0;
            for a in 0..self.actions {
                let chance = policy[s * self.actions + a];
                row[n] += chance * self.reward(s, a);
                for (entry, p) in row.iter_mut().zip(self.next(s, a)) {
                    *entry -= self.gamma * chance * p;
                }
            }
            rows.push(row);
        }
        solve(rows).ok_or(EnvError::OutOfRange {
            key: "gamma",
            range: "[0, 1) unless every policy ends",
            got: self.gamma,
        })
    }

    /// Expected discounted visits `d(s) = Σ_t γᵗ·P(s_t = s)` under a stochastic policy from first states `μ`: the
    /// solution of `(I − γ·P_πᵀ)·d = μ`.   Sutton et al. 2000, §2
    ///
    /// # Shapes
    /// `policy: [S·A]`, `start: [S]` → `[S]`
    ///
    /// # Errors
    /// As [`policy_evaluation`](Self::policy_evaluation).
    pub fn discounted_visits(&self, policy: &[f64], start: &[f64]) -> Result<Vec<f64>, EnvError> {
        assert_eq!(policy.len(), self.rewards.len(), "a policy must be [S·A]");
        assert_eq!(start.len(), self.states, "a start must be [S]");
        let n = self.states;
        let mut rows = vec![vec![0.0; n + 1]; n]; // [I − γP_πᵀ | μ]
        for (s, row) in rows.iter_mut().enumerate() {
            row[s] = 1.0;
            row[n] = start[s];
        }
        for s in 0..n {
            for a in 0..self.actions {
                let chance = policy[s * self.actions + a];
                for (next, p) in self.next(s, a).iter().enumerate() {
                    rows[next][s] -= self.gamma * chance * p;
                }
            }
        }
        solve(rows).ok_or(EnvError::OutOfRange {
            key: "gamma",
            range: "[0, 1) unless every policy ends",
            got: self.gamma,
        })
    }

    /// The values of a deterministic policy; see [`policy_evaluation`](Self::policy_evaluation).
    ///
    /// # Errors
    /// As there.
    pub fn evaluate_actions(&self, policy: &[usize]) -> Result<Vec<f64>, EnvError> {
        assert_eq!(policy.len(), self.states, "a deterministic policy must be [S]");
        let mut probs = vec![0.0; self.rewards.len()];
        for (s, &a) in policy.iter().enumerate() {
            assert!(a < self.actions, "state {s} takes action {a} of {}", self.actions);
            probs[s * self.actions + a] = 1.0;
        }
        self.policy_evaluation(&probs)
    }
}

/// Solves `A·x = b` given the rows `[A | b]` by elimination with row exchange; `None` if singular.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs()))?;
        rows.swap(k, pivot);
        if rows[k][k].abs() < 1e-13 {
            return None;
        }
        let (upper, lower) = rows.split_at_mut(k + 1);
        let pivot_row = &upper[k];
        for row in lower {
            let factor = row[k] / pivot_row[k];
            for (entry, above) in row[k..].iter_mut().zip(&pivot_row[k..]) {
                *entry -= factor * above;
            }
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * x[j]).sum();
        x[k] = (rows[k][n] - known) / rows[k][k];
    }
    Some(x)
}

/// Index of the first largest entry.
pub(crate) fn argmax(values: &[f64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_sums_above_one_names_its_state_and_action() {
        let error = TabularMdp::new(2, 1, vec![0.5, 0.5, 0.9, 0.2], vec![0.0; 2], 0.9).unwrap_err();
        assert!(error.to_string().contains("action 0 in state 1 sum to 1.1"), "{error}");
    }

    #[test]
    fn earning_for_ever_without_discount_is_reported_not_looped() {
        let mdp = TabularMdp::new(1, 1, vec![1.0], vec![1.0], 1.0).unwrap();
        assert!(matches!(mdp.value_iteration(1e-9), Err(EnvError::NotConverged { .. })));
        assert!(matches!(mdp.evaluate_actions(&[0]), Err(EnvError::OutOfRange { key: "gamma", .. })));
    }
}

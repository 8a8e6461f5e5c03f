//! Learning without networks: tables of action values and of softmax logits, in double precision.
//!
//! Two families, on the same small worlds ([`TabularMdp`], [`GridWorld`](crate::GridWorld), a one-hot [`Env`]):
//!
//! ```text
//! value-based    q(s, a) ← q(s, a) + α·(r + γ·max_a' q(s', a') − q(s, a))       Q-learning
//!                q(s, a) ← q(s, a) + α·(r + γ·q(s', a') − q(s, a))              SARSA
//! policy-based   θ ← θ + α·∇J,   ∂J/∂θ(s, a) = d(s)·π(a|s)·A(s, a)              policy gradient
//!                θ ← θ + α·F⁻¹∇J,     (F⁻¹∇J)(s, a) = A(s, a)                   natural gradient
//! ```
//!
//! with `d(s) = Σ_t γᵗ·P(s_t = s)` and `A = q_π − v_π`. All of them have [value iteration](crate::value_iteration) as
//! their judge.
//!
//! Sources: Watkins and Dayan 1992 (Q-learning); Rummery and Niranjan 1994 (SARSA); Sutton et al. 2000, theorem 1
//! (policy gradient); Kakade 2001, §3 (natural gradient).

use rand::RngExt;

use crate::env::{Env, EnvRng, StepEnd};
use crate::error::EnvError;
use crate::value_iteration::{TabularMdp, argmax};

/// Which action value of the next state a target believes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The best one, whatever is done next: off-policy.   Watkins & Dayan 1992
    QLearning,
    /// That of the action really taken next: on-policy.   Sutton & Barto 2018, eq. 6.7
    Sarsa,
}

/// How a temporal-difference learner learns, at progress `p` of its run from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct TdConfig {
    /// Which target.
    pub target: Target,
    /// Discount γ.
    pub gamma: f64,
    /// Exploration: the chance of a uniform action, as a function of progress.
    pub epsilon: fn(f64) -> f64,
    /// α as a function of progress.
    pub step_size: fn(f64) -> f64,
    /// Steps in the world.
    pub steps: usize,
    /// Steps after which an episode is cut; the cut state keeps its value.
    pub longest_episode: usize,
}

/// Action values `q(s, a)` of `S` states and `A` actions.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionValues {
    actions: usize,
    /// `[S·A]`, state-major.
    pub q: Vec<f64>,
}

impl ActionValues {
    /// All zero.
    pub fn new(states: usize, actions: usize) -> Self {
        Self { actions, q: vec![0.0; states * actions] }
    }

    fn row(&self, state: usize) -> &[f64] {
        &self.q[state * self.actions..(state + 1) * self.actions]
    }

    /// The best action of a state; at ties the lowest number.
    pub fn greedy(&self, state: usize) -> usize {
        argmax(self.row(state))
    }

    /// `max_a q(s, a)`.
    pub fn value(&self, state: usize) -> f64 {
        self.row(state)[self.greedy(state)]
    }

    /// The greedy action with chance `1 − ε`, else a uniform one.
    pub fn epsilon_greedy(&self, state: usize, epsilon: f64, rng: &mut EnvRng) -> usize {
        if rng.random::<f64>() < epsilon { rng.random_range(0..self.actions) } else { self.greedy(state) }
    }

    /// Learns in `env`, whose observation is the one-hot of its state, with actions drawn from `rng`.
    ///
    /// # Panics
    /// If an observation is not one-hot.
    pub fn learn<E: Env<Action = usize>>(&mut self, mut env: E, config: &TdConfig, rng: &mut EnvRng) {
        let TdConfig { target, gamma, epsilon, step_size, steps, longest_episode } = *config;
        let mut obs = vec![0.0; env.obs_dim()];
        env.reset(rng, &mut obs);
        let mut state = hot(&obs);
        let mut action = self.epsilon_greedy(state, epsilon(0.0), rng);
        let mut length = 0;
        for step in 0..steps {
            let progress = step as f64 / steps as f64;
            let answer = env.step(&action, rng, &mut obs);
            length += 1;
            let next = hot(&obs);
            let next_action = self.epsilon_greedy(next, epsilon(progress), rng);
            let future = match (answer.end, target) {
                (StepEnd::Terminated, _) => 0.0,
                (_, Target::QLearning) => self.value(next),
                (_, Target::Sarsa) => self.row(next)[next_action],
            };
            let cell = &mut self.q[state * self.actions + action];
            *cell += step_size(progress) * (f64::from(answer.reward) + gamma * future - *cell);
            (state, action) = (next, next_action);
            if answer.end.is_over() || length == longest_episode {
                env.reset(rng, &mut obs);
                (state, length) = (hot(&obs), 0);
                action = self.epsilon_greedy(state, epsilon(progress), rng);
            }
        }
    }
}

/// The state whose one-hot `obs` is.
fn hot(obs: &[f32]) -> usize {
    let state = obs.iter().position(|&x| x == 1.0).expect("a tabular world shows the one-hot of its state");
    assert!(obs.iter().sum::<f32>() == 1.0, "a tabular world shows the one-hot of its state");
    state
}

/// Softmax logits `θ(s, a)`, and the policy `π(a|s) = exp θ(s, a) / Σ_b exp θ(s, b)`.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftmaxTable {
    actions: usize,
    /// `[S·A]`, state-major.
    pub theta: Vec<f64>,
}

impl SoftmaxTable {
    /// The uniform policy.
    pub fn new(states: usize, actions: usize) -> Self {
        Self { actions, theta: vec![0.0; states * actions] }
    }

    /// `π(a|s)`, `[S·A]`.
    pub fn probs(&self) -> Vec<f64> {
        let mut probs = Vec::with_capacity(self.theta.len());
        for row in self.theta.chunks_exact(self.actions) {
            let most = row.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = row.iter().map(|z| (z - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            probs.extend(weights.iter().map(|w| w / total));
        }
        probs
    }

    /// `θ ← θ + α·direction`.
    ///
    /// # Shapes
    /// `direction: [S·A]`
    pub fn ascend(&mut self, step_size: f64, direction: &[f64]) {
        assert_eq!(direction.len(), self.theta.len(), "a direction must be [S·A]");
        self.theta.iter_mut().zip(direction).for_each(|(theta, d)| *theta += step_size * d);
    }

    /// `A(s, a) = q_π(s, a) − v_π(s)`, which is also the natural gradient `F⁻¹∇J` wherever `d(s) > 0`: the Fisher matrix
    /// of a state is `d(s)·(diag π − π πᵀ)`, and `d(s)·π·A` is it times `A`.   Kakade 2001, §3
    ///
    /// # Shapes
    /// → `[S·A]`
    ///
    /// # Errors
    /// As [`TabularMdp::policy_evaluation`].
    pub fn natural_gradient(&self, mdp: &TabularMdp) -> Result<Vec<f64>, EnvError> {
        let values = mdp.policy_evaluation(&self.probs())?;
        let q = mdp.q_values(&values);
        let rows = q.chunks_exact(self.actions).zip(&values);
        Ok(rows.flat_map(|(q, v)| q.iter().map(move |q| q - v)).collect())
    }

    /// `∂J/∂θ(s, a) = d(s)·π(a|s)·A(s, a)` of `J = Σ_s μ(s)·v_π(s)`, exact.   Sutton et al. 2000, theorem 1
    ///
    /// # Shapes
    /// `start: [S]`, the distribution μ of first states → `[S·A]`
    ///
    /// # Errors
    /// As [`TabularMdp::policy_evaluation`].
    pub fn policy_gradient(&self, mdp: &TabularMdp, start: &[f64]) -> Result<Vec<f64>, EnvError> {
        let probs = self.probs();
        let visits = mdp.discounted_visits(&probs, start)?;
        let advantage = self.natural_gradient(mdp)?;
        let cells = probs.iter().zip(&advantage).enumerate();
        Ok(cells.map(|(i, (p, a))| visits[i / self.actions] * p * a).collect())
    }

    /// One sample of [`policy_gradient`](Self::policy_gradient) from a whole episode of `env`:
    /// `Σ_t γᵗ·∇log π(a_t|s_t)·(G_t − b)`, and the episode's undiscounted return.   Williams 1992; Sutton & Barto 2018,
    /// §13.3
    ///
    /// The factor γᵗ, left out by most programs, is kept: with it the estimate is unbiased. An episode is cut after
    /// `longest` steps, which biases it by at most `γ^longest`.
    pub fn reinforce<E: Env<Action = usize>>(
        &self,
        env: &mut E,
        gamma: f64,
        baseline: f64,
        longest: usize,
        rng: &mut EnvRng,
    ) -> (Vec<f64>, f64) {
        let probs = self.probs();
        let mut obs = vec![0.0; env.obs_dim()];
        env.reset(rng, &mut obs);
        let mut path = Vec::new();
        for _ in 0..longest {
            let state = hot(&obs);
            let row = &probs[state * self.actions..(state + 1) * self.actions];
            let action = draw(row, rng);
            let answer = env.step(&action, rng, &mut obs);
            path.push((state, action, f64::from(answer.reward)));
            if answer.end.is_over() {
                break;
            }
        }
        let mut gradient = vec![0.0; self.theta.len()];
        let mut to_go = 0.0;
        for (t, &(state, action, reward)) in path.iter().enumerate().rev() {
            to_go = reward + gamma * to_go;
            let weight = gamma.powi(t as i32) * (to_go - baseline);
            for b in 0..self.actions {
                let cell = state * self.actions + b;
                gradient[cell] += weight * (f64::from(u8::from(b == action)) - probs[cell]);
            }
        }
        (gradient, path.iter().map(|(.., reward)| reward).sum())
    }
}

/// An index drawn with the given chances.
fn draw(chances: &[f64], rng: &mut EnvRng) -> usize {
    let mut left: f64 = rng.random();
    for (i, chance) in chances.iter().enumerate() {
        left -= chance;
        if left < 0.0 {
            return i;
        }
    }
    argmax(chances)
}

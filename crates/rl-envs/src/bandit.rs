//! Multi-armed bandits: decisions without a future.
//!
//! One pull is one episode: `r ~ law of arm a in context c`, then the episode terminates. With one
//! context the observation is the constant `[1]` and this is the plain bandit; with more it is
//! one-hot and the policy must tell contexts apart. What a learner should reach is known exactly:
//!
//! ```text
//! best arm  a*(c) = argmax_a μ(c, a)        best mean  v* = mean_c max_a μ(c, a)
//! regret of policy π:  v* − mean_c Σ_a π(a|c)·μ(c, a)
//! ```
//!
//! Source: Sutton and Barto, *Reinforcement Learning*, 2018, chapter 2. The gradient bandit of §2.8
//! is REINFORCE on this world.

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::env::{ActionSpace, Env, EnvRng, Step, StepEnd, env_rng, exactly};
use crate::error::EnvError;

/// The reward law of one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arm {
    /// `r ~ N(mean, std²)`.
    Normal {
        /// Mean reward.
        mean: f64,
        /// Standard deviation; 0 makes the arm deterministic.
        std: f64,
    },
    /// `r = 1` with the given chance, else 0.
    Bernoulli {
        /// Probability of the reward, in `[0, 1]`.
        chance: f64,
    },
}

impl Arm {
    /// The expected reward.
    pub fn mean(self) -> f64 {
        match self {
            Self::Normal { mean, .. } => mean,
            Self::Bernoulli { chance } => chance,
        }
    }

    fn draw(self, rng: &mut EnvRng) -> f64 {
        match self {
            Self::Normal { mean, std } => mean + std * rng.sample::<f64, _>(StandardNormal),
            Self::Bernoulli { chance } => f64::from(u8::from(rng.random_bool(chance))),
        }
    }

    fn check(self) -> Result<(), EnvError> {
        match self {
            Self::Normal { mean, .. } if !mean.is_finite() => {
                Err(EnvError::OutOfRange { key: "mean", range: "(−∞, ∞)", got: mean })
            }
            Self::Normal { std, .. } if !(0.0..f64::INFINITY).contains(&std) => {
                Err(EnvError::OutOfRange { key: "std", range: "[0, ∞)", got: std })
            }
            Self::Bernoulli { chance } if !(0.0..=1.0).contains(&chance) => {
                Err(EnvError::OutOfRange { key: "chance", range: "[0, 1]", got: chance })
            }
            _ => Ok(()),
        }
    }
}

/// A bandit with one or more contexts, each as likely as the others.
///
/// ```
/// use rl_envs::{Arm, Bandit};
/// let coins = [0.2, 0.5, 0.8].map(|chance| Arm::Bernoulli { chance });
/// let bandit = Bandit::new(vec![coins.to_vec()]).unwrap();
/// assert_eq!((bandit.best_arm(0), bandit.best_mean()), (2, 0.8));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bandit {
    arms: Vec<Vec<Arm>>,
    context: usize,
}

impl Bandit {
    /// A bandit from the arms of each context.
    ///
    /// # Errors
    /// [`EnvError::OutOfRange`] for a reward law that is none.
    ///
    /// # Panics
    /// Without a context or an arm, or if contexts differ in their number of arms.
    pub fn new(arms: Vec<Vec<Arm>>) -> Result<Self, EnvError> {
        let count = arms.first().map_or(0, Vec::len);
        assert!(count > 0, "a bandit needs at least one context and one arm");
        assert!(
            arms.iter().all(|context| context.len() == count),
            "every context needs the same number of arms"
        );
        arms.iter().flatten().try_for_each(|arm| arm.check())?;
        Ok(Self { arms, context: 0 })
    }

    /// The ten-armed testbed: means `~ N(0, 1)` drawn from `seed`, rewards `~ N(mean, 1)`.
    /// Sutton and Barto 2018, §2.3.
    pub fn ten_armed(seed: u64) -> Self {
        let mut rng = env_rng(seed, 0);
        let arms = (0..10).map(|_| Arm::Normal { mean: rng.sample(StandardNormal), std: 1.0 }).collect();
        Self { arms: vec![arms], context: 0 }
    }

    /// The number of contexts, which is the observation size.
    pub fn contexts(&self) -> usize {
        self.arms.len()
    }

    /// Expected reward of an arm in a context.
    pub fn mean(&self, context: usize, arm: usize) -> f64 {
        self.arms[context][arm].mean()
    }

    /// The first arm of highest expected reward in a context.
    pub fn best_arm(&self, context: usize) -> usize {
        let means: Vec<f64> = self.arms[context].iter().map(|arm| arm.mean()).collect();
        crate::value_iteration::argmax(&means)
    }

    /// Expected reward of the optimal policy, `mean_c max_a μ(c, a)`.
    pub fn best_mean(&self) -> f64 {
        let best = (0..self.contexts()).map(|c| self.mean(c, self.best_arm(c)));
        best.sum::<f64>() / self.contexts() as f64
    }

    /// Expected loss per pull against the optimum of a policy that takes arm `a` in context `c`
    /// with probability `policy[c][a]`.
    pub fn regret(&self, policy: &[Vec<f64>]) -> f64 {
        assert_eq!(policy.len(), self.contexts(), "one row of probabilities per context");
        let mean_of = |(arms, probs): (&Vec<Arm>, &Vec<f64>)| -> f64 {
            assert_eq!(arms.len(), probs.len(), "one probability per arm");
            arms.iter().zip(probs).map(|(arm, p)| p * arm.mean()).sum()
        };
        let mean = self.arms.iter().zip(policy).map(mean_of).sum::<f64>() / self.contexts() as f64;
        self.best_mean() - mean
    }
}

impl Env for Bandit {
    type Action = usize;

    fn obs_dim(&self) -> usize {
        self.contexts()
    }

    fn action_space(&self) -> ActionSpace {
        ActionSpace::Discrete { n: self.arms[0].len() }
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.context = rng.random_range(0..self.contexts());
        self.observe(obs);
    }

    fn step(&mut self, &action: &usize, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        let arms = &self.arms[self.context];
        assert!(action < arms.len(), "Bandit has {} arms, but arm {action} was pulled", arms.len());
        let reward = arms[action].draw(rng) as f32;
        self.observe(obs);
        Step { reward, end: StepEnd::Terminated }
    }

    fn state(&self) -> Vec<f64> {
        vec![self.context as f64]
    }

    fn set_state(&mut self, state: &[f64]) {
        let [context] = exactly("Bandit", state);
        assert!(
            (context as usize) < self.contexts(),
            "Bandit has {} contexts, not {context}",
            self.contexts()
        );
        self.context = context as usize;
    }

    fn observe(&self, obs: &mut [f32]) {
        one_hot(self.context, obs);
    }
}

/// Writes the one-hot vector of `index`.
pub(crate) fn one_hot(index: usize, obs: &mut [f32]) {
    obs.fill(0.0);
    obs[index] = 1.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_above_one_is_refused_by_name() {
        let error = Bandit::new(vec![vec![Arm::Bernoulli { chance: 1.2 }]]).unwrap_err();
        assert_eq!(error.to_string(), "`chance` must be in [0, 1], but is 1.2");
    }

    #[test]
    fn the_uniform_policy_regrets_the_gap_between_best_and_average() {
        let arms = [0.0, 1.0, 5.0].map(|mean| Arm::Normal { mean, std: 0.0 });
        let bandit = Bandit::new(vec![arms.to_vec()]).unwrap();
        assert!((bandit.regret(&[vec![1.0 / 3.0; 3]]) - 3.0).abs() < 1e-12);
        assert_eq!(bandit.regret(&[vec![0.0, 0.0, 1.0]]), 0.0);
    }
}

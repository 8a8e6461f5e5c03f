//! Cuts episodes that last too long: [`TimeLimit`].
//!
//! A time limit is a fact of the experiment, not of the process: the cart-pole would go on
//! balancing. A step at the limit therefore ends [`Truncated`](crate::StepEnd::Truncated) and the learner
//! bootstraps from the value of the final observation; a step that also ends by itself is
//! [`Terminated`](crate::StepEnd::Terminated). Pardo et al., *Time Limits in Reinforcement Learning*, 2018;
//! the rule is that of Gymnasium's `TimeLimit`.

use crate::env::{ActionSpace, Env, EnvRng, Step};

/// An environment whose episodes are cut after `max_steps` steps.
///
/// Its state is the inner state with the elapsed steps appended.
///
/// ```
/// use rl_envs::{Env, StepEnd, TimeLimit, Kakade, env_rng};
/// let mut env = TimeLimit::new(Kakade::new(), 2);
/// let (mut rng, mut obs) = (env_rng(1, 0), [0.0; 2]);
/// env.reset(&mut rng, &mut obs);
/// assert_eq!(env.step(&0, &mut rng, &mut obs).end, StepEnd::Continues);
/// assert_eq!(env.step(&0, &mut rng, &mut obs).end, StepEnd::Truncated);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLimit<E> {
    env: E,
    max_steps: usize,
    elapsed: usize,
}

impl<E> TimeLimit<E> {
    /// Limits `env` to episodes of `max_steps` steps.
    ///
    /// # Panics
    /// If `max_steps` is 0.
    pub fn new(env: E, max_steps: usize) -> Self {
        assert!(max_steps > 0, "a time limit must allow at least one step");
        Self { env, max_steps, elapsed: 0 }
    }

    /// The longest possible episode, in steps.
    pub fn max_steps(&self) -> usize {
        self.max_steps
    }

    /// Steps made in the running episode.
    pub fn elapsed(&self) -> usize {
        self.elapsed
    }

    /// The environment without its limit.
    pub fn inner(&self) -> &E {
        &self.env
    }

    /// Takes the limit off.
    pub fn into_inner(self) -> E {
        self.env
    }
}

impl<E: Env> Env for TimeLimit<E> {
    type Action = E::Action;

    fn name(&self) -> &str {
        self.env.name()
    }

    fn obs_dim(&self) -> usize {
        self.env.obs_dim()
    }

    fn action_space(&self) -> ActionSpace {
        self.env.action_space()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        self.elapsed = 0;
        self.env.reset(rng, obs);
    }

    #[inline]
    fn step(&mut self, action: &E::Action, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        let step = self.env.step(action, rng, obs);
        self.elapsed += 1;
        if self.elapsed < self.max_steps { step } else { Step { end: step.end.cut(), ..step } }
    }

    fn state(&self) -> Vec<f64> {
        let mut state = self.env.state();
        state.push(self.elapsed as f64);
        state
    }

    fn set_state(&mut self, state: &[f64]) {
        let (elapsed, inner) = state.split_last().expect("a time-limited state ends with the elapsed steps");
        self.env.set_state(inner);
        self.elapsed = *elapsed as usize;
    }

    fn observe(&self, obs: &mut [f32]) {
        self.env.observe(obs);
    }
}

//! The one trait every world implements: [`Env`], one agent, one stream of steps.
//!
//! An environment is a Markov decision process: in state `s_t` the agent sends action `a_t`, receives
//! the reward `r_{t+1}` and the observation of `s_{t+1}`, and is told *how* the step ended
//! ([`StepEnd`]). Three habits of this crate follow from what went wrong elsewhere:
//!
//! * **an end has a type.** A pole that fell (no future) and a clock that ran out (a future nobody
//!   watched) must be bootstrapped differently; one `done` flag cannot say which it was.
//! * **randomness is an argument.** An environment owns no generator, so a seed decides everything.
//! * **state is data.** [`Env::state`] and [`Env::set_state`] make every run resumable bit by bit.

use rand::SeedableRng;
use serde::{Deserialize, Serialize};

/// The generator that drives every environment: seedable, seekable and splittable into 2⁶⁴ streams.
pub type EnvRng = rand_chacha::ChaCha8Rng;

/// The generator number `stream` of the family `seed`.
///
/// Streams of one seed are disjoint ChaCha key streams, so environment `i` sees the same numbers
/// whether it runs alone or beside a thousand others.
///
/// ```
/// use rand::RngExt;
/// let (mut a, mut b) = (rl_envs::env_rng(7, 0), rl_envs::env_rng(7, 1));
/// assert_ne!(a.random::<u64>(), b.random::<u64>());
/// ```
pub fn env_rng(seed: u64, stream: u64) -> EnvRng {
    let mut rng = EnvRng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// What a step left behind: a going concern, a true end, or a cut.
///
/// The value target after the step is `r + γ·V(s')` for [`Continues`](StepEnd::Continues) and
/// [`Truncated`](StepEnd::Truncated), but plain `r` for [`Terminated`](StepEnd::Terminated).
/// Pardo et al., *Time Limits in Reinforcement Learning*, 2018, §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// The episode goes on.
    Continues,
    /// The process itself ended: there is no future to value.
    Terminated,
    /// Something outside the process (a time limit) stopped watching: the future still has a value.
    Truncated,
}

impl StepEnd {
    /// Terminated if the process ended, else continues: the end as the bare physics sees it.
    pub fn terminated_if(ended: bool) -> Self {
        if ended { Self::Terminated } else { Self::Continues }
    }

    /// The end after an outside cut: a step that would continue is truncated, and a step that
    /// terminated stays so (if both happen at once, terminated wins).
    #[must_use]
    pub fn cut(self) -> Self {
        match self {
            Self::Continues => Self::Truncated,
            ended => ended,
        }
    }

    /// Whether the episode is over, for whichever reason.
    pub fn is_over(self) -> bool {
        self != Self::Continues
    }
}

/// The answer to one action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The reward `r_{t+1}` of the action at `t`.
    pub reward: f32,
    /// How the step ended.
    pub end: StepEnd,
}

/// The set of actions, as a policy head needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpace {
    /// `n` numbered actions `0..n`.
    Discrete {
        /// How many actions there are.
        n: usize,
    },
    /// One real number per dimension. Bounds may be infinite.
    Continuous {
        /// Lower bound of each dimension.
        low: Vec<f32>,
        /// Upper bound of each dimension.
        high: Vec<f32>,
    },
}

impl ActionSpace {
    /// The width of the policy's output: the number of actions, or the number of dimensions.
    pub fn width(&self) -> usize {
        match self {
            Self::Discrete { n } => *n,
            Self::Continuous { low, .. } => low.len(),
        }
    }
}

/// A Markov decision process with one agent in it.
///
/// # Contract
/// * [`reset`](Env::reset) starts an episode; call it before the first [`step`](Env::step) and after
///   every step whose end [`is_over`](StepEnd::is_over). Wrapped in a
///   [`VecEnv`](crate::VecEnv) this happens by itself.
/// * Every random number comes from the `rng` argument.
/// * [`state`](Env::state) holds everything `step` depends on, in a fixed number of entries: after
///   `b.set_state(&a.state())` the two answer equal actions and equal generators with equal bits.
/// * `obs` slices hold exactly [`obs_dim`](Env::obs_dim) numbers; another length panics.
pub trait Env: Send {
    /// `usize` for a discrete action, `[f32]` for a continuous one.
    ///
    /// Continuous actions arrive *unclipped*; the environment clips what it applies. The policy's
    /// log-probability thus belongs to the action it really drew.
    type Action: ?Sized;

    /// What errors call it: by default the last part of the type's name.
    fn name(&self) -> &str {
        let name = std::any::type_name::<Self>();
        let name = name.split('<').next().unwrap_or(name);
        name.rsplit("::").next().unwrap_or(name)
    }

    /// The number of observation entries, `D`.
    fn obs_dim(&self) -> usize;

    /// The actions that [`step`](Env::step) accepts.
    fn action_space(&self) -> ActionSpace;

    /// Starts a new episode and writes its first observation.
    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]);

    /// Applies `action` and writes the observation of the state it led to.
    ///
    /// # Panics
    /// On an action outside a discrete space or of the wrong number of dimensions.
    fn step(&mut self, action: &Self::Action, rng: &mut EnvRng, obs: &mut [f32]) -> Step;

    /// Everything the next [`step`](Env::step) depends on.
    fn state(&self) -> Vec<f64>;

    /// Takes up a state from [`state`](Env::state).
    ///
    /// # Panics
    /// If the number of entries differs from what `state` returns.
    fn set_state(&mut self, state: &[f64]);

    /// Writes the observation of the current state.
    fn observe(&self, obs: &mut [f32]);
}

/// A boxed environment is an environment: `VecEnv<Box<dyn Env<Action = usize>>>` chooses at run time.
impl<E: Env + ?Sized> Env for Box<E> {
    type Action = E::Action;

    fn name(&self) -> &str {
        (**self).name()
    }

    fn obs_dim(&self) -> usize {
        (**self).obs_dim()
    }

    fn action_space(&self) -> ActionSpace {
        (**self).action_space()
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: &mut [f32]) {
        (**self).reset(rng, obs);
    }

    fn step(&mut self, action: &E::Action, rng: &mut EnvRng, obs: &mut [f32]) -> Step {
        (**self).step(action, rng, obs)
    }

    fn state(&self) -> Vec<f64> {
        (**self).state()
    }

    fn set_state(&mut self, state: &[f64]) {
        (**self).set_state(state);
    }

    fn observe(&self, obs: &mut [f32]) {
        (**self).observe(obs);
    }
}

/// Reads a state of exactly `N` numbers.
///
/// # Panics
/// On any other length, naming the environment.
#[track_caller]
pub(crate) fn exactly<const N: usize>(env: &str, state: &[f64]) -> [f64; N] {
    state
        .try_into()
        .unwrap_or_else(|_| panic!("a {env} state has {N} numbers, but {} were given", state.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_hides_a_true_end() {
        assert_eq!(StepEnd::Continues.cut(), StepEnd::Truncated);
        assert_eq!(StepEnd::Terminated.cut(), StepEnd::Terminated);
        assert_eq!(StepEnd::Truncated.cut(), StepEnd::Truncated);
    }

    #[test]
    #[should_panic(expected = "a CartPole state has 4 numbers, but 3 were given")]
    fn a_state_of_the_wrong_length_names_its_environment() {
        exactly::<4>("CartPole", &[0.0; 3]);
    }
}

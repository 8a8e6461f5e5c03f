//! `E` environments side by side, as one batch: [`VecEnv`].
//!
//! Learning needs decisions by the batch, so the collector steps a vector of environments at once.
//! Whatever ends is reset at once (*auto-reset*), and the observation it ended in is kept: the value
//! of a truncated step is `V(final observation)`, never `V(first observation of the next episode)`,
//! a mistake found in more than one library (stable-baselines3#1864, cleanrl#198, purejaxrl#20).
//!
//! ```text
//! obs()  ──policy──►  step(|i| action i)  ──►  rewards, ends, final_obs, episodes
//!   ▲                                                  │
//!   └── already the first observation of the next episode where a step ended
//! ```
//!
//! **Determinism.** Environment `i` draws from stream `i` of the seed, and nothing is shared between
//! environments. One thread or eight, the bits are the same.
//!
//! **Not here:** running normalisation of observations or rewards. Its statistics are shared by the
//! whole vector and belong to the checkpoint of the learner, so it lives in `rl-algos`, on top of
//! `rl-core`'s `RunningMeanStd`.

use serde::{Deserialize, Serialize};

use crate::env::{ActionSpace, Env, EnvRng, StepEnd, env_rng};
use crate::episode::Episode;
use crate::error::EnvError;
use crate::fault::{EnvFault, Pulse};
use crate::lane::{Lane, guarded};

/// What one step of all environments produced. The buffers are reused from step to step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VecStep {
    /// Reward of each environment, `[E]`.
    pub rewards: Vec<f32>,
    /// How each environment's step ended, `[E]`.
    pub ends: Vec<StepEnd>,
    /// For every environment whose step ended, in ascending order: its number and the observation
    /// it ended in, `[D]`.
    pub final_obs: Vec<(usize, Vec<f32>)>,
    /// The episodes that ended in this step, in ascending order of environment.
    pub episodes: Vec<Episode>,
}

/// Everything a [`VecEnv`] depends on: generators, environment states, running returns.
///
/// Serialise it with a format that keeps every `f64` bit and holds 128-bit integers: JSON through
/// `serde_json` with `float_roundtrip` does, TOML does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VecEnvState {
    /// Generator of each environment.
    pub rngs: Vec<EnvRng>,
    /// [`Env::state`] of each environment.
    pub envs: Vec<Vec<f64>>,
    /// Return so far of each running episode.
    pub returns: Vec<f64>,
    /// Length so far of each running episode, in steps.
    pub lengths: Vec<usize>,
    /// Number of each running episode, from 1; older states do not know it.
    #[serde(default)]
    pub episodes: Vec<u64>,
}

/// A vector of equally shaped environments with auto-reset.
///
/// ```
/// use rl_envs::{CartPole, VecEnv};
/// let mut envs = VecEnv::new(vec![CartPole::v1(); 4], 1);
/// let actions = [0, 1, 0, 1];
/// let step = envs.step(|i| &actions[i]);
/// assert_eq!(step.rewards, [1.0; 4]);
/// assert_eq!(envs.obs().len(), 4 * 4);
/// ```
#[derive(Clone, Debug)]
pub struct VecEnv<E> {
    lanes: Vec<Lane<E>>,
    obs: Vec<f32>,
    obs_dim: usize,
    threads: usize,
    step: VecStep,
    spare: Vec<Vec<f32>>,
}

impl<E: Env> VecEnv<E> {
    /// Puts `envs` side by side, gives environment `i` the generator `env_rng(seed, i)` and starts
    /// an episode in each.
    ///
    /// # Panics
    /// If there are none, or if their observations or actions differ in shape.
    pub fn new(envs: Vec<E>, seed: u64) -> Self {
        assert!(!envs.is_empty(), "a vector of environments needs at least one");
        let (obs_dim, actions) = (envs[0].obs_dim(), envs[0].action_space());
        for (i, env) in envs.iter().enumerate() {
            assert_eq!(
                env.obs_dim(),
                obs_dim,
                "environment {i} has another observation size than environment 0"
            );
            assert_eq!(
                env.action_space(),
                actions,
                "environment {i} has another action space than environment 0"
            );
        }
        let lane = |(i, env)| Lane {
            env,
            rng: env_rng(seed, i as u64),
            return_sum: 0.0,
            length: 0,
            episode: 0,
            pulse: Pulse::default(),
            last_episode: Episode { env: i, return_sum: 0.0, length: 0 },
            final_obs: Vec::new(),
        };
        let lanes: Vec<_> = envs.into_iter().enumerate().map(lane).collect();
        let count = lanes.len();
        let step = VecStep {
            rewards: vec![0.0; count],
            ends: vec![StepEnd::Continues; count],
            ..VecStep::default()
        };
        let mut vec_env =
            Self { lanes, obs: vec![0.0; count * obs_dim], obs_dim, threads: 1, step, spare: Vec::new() };
        vec_env.reset();
        vec_env
    }

    /// Steps on `threads` threads. The results are the same bits for any number.
    ///
    /// Starting threads costs some ten microseconds each, so this pays where one environment step
    /// is slow, not for `CartPole`, whose step costs less than a hundredth of that.
    ///
    /// # Panics
    /// If `threads` is 0.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "stepping needs at least one thread");
        self.threads = threads;
        self
    }

    /// The number of environments, `E`.
    #[allow(clippy::len_without_is_empty)] // never empty by construction
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The observation size of one environment, `D`.
    pub fn obs_dim(&self) -> usize {
        self.obs_dim
    }

    /// The actions of one environment.
    pub fn action_space(&self) -> ActionSpace {
        self.lanes[0].env.action_space()
    }

    /// The observations the policy decides on next.
    ///
    /// # Shapes
    /// `[E·D]`, environment-major.
    pub fn obs(&self) -> &[f32] {
        &self.obs
    }

    /// The environments themselves, to look at.
    pub fn envs(&self) -> impl ExactSizeIterator<Item = &E> {
        self.lanes.iter().map(|lane| &lane.env)
    }

    /// Abandons every running episode (none of them is counted) and starts new ones. The
    /// generators go on from where they are.
    pub fn reset(&mut self) {
        for (lane, obs) in self.lanes.iter_mut().zip(self.obs.chunks_exact_mut(self.obs_dim)) {
            lane.reset(obs);
        }
    }

    /// The pulse of each environment, for a thread that looks whether they still answer.
    pub fn pulses(&self) -> Vec<Pulse> {
        self.lanes.iter().map(|lane| lane.pulse.share()).collect()
    }

    /// [`try_step`](Self::try_step) with environments that are known to behave.
    ///
    /// # Panics
    /// On an [`EnvFault`].
    pub fn step<'a>(&mut self, action: impl Fn(usize) -> &'a E::Action + Sync) -> &VecStep
    where
        E::Action: 'a,
    {
        self.try_step(action).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Applies `action(i)` to environment `i`, for all of them.
    ///
    /// Allocates nothing unless an episode ends.
    ///
    /// # Errors
    /// The fault of the first environment that panicked or whose reward or observation is not finite. The vector is then
    /// somewhere within the step: go on with [`set_state`](Self::set_state) or [`reset`](Self::reset).
    pub fn try_step<'a>(
        &mut self,
        action: impl Fn(usize) -> &'a E::Action + Sync,
    ) -> Result<&VecStep, EnvFault>
    where
        E::Action: 'a,
    {
        let (dim, count) = (self.obs_dim, self.lanes.len());
        let VecStep { rewards, ends, .. } = &mut self.step;
        let run = |first: usize,
                   lanes: &mut [Lane<E>],
                   obs: &mut [f32],
                   rewards: &mut [f32],
                   ends: &mut [StepEnd]| {
            guarded(first..first + lanes.len(), lanes, first, |k, lanes| {
                let obs = &mut obs[(k - first) * dim..][..dim];
                (rewards[k - first], ends[k - first]) = lanes[k - first].step(k, action(k), obs)?;
                Ok(())
            })
        };
        let share = count.div_ceil(self.threads);
        if share == count {
            run(0, &mut self.lanes, &mut self.obs, rewards, ends)?;
        } else {
            let chunks = self.lanes.chunks_mut(share).zip(self.obs.chunks_mut(share * dim));
            let results = rewards.chunks_mut(share).zip(ends.chunks_mut(share));
            std::thread::scope(|scope| {
                let threads: Vec<_> = chunks
                    .zip(results)
                    .enumerate()
                    .map(|(c, ((lanes, obs), (rewards, ends)))| {
                        let run = &run;
                        scope.spawn(move || run(c * share, lanes, obs, rewards, ends))
                    })
                    .collect();
                let ended = threads.into_iter().map(|it| it.join().expect("panics were caught"));
                // All of them are waited for; the first fault is that of the lowest number.
                ended.fold(Ok(()), Result::and)
            })?;
        }
        self.gather_ends();
        Ok(&self.step)
    }

    /// [`try_step`](Self::try_step) for the environments numbered in `some` only, on this thread. The others stand still: their
    /// reward is 0, their end [`StepEnd::Continues`].
    ///
    /// # Errors
    /// As [`try_step`](Self::try_step).
    pub fn try_step_some<'a>(
        &mut self,
        some: &[usize],
        action: impl Fn(usize) -> &'a E::Action,
    ) -> Result<&VecStep, EnvFault>
    where
        E::Action: 'a,
    {
        let dim = self.obs_dim;
        self.step.rewards.fill(0.0);
        self.step.ends.fill(StepEnd::Continues);
        let Self { lanes, obs, step, .. } = self;
        guarded(some.iter().copied(), lanes, 0, |i, lanes| {
            let obs = &mut obs[i * dim..(i + 1) * dim];
            (step.rewards[i], step.ends[i]) = lanes[i].step(i, action(i), obs)?;
            Ok(())
        })?;
        self.gather_ends();
        Ok(&self.step)
    }

    /// Moves what the lanes kept of their ended episodes into the step, reusing old buffers.
    fn gather_ends(&mut self) {
        self.spare.extend(self.step.final_obs.drain(..).map(|(_, buffer)| buffer));
        self.step.episodes.clear();
        let over = self.step.ends.iter().enumerate().filter(|(_, end)| end.is_over());
        for (i, _) in over {
            let lane = &mut self.lanes[i];
            let buffer = self.spare.pop().unwrap_or_default();
            self.step.final_obs.push((i, std::mem::replace(&mut lane.final_obs, buffer)));
            self.step.episodes.push(lane.last_episode);
        }
    }

    /// Everything that the following steps depend on.
    pub fn state(&self) -> VecEnvState {
        VecEnvState {
            rngs: self.lanes.iter().map(|lane| lane.rng.clone()).collect(),
            envs: self.lanes.iter().map(|lane| lane.env.state()).collect(),
            returns: self.lanes.iter().map(|lane| lane.return_sum).collect(),
            lengths: self.lanes.iter().map(|lane| lane.length).collect(),
            episodes: self.lanes.iter().map(|lane| lane.episode).collect(),
        }
    }

    /// Goes on from a saved state, bit by bit.
    ///
    /// # Panics
    /// If the state is of another vector of environments; [`try_set_state`](Self::try_set_state)
    /// tells instead.
    pub fn set_state(&mut self, state: VecEnvState) {
        self.try_set_state(state).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Goes on from a saved state that came from a file.
    ///
    /// # Errors
    /// [`EnvError::StateMismatch`] if the state is of another vector of environments; nothing has
    /// changed then.
    pub fn try_set_state(&mut self, state: VecEnvState) -> Result<(), EnvError> {
        let equal = |what, got, want| {
            if got == want { Ok(()) } else { Err(EnvError::StateMismatch { what, got, want }) }
        };
        equal("environments", state.envs.len(), self.lanes.len())?;
        equal("generators", state.rngs.len(), self.lanes.len())?;
        equal("running returns", state.returns.len(), self.lanes.len())?;
        equal("running lengths", state.lengths.len(), self.lanes.len())?;
        for (lane, saved) in self.lanes.iter().zip(&state.envs) {
            equal("numbers per environment", saved.len(), lane.env.state().len())?;
        }
        let episodes = match state.episodes.is_empty() {
            true => vec![1; state.lengths.len()],
            false => state.episodes,
        };
        equal("episode numbers", episodes.len(), self.lanes.len())?;
        let accounts = state.returns.into_iter().zip(state.lengths).zip(episodes);
        let saved = state.rngs.into_iter().zip(state.envs).zip(accounts);
        let lanes = self.lanes.iter_mut().zip(self.obs.chunks_exact_mut(self.obs_dim));
        for ((lane, obs), ((rng, env), ((return_sum, length), episode))) in lanes.zip(saved) {
            lane.env.set_state(&env);
            lane.env.observe(obs);
            (lane.rng, lane.return_sum, lane.length, lane.episode) = (rng, return_sum, length, episode);
        }
        Ok(())
    }
}

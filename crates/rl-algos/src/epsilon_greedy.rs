//! ε-greedy play: the best known action, or with probability ε any action.

use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, Distribution};
use rl_core::schedule::Schedule;
use rl_envs::{Env, Pulse, StepEnd, VecEnv, VecEnvState};
use rl_models::ActorCritic;
use serde::{Deserialize, Serialize};

use crate::collect_env::Episodes;
use crate::collector::Collector;
use crate::error::{CollectError, require_finite};
use crate::normalize::ObsNormalizer;
use crate::replay::Transitions;

/// Transitions of one collection, in order of time and then of environment, and the ε they were taken with at last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experience {
    /// What happened.
    pub transitions: Transitions,
    /// The probability of a random action in the last step.
    pub epsilon: f64,
}

/// Environments played ε-greedily.
pub struct EpsilonGreedy<E: Env> {
    envs: VecEnv<E>,
    steps: usize,
    epsilon: Schedule,
    random_steps: u64,
    total_steps: u64,
    taken: u64,
    device: Device,
}

/// What [`EpsilonGreedy`] must remember to go on exactly.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EpsilonGreedyState {
    envs: VecEnvState,
    taken: u64,
}

impl<E: Env<Action = usize>> EpsilonGreedy<E> {
    /// Collects `steps` steps of each environment; ε follows `epsilon` over a run of `total_steps` steps.
    pub fn new(envs: VecEnv<E>, steps: usize, epsilon: Schedule, total_steps: u64, device: &Device) -> Self {
        let device = device.clone().inner();
        Self { envs, steps, epsilon, random_steps: 0, total_steps, taken: 0, device }
    }

    /// The first `steps` steps of the run are random ones, whatever ε is.
    #[must_use]
    pub fn with_random_start(mut self, steps: u64) -> Self {
        self.random_steps = steps;
        self
    }

    /// The probability of a random action now.
    pub fn epsilon(&self) -> f64 {
        if self.taken < self.random_steps {
            return 1.0;
        }
        self.epsilon.at(self.taken as f64 / self.total_steps.max(1) as f64)
    }

    /// The actions of all environments: the model is asked only where one of them wants to know.
    fn act<M>(
        &self,
        model: &M,
        epsilon: f64,
        t: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<usize>, CollectError>
    where
        M: ActorCritic<Obs = Tensor<2>, Dist = Categorical>,
    {
        let (n, dims, actions) = (self.envs.len(), self.envs.obs_dim(), self.envs.action_space().width());
        let explored: Vec<Option<usize>> =
            (0..n).map(|_| (rng.random::<f64>() < epsilon).then(|| rng.random_range(0..actions))).collect();
        if explored.iter().all(Option::is_some) {
            return Ok(explored.into_iter().flatten().collect());
        }
        let obs = Tensor::from_data(TensorData::new(self.envs.obs().to_vec(), [n, dims]), &self.device);
        let law = model.policy(&obs);
        let values: Vec<f32> = law.params().into_data().try_into_vec_as().expect("floats convert to f32");
        require_finite("action values", t, &values, actions, |env| env)?;
        let greedy = Categorical::elems(&law.mode());
        Ok(explored.into_iter().zip(greedy).map(|(explored, greedy)| explored.unwrap_or(greedy)).collect())
    }
}

impl<E, M> Collector<M> for EpsilonGreedy<E>
where
    E: Env<Action = usize>,
    M: ActorCritic<Obs = Tensor<2>, Dist = Categorical>,
{
    type Data = Experience;
    type State = EpsilonGreedyState;

    fn try_collect(
        &mut self,
        model: &M,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Experience, Episodes), CollectError> {
        let dims = self.envs.obs_dim();
        let (mut experience, mut episodes) = (Experience::default(), Episodes::default());
        for t in 0..self.steps {
            experience.epsilon = self.epsilon();
            let chosen = self.act(model, experience.epsilon, t, rng)?;
            let Transitions { obs, actions, rewards, next_obs, terminated } = &mut experience.transitions;
            obs.extend_from_slice(self.envs.obs());
            let step = self.envs.try_step(|env| &chosen[env])?;
            actions.extend_from_slice(&chosen);
            rewards.extend_from_slice(&step.rewards);
            terminated.extend(step.ends.iter().map(|end| *end == StepEnd::Terminated));
            episodes.0.extend_from_slice(&step.episodes);
            // Where an episode ended the environment already shows the next one: its last observation was kept.
            let last = step.final_obs.clone();
            let first = next_obs.len();
            next_obs.extend_from_slice(self.envs.obs());
            for (env, obs) in &last {
                next_obs[first + env * dims..][..dims].copy_from_slice(obs);
            }
            self.taken += self.envs.len() as u64;
        }
        Ok((experience, episodes))
    }

    fn pulses(&self) -> Vec<Pulse> {
        self.envs.pulses()
    }

    fn steps(data: &Experience) -> usize {
        data.transitions.len()
    }

    fn obs_norm(&self) -> Option<&ObsNormalizer> {
        None
    }

    fn state(&self) -> EpsilonGreedyState {
        EpsilonGreedyState { envs: self.envs.state(), taken: self.taken }
    }

    fn set_state(&mut self, state: EpsilonGreedyState) {
        self.envs.set_state(state.envs);
        self.taken = state.taken;
    }
}

//! From a vector of environments to a [`Rollout`]: one row, one decision.
//!
//! Per step only the policy runs, on the plain device; the values of all states are computed in
//! one pass at the end.

use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_core::returns::{End, gae};
use rl_envs::{Env, Episode, StepEnd, VecEnv, VecEnvState};
use rl_models::ActorCritic;
use serde::{Deserialize, Serialize};

use crate::collect_episodes::Credit;
use crate::error::{CollectError, LOGITS, require_finite};
use crate::normalize::{ObsNormalizer, RewardScaler};
use crate::rollout::Rollout;

/// How the numbers of a law's actions are an environment's action.
pub trait ActionOf<A: ?Sized>: Sized + Sync {
    /// Action `i` among actions of `width` numbers each.
    fn action(elems: &[Self], i: usize, width: usize) -> &A;
}

/// Discrete: one index.
impl ActionOf<usize> for usize {
    fn action(elems: &[usize], i: usize, _width: usize) -> &usize {
        &elems[i]
    }
}

/// Continuous: `width` numbers, not clipped; the environment clips what it must.
impl ActionOf<[f32]> for f32 {
    fn action(elems: &[f32], i: usize, width: usize) -> &[f32] {
        &elems[i * width..(i + 1) * width]
    }
}

/// A rollout with the policy of `M` and the episodes that ended meanwhile, or why there is none.
pub type Collected<M> = Result<(Rollout<Tensor<2>, <M as ActorCritic>::Dist>, Episodes), CollectError>;

/// The numbers of a tensor, on the host.
fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec_as().expect("floats convert to f32")
}

/// The episodes that ended during one rollout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Episodes(pub Vec<Episode>);

/// Environments, the normalisers in front of them, and buffers.
pub struct EnvCollector<E: Env> {
    pub(crate) envs: VecEnv<E>,
    steps: usize,
    pub(crate) gamma: f64,
    gae_lambda: f64,
    pub(crate) obs_norm: Option<ObsNormalizer>,
    pub(crate) reward_scale: Option<RewardScaler>,
    pub(crate) device: Device,
    /// ρ of the noise of continuous actions, and the noise itself.
    noise_correlation: f64,
    noise: Vec<f64>,
    /// What each decision of a whole episode is credited with; absent collects steps instead.
    whole_episodes: Option<Credit>,
}

/// What a collector must remember to go on exactly.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CollectorState {
    envs: VecEnvState,
    obs_norm: Option<ObsNormalizer>,
    reward_scale: Option<RewardScaler>,
    noise: Vec<f64>,
}

impl<E: Env> EnvCollector<E> {
    /// Collects `steps` steps of each environment per rollout, with advantages for γ and λ.
    pub fn new(envs: VecEnv<E>, steps: usize, gamma: f64, gae_lambda: f64, device: &Device) -> Self {
        let device = device.clone().inner();
        Self {
            envs,
            steps,
            gamma,
            gae_lambda,
            obs_norm: None,
            reward_scale: None,
            device,
            noise_correlation: 0.0,
            noise: Vec::new(),
            whole_episodes: None,
        }
    }

    /// Collects one whole episode of each environment per rollout, credited with its returns; see
    /// [`collect_episodes`](crate::collect_episodes).
    pub fn of_whole_episodes(envs: VecEnv<E>, gamma: f64, credit: Credit, device: &Device) -> Self {
        Self { whole_episodes: Some(credit), ..Self::new(envs, 1, gamma, 1.0, device) }
    }

    /// Puts a running normaliser in front of the observations.
    pub fn with_obs_norm(mut self, clip: f64) -> Self {
        self.obs_norm = Some(ObsNormalizer::new(self.envs.obs_dim(), clip));
        self
    }

    /// Scales rewards by the running standard deviation of the discounted return.
    pub fn with_reward_scale(mut self, clip: f64) -> Self {
        self.reward_scale = Some(RewardScaler::new(self.envs.len(), self.gamma, clip));
        self
    }

    /// Correlates the noise of continuous actions from step to step; see [`Distribution::draw_correlated`] and
    /// docs/adr/0010-correlated-noise.md. Whole episodes draw without memory: the probability of a trajectory is then the
    /// product of its steps'.
    pub fn with_noise_correlation(mut self, correlation: f64) -> Self {
        self.noise_correlation = correlation;
        self
    }

    /// The observation normaliser as it stands; evaluation uses a frozen copy.
    pub fn obs_norm(&self) -> Option<&ObsNormalizer> {
        self.obs_norm.as_ref()
    }

    /// Everything the next rollout depends on, besides the model and the caller's generator.
    pub fn state(&self) -> CollectorState {
        CollectorState {
            envs: self.envs.state(),
            obs_norm: self.obs_norm.clone(),
            reward_scale: self.reward_scale.clone(),
            noise: self.noise.clone(),
        }
    }

    /// Goes on from `state`.
    pub fn set_state(&mut self, state: CollectorState) {
        self.envs.set_state(state.envs);
        self.obs_norm = state.obs_norm;
        self.reward_scale = state.reward_scale;
        self.noise = state.noise;
    }

    /// The next rollout with the model's policy: `T` steps of `E` environments, or `E` whole episodes.
    ///
    /// # Panics
    /// Where [`try_collect`](Self::try_collect) has an error.
    pub fn collect<M>(&mut self, model: &M, rng: &mut ChaCha8Rng) -> (Rollout<Tensor<2>, M::Dist>, Episodes)
    where
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        self.try_collect(model, rng).unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`collect`](Self::collect) from environments and a model that may go wrong.
    ///
    /// # Errors
    /// [`CollectError`] names the environment and the first bad quantity. The environments are then within a step.
    pub fn try_collect<M>(&mut self, model: &M, rng: &mut ChaCha8Rng) -> Collected<M>
    where
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        match self.whole_episodes {
            None => self.collect_steps(model, rng),
            Some(credit) => self.collect_episodes(model, credit, rng),
        }
    }

    /// `T` steps of `E` environments: row `t·E + e`.
    fn collect_steps<M>(&mut self, model: &M, rng: &mut ChaCha8Rng) -> Collected<M>
    where
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        let (n_envs, dims, steps) = (self.envs.len(), self.envs.obs_dim(), self.steps);
        let rows = n_envs * steps;
        // Observations of all states, then of the states after the last step, then of cut episodes.
        let mut obs: Vec<f32> = Vec::with_capacity((rows + n_envs) * dims);
        let mut cut_obs: Vec<f32> = Vec::new();
        let mut cut_rows: Vec<usize> = Vec::new();
        let mut actions = Vec::new();
        let mut log_probs: Vec<f32> = Vec::with_capacity(rows);
        let mut rewards: Vec<f32> = Vec::with_capacity(rows);
        let mut ends: Vec<StepEnd> = Vec::with_capacity(rows);
        let mut episodes = Episodes::default();

        for t in 0..steps {
            let now = self.observe(&mut obs);
            let law = model.policy(&self.tensor(now, n_envs));
            let z = numbers(law.params());
            require_finite(LOGITS, t, &z, z.len() / n_envs, |env| env)?;
            let first = actions.len();
            match self.noise_correlation {
                0.0 => law.draw(rng, &mut actions, &mut log_probs),
                rho => law.draw_correlated(rng, rho, &mut self.noise, &mut actions, &mut log_probs),
            }
            require_finite("log-probabilities", t, &log_probs[t * n_envs..], 1, |env| env)?;
            let drawn = &actions[first..];
            let width = drawn.len() / n_envs;
            let step = self.envs.try_step(|env| ActionOf::action(drawn, env, width))?;
            let first = rewards.len();
            rewards.extend_from_slice(&step.rewards);
            ends.extend_from_slice(&step.ends);
            if let Some(scaler) = &mut self.reward_scale {
                scaler.scale(&mut rewards[first..], |env| step.ends[env] != StepEnd::Continues);
            }
            for (env, last) in &step.final_obs {
                if step.ends[*env] == StepEnd::Truncated {
                    cut_rows.push(t * n_envs + env);
                    cut_obs.extend_from_slice(last);
                }
            }
            episodes.0.extend_from_slice(&step.episodes);
        }

        let first = obs.len();
        obs.extend_from_slice(self.envs.obs());
        obs.extend_from_slice(&cut_obs);
        if let Some(norm) = &self.obs_norm {
            norm.normalize(&mut obs[first..]);
        }
        let all = self.tensor(obs, rows + n_envs + cut_rows.len());
        let values = numbers(model.value(&all));
        require_finite("values", steps, &values, 1, |row| row % n_envs)?;
        let (values, after) = values.split_at(rows);
        let (last_values, cut_values) = after.split_at(n_envs);

        let mut cut = cut_rows.iter().zip(cut_values).peekable();
        let ends: Vec<End<f32>> = ends
            .iter()
            .enumerate()
            .map(|(row, end)| match end {
                StepEnd::Continues => End::Continues,
                StepEnd::Terminated => End::Terminated,
                StepEnd::Truncated => {
                    let (at, bootstrap) = cut.next().expect("one final observation per cut");
                    assert_eq!(*at, row, "final observations come in order of time and environment");
                    End::Truncated { bootstrap: *bootstrap }
                }
            })
            .collect();

        let (mut advantage, mut target) = (vec![0.0; rows], vec![0.0; rows]);
        for (env, &last_value) in last_values.iter().enumerate() {
            let stream =
                |all: &[f32]| -> Vec<f32> { all.iter().skip(env).step_by(n_envs).copied().collect() };
            let stream_ends: Vec<End<f32>> = ends.iter().skip(env).step_by(n_envs).copied().collect();
            let (gamma, lambda) = (self.gamma as f32, self.gae_lambda as f32);
            let est = gae(&stream(&rewards), &stream(values), &stream_ends, last_value, gamma, lambda);
            for t in 0..steps {
                advantage[t * n_envs + env] = est.advantages[t];
                target[t * n_envs + env] = est.targets[t];
            }
        }

        let column = |v: Vec<f32>| Tensor::<1>::from_data(TensorData::new(v, [rows]), &self.device);
        let rollout = Rollout {
            obs: all.slice([0..rows, 0..dims]),
            actions: M::Dist::event(&actions, rows, &self.device),
            log_prob_old: column(log_probs),
            value_old: column(values.to_vec()),
            advantage: column(advantage),
            value_target: column(target),
            mask: None,
            reference: None,
        };
        Ok((rollout, episodes))
    }

    /// Appends the current observations, as the policy is to see them, and returns them.
    fn observe(&mut self, obs: &mut Vec<f32>) -> Vec<f32> {
        let first = obs.len();
        obs.extend_from_slice(self.envs.obs());
        if let Some(norm) = &mut self.obs_norm {
            norm.update(&obs[first..]);
            norm.normalize(&mut obs[first..]);
        }
        obs[first..].to_vec()
    }

    pub(crate) fn tensor(&self, obs: Vec<f32>, rows: usize) -> Tensor<2> {
        let dims = self.envs.obs_dim();
        Tensor::from_data(TensorData::new(obs, [rows, dims]), &self.device)
    }
}

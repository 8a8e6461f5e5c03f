//! Whole episodes as a [`Rollout`]: one of each environment, from its start to its end.
//!
//! The estimator of REINFORCE, `∇J ≈ 1/m·Σ_τ Σ_t ∇log π(a_t|s_t)·R(τ)`, asks for trajectories that nobody selected by
//! their length. So each environment runs exactly one episode per rollout and then stands still until the longest is
//! over: taking "the episodes that happened to end" among a fixed number of steps would prefer short ones. A time limit
//! ends the trajectory like anything else: what is maximised is the return within it, and nothing is bootstrapped.

use burn::tensor::{Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_core::returns::{End, discounted_returns};
use rl_envs::Env;
use rl_models::ActorCritic;
use serde::{Deserialize, Serialize};

use crate::collect_env::{ActionOf, Collected, EnvCollector, Episodes};
use crate::error::{LOGITS, require_finite};
use crate::rollout::Rollout;

/// Which return a decision is credited with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credit {
    /// `R(τ) = Σ_k γᵏ·r_k` of the whole trajectory, the same for all its decisions.   Williams 1992
    WholeTrajectory,
    /// `G_t = Σ_{k≥t} γ^{k−t}·r_k`: what came before a decision is not its doing. The same expectation (for γ = 1) with
    /// less variance; for γ < 1 the factor γᵗ is left out, as is usual.   Sutton & Barto 2018, §13.3
    #[default]
    RewardToGo,
}

impl<E: Env> EnvCollector<E> {
    /// One episode of each environment, in order of time and then of environment. The rollout's `advantage` is the
    /// return credited to each decision, without a baseline; `value_target` is the reward-to-go, `value_old` 0.
    pub(crate) fn collect_episodes<M>(
        &mut self,
        model: &M,
        credit: Credit,
        rng: &mut ChaCha8Rng,
    ) -> Collected<M>
    where
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
    {
        let (n_envs, dims) = (self.envs.len(), self.envs.obs_dim());
        let (mut obs, mut actions, mut log_probs) = (Vec::<f32>::new(), Vec::new(), Vec::<f32>::new());
        let mut rewards: Vec<f32> = Vec::new();
        // The rows of each environment's episode.
        let mut rows_of = vec![Vec::<usize>::new(); n_envs];
        let mut episodes = Episodes::default();
        let mut running: Vec<usize> = (0..n_envs).collect();
        let mut taken = 0;

        while !running.is_empty() {
            let first = obs.len();
            for &env in &running {
                obs.extend_from_slice(&self.envs.obs()[env * dims..(env + 1) * dims]);
            }
            if let Some(norm) = &mut self.obs_norm {
                norm.update(&obs[first..]);
                norm.normalize(&mut obs[first..]);
            }
            let law = model.policy(&self.tensor(obs[first..].to_vec(), running.len()));
            let first = actions.len();
            let z: Vec<f32> = law.params().into_data().try_into_vec_as().expect("floats convert to f32");
            require_finite(LOGITS, taken, &z, z.len() / running.len(), |i| running[i])?;
            let before = log_probs.len();
            law.draw(rng, &mut actions, &mut log_probs);
            require_finite("log-probabilities", taken, &log_probs[before..], 1, |i| running[i])?;
            taken += 1;
            let drawn = &actions[first..];
            let width = drawn.len() / running.len();
            let place = |env: usize| running.binary_search(&env).expect("only running environments step");
            let step = self.envs.try_step_some(&running, |env| ActionOf::action(drawn, place(env), width))?;
            let mut scaled = step.rewards.clone();
            if let Some(scaler) = &mut self.reward_scale {
                scaler.scale(&mut scaled, |env| step.ends[env].is_over());
            }
            for &env in &running {
                rows_of[env].push(rewards.len());
                rewards.push(scaled[env]);
            }
            episodes.0.extend_from_slice(&step.episodes);
            running.retain(|&env| !step.ends[env].is_over());
        }

        let rows = rewards.len();
        let (mut to_go, mut credited) = (vec![0.0; rows], vec![0.0; rows]);
        for rows in &rows_of {
            let rewards: Vec<f32> = rows.iter().map(|&row| rewards[row]).collect();
            let mut ends = vec![End::Continues; rows.len()];
            *ends.last_mut().expect("an episode has a step") = End::Terminated;
            let returns = discounted_returns(&rewards, &ends, 0.0, self.gamma as f32);
            for (&row, &g) in rows.iter().zip(&returns) {
                to_go[row] = g;
                credited[row] = match credit {
                    Credit::WholeTrajectory => returns[0],
                    Credit::RewardToGo => g,
                };
            }
        }

        let column = |v: Vec<f32>| Tensor::<1>::from_data(TensorData::new(v, [rows]), &self.device);
        let rollout = Rollout {
            actions: M::Dist::event(&actions, rows, &self.device),
            log_prob_old: column(log_probs),
            value_old: column(vec![0.0; rows]),
            advantage: column(credited),
            value_target: column(to_go),
            mask: None,
            reference: None,
            obs: self.tensor(obs, rows),
        };
        Ok((rollout, episodes))
    }
}

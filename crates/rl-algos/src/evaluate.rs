//! Greedy evaluation: what the policy's most likely actions earn.

use burn::tensor::{Device, Tensor, TensorData};
use rl_core::dist::Distribution;
use rl_envs::{Env, VecEnv};

use crate::collect_env::ActionOf;
use crate::normalize::ObsNormalizer;

/// The returns of finished episodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// One undiscounted, unscaled return per episode.
    pub returns: Vec<f64>,
    /// One length per episode, steps.
    pub lengths: Vec<usize>,
}

impl Evaluation {
    /// The mean return.
    pub fn mean(&self) -> f64 {
        self.returns.iter().sum::<f64>() / self.returns.len() as f64
    }

    /// The standard deviation of the returns, unbiased; 0 for one episode.
    pub fn std(&self) -> f64 {
        let n = self.returns.len() as f64;
        let mean = self.mean();
        let squares: f64 = self.returns.iter().map(|r| (r - mean).powi(2)).sum();
        if n < 2.0 { 0.0 } else { (squares / (n - 1.0)).sqrt() }
    }
}

/// One episode in each environment with the mode of `policy`'s law, side by side.
///
/// Seeded by the environments' own streams, so the same policy earns the same returns. The
/// normaliser is frozen.
///
/// # Panics
/// If an environment neither ends nor is cut within ten million steps: wrap it in a time limit.
pub fn evaluate<D, E>(
    policy: impl Fn(&Tensor<2>) -> D,
    mut envs: VecEnv<E>,
    obs_norm: Option<&ObsNormalizer>,
    device: &Device,
) -> Evaluation
where
    E: Env,
    D: Distribution,
    D::Elem: ActionOf<E::Action>,
{
    let (n, dims) = (envs.len(), envs.obs_dim());
    let mut done: Vec<Option<(f64, usize)>> = vec![None; n];
    for _ in 0..10_000_000 {
        let mut obs = envs.obs().to_vec();
        if let Some(norm) = obs_norm {
            norm.normalize(&mut obs);
        }
        let law = policy(&Tensor::from_data(TensorData::new(obs, [n, dims]), device));
        let actions = D::elems(&law.mode());
        let width = actions.len() / n;
        let step = envs.step(|env| ActionOf::action(&actions, env, width));
        for episode in &step.episodes {
            done[episode.env].get_or_insert((episode.return_sum, episode.length));
        }
        if done.iter().all(Option::is_some) {
            let (returns, lengths) = done.into_iter().flatten().unzip();
            return Evaluation { returns, lengths };
        }
    }
    panic!("no episode ended in ten million steps; wrap the environment in a TimeLimit");
}

//! Running normalisation of observations and rewards over a vector of environments.
//!
//! The statistics are shared by all environments, frozen in evaluation, and part of the
//! checkpoint. They live here and not in `rl-envs` because their formula is `rl-core`'s
//! (docs/adr/0004-normalisers.md).

use rl_core::running::RunningMeanStd;
use serde::{Deserialize, Serialize};

/// Observations: `(s − mean) / std`, clipped.   Detail P16; Engstrom et al. 2020, section 3.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ObsNormalizer {
    stats: RunningMeanStd,
    clip: f64,
}

impl ObsNormalizer {
    /// For observations of `obs_dim` numbers, clipped to `±clip` standard deviations.
    pub fn new(obs_dim: usize, clip: f64) -> Self {
        Self { stats: RunningMeanStd::new(obs_dim), clip }
    }

    /// Learns from a batch of raw observations `[n·D]`.
    pub fn update(&mut self, obs: &[f32]) {
        self.stats.update(obs);
    }

    /// Normalises raw observations `[n·D]` in place. Learns nothing.
    pub fn normalize(&self, obs: &mut [f32]) {
        for row in obs.chunks_exact_mut(self.stats.dims()) {
            self.stats.normalize(row, self.clip);
        }
    }
}

/// Rewards: `r / std(discounted return)`, clipped. The mean stays: shifting rewards would change
/// which policy is best.   Detail P16; Engstrom et al. 2020, section 3.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RewardScaler {
    stats: RunningMeanStd,
    returns: Vec<f64>,
    gamma: f64,
    clip: f64,
}

impl RewardScaler {
    /// For `envs` environments and returns discounted by `gamma`; scaled rewards within `±clip`.
    pub fn new(envs: usize, gamma: f64, clip: f64) -> Self {
        Self { stats: RunningMeanStd::new(1), returns: vec![0.0; envs], gamma, clip }
    }

    /// Scales one step's rewards `[E]` in place, having learnt from them; an ended episode's return
    /// starts again from 0.
    pub fn scale(&mut self, rewards: &mut [f32], ended: impl Fn(usize) -> bool) {
        for (ret, &reward) in self.returns.iter_mut().zip(rewards.iter()) {
            *ret = *ret * self.gamma + f64::from(reward);
        }
        self.stats.update(&self.returns);
        let scale = 1.0 / (self.stats.variance()[0] + 1e-8).sqrt();
        for (env, reward) in rewards.iter_mut().enumerate() {
            *reward = (f64::from(*reward) * scale).clamp(-self.clip, self.clip) as f32;
            if ended(env) {
                self.returns[env] = 0.0;
            }
        }
    }
}

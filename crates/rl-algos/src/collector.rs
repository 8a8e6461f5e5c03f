//! The seam between what samples and what learns: a [`Collector`] gives the data of one update.

use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_envs::{Env, Pulse};
use rl_models::ActorCritic;
use serde::Serialize;
use serde::de::DeserializeOwned;

use burn::tensor::Tensor;

use crate::collect_env::{ActionOf, CollectorState, EnvCollector, Episodes};
use crate::error::CollectError;
use crate::normalize::ObsNormalizer;
use crate::rollout::Rollout;

/// Environments, and how a model of type `M` acts in them while it learns.
pub trait Collector<M> {
    /// What one update learns from.
    type Data;
    /// Everything the next collection depends on, besides the model and the caller's generator.
    type State: Serialize + DeserializeOwned;

    /// The data of the next update, and the episodes that ended meanwhile.
    ///
    /// # Errors
    /// If an environment fails, or the model's answer is not finite.
    fn try_collect(
        &mut self,
        model: &M,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Self::Data, Episodes), CollectError>;

    /// [`try_collect`](Self::try_collect) where nothing can go wrong.
    ///
    /// # Panics
    /// If something does.
    fn collect(&mut self, model: &M, rng: &mut ChaCha8Rng) -> (Self::Data, Episodes) {
        self.try_collect(model, rng).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The pulse of each environment.
    fn pulses(&self) -> Vec<Pulse>;

    /// The environment steps in `data`.
    fn steps(data: &Self::Data) -> usize;

    /// The observation normaliser as it stands; evaluation uses a frozen copy.
    fn obs_norm(&self) -> Option<&ObsNormalizer>;

    /// The state, for a checkpoint.
    fn state(&self) -> Self::State;

    /// Goes on from `state`.
    fn set_state(&mut self, state: Self::State);
}

impl<E, M> Collector<M> for EnvCollector<E>
where
    E: Env,
    M: ActorCritic<Obs = Tensor<2>>,
    <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
{
    type Data = Rollout<Tensor<2>, M::Dist>;
    type State = CollectorState;

    fn try_collect(
        &mut self,
        model: &M,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Self::Data, Episodes), CollectError> {
        self.try_collect(model, rng)
    }

    fn pulses(&self) -> Vec<Pulse> {
        self.envs.pulses()
    }

    fn steps(data: &Self::Data) -> usize {
        data.decisions()
    }

    fn obs_norm(&self) -> Option<&ObsNormalizer> {
        self.obs_norm()
    }

    fn state(&self) -> CollectorState {
        self.state()
    }

    fn set_state(&mut self, state: CollectorState) {
        self.set_state(state);
    }
}

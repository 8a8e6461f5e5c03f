//! Two networks as one actor-critic: the value loss cannot move the policy.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::sampler::{Response, Sampler, Sampling};
use crate::traits::{ActorCritic, Policy, ValueFunction};

/// π_θ and V_φ without a common parameter.
#[derive(Module, Debug)]
pub struct Separate<P: Module + ModuleDisplay, V: Module + ModuleDisplay> {
    /// The actor.
    pub policy: P,
    /// The critic.
    pub value: V,
}

impl<P: Policy, V: ValueFunction<Obs = P::Obs>> ActorCritic for Separate<P, V> {
    type Obs = P::Obs;
    type Dist = P::Dist;

    fn policy(&self, obs: &P::Obs) -> P::Dist {
        self.policy.policy(obs)
    }

    fn value(&self, obs: &P::Obs) -> Tensor<1> {
        self.value.value(obs)
    }

    fn gradient(
        &self,
        obs: &P::Obs,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(P::Dist) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        let policy = self.policy.gradient(obs, noise, policy_loss);
        let value = self.value.gradient(obs, noise, value_loss);
        Tensor::cat(vec![policy, value], 0)
    }
}

impl<P: Module + ModuleDisplay + Sampler, V: Module + ModuleDisplay> Sampler for Separate<P, V> {
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response> {
        self.policy.respond(prompts, rngs, how)
    }
}

//! A language model at a temperature: one place that divides logits, so that rollout, reference and update agree.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, Distribution};

use crate::sampler::{Response, Sampler, Sampling};
use crate::traits::{ActorCritic, Policy};

/// `π_T(a|s) = softmax(z/T)_a`: the model whose logits are divided by T, everywhere.
#[derive(Module, Debug)]
pub struct Tempered<M: Module + ModuleDisplay> {
    /// The model at temperature 1.
    pub model: M,
    temperature: f64,
}

impl<M: Module + ModuleDisplay> Tempered<M> {
    /// The model at temperature T.
    ///
    /// # Panics
    /// Unless `0 < T < ∞`.
    pub fn new(model: M, temperature: f64) -> Self {
        assert!(temperature > 0.0 && temperature.is_finite(), "a temperature of {temperature}");
        Self { model, temperature }
    }

    fn law(&self, law: Categorical) -> Categorical {
        if self.temperature == 1.0 { law } else { law.with_params(law.params() / self.temperature) }
    }
}

impl<M: Policy<Dist = Categorical>> Policy for Tempered<M> {
    type Obs = M::Obs;
    type Dist = Categorical;

    fn policy(&self, obs: &M::Obs) -> Categorical {
        self.law(self.model.policy(obs))
    }

    fn policy_in_training(&self, obs: &M::Obs, noise: &mut dyn Rng) -> Categorical {
        self.law(self.model.policy_in_training(obs, noise))
    }

    fn gradient(
        &self,
        obs: &M::Obs,
        noise: &mut dyn Rng,
        loss: impl FnOnce(Categorical) -> Tensor<1>,
    ) -> Tensor<1> {
        self.model.gradient(obs, noise, |law| loss(self.law(law)))
    }
}

impl<M: ActorCritic<Dist = Categorical>> ActorCritic for Tempered<M> {
    type Obs = M::Obs;
    type Dist = Categorical;

    fn policy(&self, obs: &M::Obs) -> Categorical {
        self.law(self.model.policy(obs))
    }

    fn value(&self, obs: &M::Obs) -> Tensor<1> {
        self.model.value(obs)
    }

    fn gradient(
        &self,
        obs: &M::Obs,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(Categorical) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        self.model.gradient(obs, noise, |law| policy_loss(self.law(law)), value_loss)
    }
}

/// Temperatures multiply: sampling at `T'` from a model at T is sampling at `T·T'`.
impl<M: Module + ModuleDisplay + Sampler> Sampler for Tempered<M> {
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response> {
        let how = Sampling { temperature: how.temperature * self.temperature, ..how.clone() };
        self.model.respond(prompts, rngs, &how)
    }
}

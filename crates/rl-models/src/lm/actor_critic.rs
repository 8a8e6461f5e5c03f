//! A language model with a critic on its trunk: policy and value of one forward pass.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;

use super::transformer::Transformer;
use crate::flat_params::autodiff_gradient;
use crate::sampler::{Response, Sampler, Sampling};
use crate::tokens::Tokens;
use crate::traits::ActorCritic;

/// `π = softmax(E·h)`, `V = w·h + b`, with the trunk's state `h` before each token of the response.
///
/// Both losses move the trunk, so `value_coef` sets how much the critic may bend the policy.
#[derive(Module, Debug)]
pub struct LmActorCritic {
    /// The language model.
    pub policy: Transformer,
    /// State to value `[1, D]`.
    pub value: Param<Tensor<2>>,
    /// Added to every value `[1]`.
    pub value_bias: Param<Tensor<1>>,
}

impl LmActorCritic {
    /// A critic that says 0 everywhere, on a trunk that knows the language.
    pub fn new(policy: Transformer) -> Self {
        let device: Device = policy.embedding.val().device();
        let value = Param::from_tensor(Tensor::zeros([1, policy.config().hidden], &device));
        Self { policy, value, value_bias: Param::from_tensor(Tensor::zeros([1], &device)) }
    }

    /// # Shapes
    /// `states: [N, D]` → `[N]`
    fn values(&self, states: Tensor<2>) -> Tensor<1> {
        let n = states.dims()[0];
        states.matmul(self.value.val().transpose()).reshape([n]) + self.value_bias.val()
    }
}

impl ActorCritic for LmActorCritic {
    type Obs = Tokens;
    type Dist = Categorical;

    fn policy(&self, tokens: &Tokens) -> Categorical {
        Categorical::new(self.policy.logits(self.policy.decision_states(tokens)))
    }

    fn value(&self, tokens: &Tokens) -> Tensor<1> {
        self.values(self.policy.decision_states(tokens))
    }

    fn gradient(
        &self,
        tokens: &Tokens,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(Categorical) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        autodiff_gradient(self, |tracked| {
            let states = tracked.policy.decision_states_in_training(tokens, noise);
            let law = Categorical::new(tracked.policy.logits(states.clone()));
            policy_loss(law) + value_loss(tracked.values(states))
        })
    }
}

/// The critic has no say in what is written.
impl Sampler for LmActorCritic {
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response> {
        self.policy.respond(prompts, rngs, how)
    }
}

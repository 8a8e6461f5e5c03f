//! An actor-critic that remembers every minibatch it was differentiated on.

use std::sync::{Arc, Mutex};

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;
use rand::Rng;
use rl_models::ActorCritic;
use rl_tests::numbers;

/// Observations of one minibatch, row after row.
pub type Minibatch = Vec<f64>;

/// A model, watched.
#[derive(Module, Debug)]
pub struct Watched<M: Module + ModuleDisplay> {
    /// The model.
    pub model: M,
    #[module(skip)]
    seen: Arc<Mutex<Vec<Minibatch>>>,
}

impl<M: Module + ModuleDisplay> Watched<M> {
    /// Starts watching.
    pub fn new(model: M) -> Self {
        Self { model, seen: Arc::default() }
    }

    /// The minibatches so far.
    pub fn minibatches(&self) -> Vec<Minibatch> {
        self.seen.lock().expect("nobody panicked").clone()
    }
}

impl<M: ActorCritic<Obs = Tensor<2>>> ActorCritic for Watched<M> {
    type Obs = Tensor<2>;
    type Dist = M::Dist;

    fn policy(&self, obs: &Tensor<2>) -> M::Dist {
        self.model.policy(obs)
    }

    fn value(&self, obs: &Tensor<2>) -> Tensor<1> {
        self.model.value(obs)
    }

    fn gradient(
        &self,
        obs: &Tensor<2>,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(M::Dist) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        self.seen.lock().expect("nobody panicked").push(numbers(obs.clone()));
        self.model.gradient(obs, noise, policy_loss, value_loss)
    }
}

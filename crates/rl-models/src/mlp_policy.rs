//! An MLP as a policy, and an MLP as a value function.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;

use crate::flat_params::{autodiff_gradient, grad_pieces};
use crate::head::Head;
use crate::mlp::{Mlp, MlpConfig};
use crate::tape;
use crate::traits::{Policy, ValueFunction};

/// π_θ(· | s) = head(MLP(s)).
#[derive(Module, Debug)]
pub struct MlpPolicy<H: Head> {
    /// From the observation to the head's raw outputs.
    pub net: Mlp,
    /// From raw outputs to the law.
    pub head: H,
}

impl<H: Head> MlpPolicy<H> {
    /// A policy of near-uniform (or unit-mean-zero) laws: the last layer's gain is 0.01.
    pub fn new<R: Rng + ?Sized>(
        config: &MlpConfig,
        obs_dim: usize,
        head: H,
        rng: &mut R,
        device: &Device,
    ) -> Self {
        Self { net: Mlp::new(config, obs_dim, head.outputs(), 0.01, rng, device), head }
    }
}

impl<H: Head> Policy for MlpPolicy<H> {
    type Obs = Tensor<2>;
    type Dist = H::Dist;

    fn policy(&self, obs: &Tensor<2>) -> H::Dist {
        self.head.law(self.net.forward(obs.clone()))
    }

    fn policy_in_training(&self, obs: &Tensor<2>, noise: &mut dyn Rng) -> H::Dist {
        self.head.law(self.net.forward_in_training(obs.clone(), noise))
    }

    fn gradient(
        &self,
        obs: &Tensor<2>,
        noise: &mut dyn Rng,
        loss: impl FnOnce(H::Dist) -> Tensor<1>,
    ) -> Tensor<1> {
        if !self.net.uses_host_kernels() {
            return autodiff_gradient(self, |tracked| loss(tracked.policy_in_training(obs, noise)));
        }
        let head = self.head.clone().train();
        let (mut pieces, mut grads) = tape::gradient(&self.net, obs.clone(), noise, |z| loss(head.law(z)));
        pieces.extend(grad_pieces(&head, &mut grads));
        Tensor::cat(pieces, 0)
    }
}

/// V_φ(s) = MLP(s), one number.
#[derive(Module, Debug)]
pub struct MlpValue {
    /// From the observation to the value.
    pub net: Mlp,
}

impl MlpValue {
    /// A value function whose last layer has gain 1.
    pub fn new<R: Rng + ?Sized>(config: &MlpConfig, obs_dim: usize, rng: &mut R, device: &Device) -> Self {
        Self { net: Mlp::new(config, obs_dim, 1, 1.0, rng, device) }
    }
}

impl ValueFunction for MlpValue {
    type Obs = Tensor<2>;

    fn value(&self, obs: &Tensor<2>) -> Tensor<1> {
        column(self.net.forward(obs.clone()))
    }

    fn value_in_training(&self, obs: &Tensor<2>, noise: &mut dyn Rng) -> Tensor<1> {
        column(self.net.forward_in_training(obs.clone(), noise))
    }

    fn gradient(
        &self,
        obs: &Tensor<2>,
        noise: &mut dyn Rng,
        loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        if !self.net.uses_host_kernels() {
            return autodiff_gradient(self, |tracked| loss(tracked.value_in_training(obs, noise)));
        }
        let (pieces, _) = tape::gradient(&self.net, obs.clone(), noise, |v| loss(column(v)));
        Tensor::cat(pieces, 0)
    }
}

/// `[R, 1]` → `[R]`.
pub(crate) fn column(t: Tensor<2>) -> Tensor<1> {
    let rows = t.dims()[0];
    t.reshape([rows])
}

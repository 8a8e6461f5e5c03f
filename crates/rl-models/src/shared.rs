//! One trunk under a policy head and a value head: fewer parameters, and each loss moves both.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;

use crate::flat_params::autodiff_gradient;
use crate::head::Head;
use crate::mlp::{Mlp, MlpConfig};
use crate::mlp_policy::column;
use crate::traits::ActorCritic;

/// π = head(W_π·f(s)), V = w_v·f(s), with the common features `f(s) = σ(trunk(s))`.
#[derive(Module, Debug)]
pub struct Shared<H: Head> {
    trunk: Mlp,
    policy: Mlp,
    head: H,
    value: Mlp,
}

impl<H: Head> Shared<H> {
    /// Gains: √2 in the trunk, 0.01 for the policy's layer, 1 for the value's.
    ///
    /// # Panics
    /// If `config.hidden` is empty: there would be no trunk to share.
    pub fn new<R: Rng + ?Sized>(
        config: &MlpConfig,
        obs_dim: usize,
        head: H,
        rng: &mut R,
        device: &Device,
    ) -> Self {
        let (&features, below) =
            config.hidden.split_last().expect("a shared trunk has at least one hidden layer");
        let trunk = MlpConfig { hidden: below.to_vec(), ..config.clone() };
        let linear = MlpConfig { hidden: vec![], ..config.clone() };
        Self {
            trunk: Mlp::new(&trunk, obs_dim, features, 2f64.sqrt(), rng, device),
            policy: Mlp::new(&linear, features, head.outputs(), 0.01, rng, device),
            value: Mlp::new(&linear, features, 1, 1.0, rng, device),
            head,
        }
    }

    fn features(&self, obs: &Tensor<2>) -> Tensor<2> {
        self.trunk.activation.forward(self.trunk.forward(obs.clone()))
    }
}

impl<H: Head> ActorCritic for Shared<H> {
    type Obs = Tensor<2>;
    type Dist = H::Dist;

    fn policy(&self, obs: &Tensor<2>) -> H::Dist {
        self.head.law(self.policy.forward(self.features(obs)))
    }

    fn value(&self, obs: &Tensor<2>) -> Tensor<1> {
        column(self.value.forward(self.features(obs)))
    }

    fn gradient(
        &self,
        obs: &Tensor<2>,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(H::Dist) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        autodiff_gradient(self, |tracked| {
            let hidden = tracked.trunk.forward_in_training(obs.clone(), noise);
            let features = tracked.trunk.drop_out(tracked.trunk.activation.forward(hidden), noise);
            let law = tracked.head.law(tracked.policy.forward(features.clone()));
            let value = column(tracked.value.forward(features));
            policy_loss(law) + value_loss(value)
        })
    }
}

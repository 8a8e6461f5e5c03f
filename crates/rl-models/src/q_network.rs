//! An MLP as a table of action values: what value-based methods learn in place of a policy.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use rl_core::dist::Categorical;
use rl_core::q_learning::greedy_value;

use crate::flat_params::autodiff_gradient;
use crate::mlp::{Mlp, MlpConfig};
use crate::tape;
use crate::traits::ActorCritic;

/// `Q(s, ·) = MLP(s)`, one value per action.
///
/// As an [`ActorCritic`] its policy is Boltzmann's, `π(a|s) ∝ exp Q(s, a)`, whose mode is the greedy action, and its
/// value is that of the greedy action.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use rand::SeedableRng;
/// use rl_models::{MlpConfig, QNetwork};
///
/// let (device, mut rng) = (Device::flex(), rand_chacha::ChaCha8Rng::seed_from_u64(1));
/// let q = QNetwork::new(&MlpConfig::default(), 4, 2, &mut rng, &device);
/// let obs = Tensor::ones([3, 4], &device);
/// let gradient = q.values_gradient(&obs, &mut rng, |values| values.square().mean());
/// assert_eq!((q.values(&obs).dims(), gradient.dims()), ([3, 2], [rl_models::flat_params::count(&q)]));
/// ```
#[derive(Module, Debug)]
pub struct QNetwork {
    /// From the observation to the action values.
    pub net: Mlp,
}

impl QNetwork {
    /// A network whose last layer has gain 1.
    pub fn new<R: Rng + ?Sized>(
        config: &MlpConfig,
        obs_dim: usize,
        actions: usize,
        rng: &mut R,
        device: &Device,
    ) -> Self {
        Self { net: Mlp::new(config, obs_dim, actions, 1.0, rng, device) }
    }

    /// Q(s, ·), without recording for autodiff.
    ///
    /// # Shapes
    /// `obs: [R, D]` → `[R, A]`
    pub fn values(&self, obs: &Tensor<2>) -> Tensor<2> {
        self.net.forward(obs.clone())
    }

    /// ∇loss(Q(obs, ·)), flat, with dropout masks drawn from `noise`.
    ///
    /// # Shapes
    /// `loss`: `[R, A]` → `[1]`; returns `[P]` on the plain device
    pub fn values_gradient(
        &self,
        obs: &Tensor<2>,
        noise: &mut dyn Rng,
        loss: impl FnOnce(Tensor<2>) -> Tensor<1>,
    ) -> Tensor<1> {
        if !self.net.uses_host_kernels() {
            return autodiff_gradient(self, |tracked| {
                loss(tracked.net.forward_in_training(obs.clone(), noise))
            });
        }
        let (pieces, _) = tape::gradient(&self.net, obs.clone(), noise, loss);
        Tensor::cat(pieces, 0)
    }
}

impl ActorCritic for QNetwork {
    type Obs = Tensor<2>;
    type Dist = Categorical;

    fn policy(&self, obs: &Tensor<2>) -> Categorical {
        Categorical::new(self.values(obs))
    }

    fn value(&self, obs: &Tensor<2>) -> Tensor<1> {
        greedy_value(self.values(obs))
    }

    fn gradient(
        &self,
        obs: &Tensor<2>,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(Categorical) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        self.values_gradient(obs, noise, |q| {
            policy_loss(Categorical::new(q.clone())) + value_loss(greedy_value(q))
        })
    }
}

//! The seams between networks and algorithms: rows, policies, value functions, actor-critics.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Int, Tensor};
use rand::Rng;
use rl_core::dist::Distribution;

use crate::flat_params::autodiff_gradient;

/// What one forward pass handles and one minibatch selects: observations, or token sequences.
pub trait Rows: Clone {
    /// The number of rows `R`.
    fn rows(&self) -> usize;

    /// The rows at `indices`, in that order.
    ///
    /// # Shapes
    /// `indices: [r]`, each in `0..R` → `r` rows
    fn select(&self, indices: Tensor<1, Int>) -> Self;
}

/// Observation vectors `[R, D]`.
impl Rows for Tensor<2> {
    fn rows(&self) -> usize {
        self.dims()[0]
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        self.clone().select(0, indices)
    }
}

/// A parametrised law π_θ(a | s).
pub trait Policy: Module + ModuleDisplay {
    /// What the policy sees.
    type Obs: Rows;
    /// The law it answers with.
    type Dist: Distribution;

    /// The laws of the `N` decisions in `R` rows, without recording for autodiff.
    fn policy(&self, obs: &Self::Obs) -> Self::Dist;

    /// [`Policy::policy`] as training sees it: with dropout, whose masks are drawn from `noise`.
    fn policy_in_training(&self, obs: &Self::Obs, _noise: &mut dyn Rng) -> Self::Dist {
        self.policy(obs)
    }

    /// ∇_θ loss(π_θ(· | obs)), flat.
    ///
    /// # Shapes
    /// `loss`: law of `N` decisions → `[1]`; returns `[P]` on the plain device, in the order of
    /// [`crate::flat_params::flatten`]
    fn gradient(
        &self,
        obs: &Self::Obs,
        noise: &mut dyn Rng,
        loss: impl FnOnce(Self::Dist) -> Tensor<1>,
    ) -> Tensor<1> {
        autodiff_gradient(self, |tracked| loss(tracked.policy_in_training(obs, noise)))
    }
}

/// A parametrised state value V_φ(s).
pub trait ValueFunction: Module + ModuleDisplay {
    /// What the value function sees.
    type Obs: Rows;

    /// V_φ of each decision's state, without recording for autodiff: `[N]`.
    fn value(&self, obs: &Self::Obs) -> Tensor<1>;

    /// [`ValueFunction::value`] as training sees it: with dropout masks drawn from `noise`.
    fn value_in_training(&self, obs: &Self::Obs, _noise: &mut dyn Rng) -> Tensor<1> {
        self.value(obs)
    }

    /// ∇_φ loss(V_φ(obs)), flat `[P]`; see [`Policy::gradient`].
    fn gradient(
        &self,
        obs: &Self::Obs,
        noise: &mut dyn Rng,
        loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1> {
        autodiff_gradient(self, |tracked| loss(tracked.value_in_training(obs, noise)))
    }
}

/// A policy and a value function that see the same observations, with or without a shared trunk.
pub trait ActorCritic: Module + ModuleDisplay {
    /// What both see.
    type Obs: Rows;
    /// The law the policy answers with.
    type Dist: Distribution;

    /// The laws of the `N` decisions, without recording for autodiff.
    fn policy(&self, obs: &Self::Obs) -> Self::Dist;

    /// The values of the `N` decisions' states `[N]`, without recording for autodiff.
    fn value(&self, obs: &Self::Obs) -> Tensor<1>;

    /// ∇(policy_loss(π(obs)) + value_loss(V(obs))), flat.
    ///
    /// The two losses are apart because they meet in their sum alone: two networks can then be
    /// differentiated one after the other, and a shared trunk in one pass.
    ///
    /// # Shapes
    /// losses → `[1]` each; returns `[P]` on the plain device
    fn gradient(
        &self,
        obs: &Self::Obs,
        noise: &mut dyn Rng,
        policy_loss: impl FnOnce(Self::Dist) -> Tensor<1>,
        value_loss: impl FnOnce(Tensor<1>) -> Tensor<1>,
    ) -> Tensor<1>;
}

//! The Fisher matrix of a policy over a rollout, known by its products: what [`trpo`](crate::trpo) solves with.
//!
//! burn has first-order autodiff only, so `F·v = Jᵀ·F_z·(J·v)` (the Gauss–Newton form, exact for KL):
//! `J·v` is a central difference of the raw outputs, `F_z` is the law's own, `Jᵀ` one backward pass
//! (details T1).

use burn::tensor::Tensor;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_models::Policy;
use rl_models::flat_params::{flatten, unflatten};

use crate::rollout::Rollout;

/// The damped Fisher matrix of a policy over a rollout's decisions, known by its products.
pub struct Fisher<'a, P: Policy> {
    policy: &'a P,
    rollout: &'a Rollout<P::Obs, P::Dist>,
    law: P::Dist,
    theta: Tensor<1>,
    damping: f64,
}

impl<'a, P: Policy> Fisher<'a, P> {
    /// `F + λI` of `policy` over the decisions of `rollout` that count, `λ = damping`.
    pub fn new(policy: &'a P, rollout: &'a Rollout<P::Obs, P::Dist>, damping: f64) -> Self {
        Self { policy, rollout, law: policy.policy(&rollout.obs), theta: flatten(policy), damping }
    }

    /// `(F + λI)·v = Ê[Jᵀ·F_z·(J·v)] + λ·v`.   Schulman 2015, appendix C.1
    ///
    /// The central difference moves the parameters by a vector of norm 10⁻²: there, the rounding of
    /// `f32` and the curvature of the network are in balance.
    ///
    /// # Shapes
    /// `v: [P]` → `[P]`
    pub fn product(&self, v: &Tensor<1>, rng: &mut ChaCha8Rng) -> Tensor<1> {
        let norm = v.clone().square().sum().sqrt().into_scalar::<f64>();
        if norm == 0.0 {
            return v.zeros_like();
        }
        let h = 1e-2 / norm;
        let outputs = |h: f64| {
            let moved = unflatten(self.policy.clone(), &(self.theta.clone() + v.clone() * h));
            moved.policy(&self.rollout.obs).params()
        };
        let jv = (outputs(h) - outputs(-h)) / (2.0 * h);
        let fz_jv = self.law.fisher_vec(jv);
        let fv = self.policy.gradient(&self.rollout.obs, rng, |law| {
            self.rollout.mean((law.params() * fz_jv).sum_dim(1).squeeze_dim(1))
        });
        fv + v.clone() * self.damping
    }
}

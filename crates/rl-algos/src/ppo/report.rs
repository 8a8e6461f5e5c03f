//! What PPO has to say of an update.

use crate::update::Report;

/// What one update did. Losses and fractions are means over the update's minibatches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PpoReport {
    /// −surrogate, without penalty and bonus.
    pub policy_loss: f64,
    /// ½(V − R)², before its weight.
    pub value_loss: f64,
    /// H(π), nats.
    pub entropy: f64,
    /// k1 estimate of KL(π_old ‖ π), nats.
    pub old_approx_kl: f64,
    /// k3 estimate of KL(π_old ‖ π), nats.
    pub approx_kl: f64,
    /// Share of decisions with |ρ − 1| > ε.
    pub clip_fraction: f64,
    /// 1 − Var(R − V_old) / Var(R).
    pub explained_variance: f64,
    /// ‖∇‖₂ over all parameters, before clipping.
    pub grad_norm: f64,
    /// Exact KL(π_old ‖ π) over the rollout after the update, nats, where a penalty is on.
    pub kl: Option<f64>,
    /// β of the penalty during this update, where one is on.
    pub kl_coef: Option<f64>,
    /// Step size of this update.
    pub learning_rate: f64,
    /// Epochs finished before `target_kl` ended the update (all of them, if it did not).
    pub epochs: f64,
}

impl Report for PpoReport {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("losses/policy_loss", self.policy_loss);
        f("losses/value_loss", self.value_loss);
        f("losses/entropy", self.entropy);
        f("losses/old_approx_kl", self.old_approx_kl);
        f("losses/approx_kl", self.approx_kl);
        f("losses/clipfrac", self.clip_fraction);
        f("losses/explained_variance", self.explained_variance);
        f("losses/grad_norm", self.grad_norm);
        if let (Some(kl), Some(kl_coef)) = (self.kl, self.kl_coef) {
            f("losses/kl", kl);
            f("objective/kl_coef", kl_coef);
        }
        f("charts/learning_rate", self.learning_rate);
        f("charts/epochs", self.epochs);
    }
}

//! The gradient that REINFORCE and A2C share: the score function, an entropy bonus and a squared value error.
//!
//! ```text
//! L(θ) = −Ê[log π_θ(a|s)·Â] − c_e·Ê[H(π_θ)] + c_v·Ê[½(V_φ − R)²]
//! ```
//!
//! Williams 1992, eq. 11; Mnih et al. 2016, §4. The two differ in where Â and R come from.

use burn::tensor::Tensor;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Distribution;
use rl_core::{surrogate, value_loss};
use rl_models::ActorCritic;

use crate::rollout::Rollout;

/// What [`gradient`] saw, `[1]` each.
pub(crate) struct Seen {
    /// −Ê[log π·Â], without the bonus.
    pub(crate) policy_loss: Tensor<1>,
    /// Ê[H(π)], nats.
    pub(crate) entropy: Tensor<1>,
    /// Ê[½(V − R)²], before its weight.
    pub(crate) value_loss: Tensor<1>,
}

/// ∇L, flat `[P]`.
pub(crate) fn gradient<M: ActorCritic>(
    model: &M,
    batch: &Rollout<M::Obs, M::Dist>,
    entropy_coef: f64,
    value_coef: f64,
    rng: &mut ChaCha8Rng,
) -> (Tensor<1>, Seen) {
    let (mut policy_saw, mut value_saw) = (None, None);
    let grad = model.gradient(
        &batch.obs,
        rng,
        |law| {
            let objective = surrogate::score_function(law.log_prob(&batch.actions), batch.advantage.clone());
            let policy_loss = batch.mean(objective).neg();
            // Without a bonus the entropy is only reported: no need to record it.
            let entropy =
                batch.mean(if entropy_coef == 0.0 { law.constant() } else { law.clone() }.entropy());
            policy_saw = Some((policy_loss.clone().inner(), entropy.clone().inner()));
            if entropy_coef == 0.0 { policy_loss } else { policy_loss - entropy * entropy_coef }
        },
        |value| {
            let loss = batch.mean(value_loss::squared(value, batch.value_target.clone()));
            value_saw = Some(loss.clone().inner());
            loss * value_coef
        },
    );
    let (policy_loss, entropy) = policy_saw.expect("the policy's loss was asked for");
    let value_loss = value_saw.expect("the value's loss was asked for");
    (grad, Seen { policy_loss, entropy, value_loss })
}

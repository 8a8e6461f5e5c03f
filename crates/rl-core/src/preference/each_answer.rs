//! The losses of the DPO family that judge each answer by its own log-ratio, `a` for the chosen, `b` for the rejected.

use burn::tensor::Tensor;

use super::{PairLogProb, log_sigmoid, sigmoid};
use crate::hand_gradient::constant;

/// Self-play preference optimisation with hard labels: `(a − 1/(2β))² + (b + 1/(2β))²`.   Wu 2024 (SPPO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn sppo_hard(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    let PairLogProb { chosen: a, rejected: b } = policy.log_ratio(reference);
    (a - 0.5 / beta).square() + (b + 0.5 / beta).square()
}

/// Noise-contrastive alignment on pairs: `−log σ(βa) − ½·log σ(−βa) − ½·log σ(−βb)`.   Chen 2024 (NCA)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn nca_pair(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    let PairLogProb { chosen: a, rejected: b } = policy.log_ratio(reference);
    let (a, b) = (a * beta, b * beta);
    (log_sigmoid(a.clone().neg()) + log_sigmoid(b.neg())) * -0.5 - log_sigmoid(a)
}

/// Binary classifier optimisation without the running shift: `−log σ(βa) − log σ(−βb)`.   Jung 2024 (BCO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn bco_pair(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    let PairLogProb { chosen: a, rejected: b } = policy.log_ratio(reference);
    (log_sigmoid(a * beta) + log_sigmoid(b * -beta)).neg()
}

/// Anchored preference optimisation, raising the chosen and lowering the rejected: `1 − σ(βa) + σ(βb)`.
///   D'Oosterlinck 2024 (APO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn apo_zero(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    let PairLogProb { chosen: a, rejected: b } = policy.log_ratio(reference);
    sigmoid(a * -beta) + sigmoid(b * beta)
}

/// Anchored preference optimisation, lowering both answers, the rejected more: `σ(βa) + 1 − σ(β(a − b))`.
///   D'Oosterlinck 2024 (APO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn apo_down(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    let PairLogProb { chosen: a, rejected: b } = policy.log_ratio(reference);
    sigmoid(a.clone() * beta) + sigmoid((b - a) * beta)
}

/// The batch estimate of KL(π ‖ π_ref) that anchors KTO: `max(0, mean(log π − log π_ref))`, a constant of the loss.
///
/// # Shapes
/// `log_ratio: [B]` → `[1]`, off the tape
#[must_use]
pub fn batch_kl(log_ratio: &Tensor<1>) -> Tensor<1> {
    constant(log_ratio).mean().clamp_min(0.0)
}

/// Kahneman–Tversky optimisation on paired data: every answer is judged against the KL of the other half of the batch.
///
/// Chosen: `1 − σ(β·(a − KL_b))`; rejected: `1 − σ(β·(KL_a − b))`, with [`batch_kl`] of each half.   Ethayarajh 2024
/// (KTO), in the paired form
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[2B]`, the chosen answers first
#[must_use]
pub fn kto_pair(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    let PairLogProb { chosen: a, rejected: b } = policy.log_ratio(reference);
    let (kl_a, kl_b) = (batch_kl(&a), batch_kl(&b));
    // 1 − σ(x) = σ(−x)
    Tensor::cat(vec![sigmoid((a - kl_b) * -beta), sigmoid((b - kl_a) * beta)], 0)
}

//! The losses of the DPO family that see a pair only through `h = a − b`, the difference of its log-ratios.

use burn::tensor::{Tensor, activation};

use super::{PairLogProb, log_sigmoid, sigmoid};

/// `h = [log π(y_w) − log π_ref(y_w)] − [log π(y_l) − log π_ref(y_l)]`.
///
/// The log-ratios first: the log-probabilities of long answers are large and close to the reference's, so that in `f32`
/// their differences are exact where those between the two answers are not.
fn difference(policy: PairLogProb, reference: PairLogProb) -> Tensor<1> {
    policy.log_ratio(reference).margin()
}

/// Direct preference optimisation: `−log σ(β·h)`.   Rafailov 2023, eq. 7
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn dpo(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    log_sigmoid(difference(policy, reference) * beta).neg()
}

/// Conservative DPO: labels are wrong with probability ε, `−(1−ε)·log σ(βh) − ε·log σ(−βh)`.   Mitchell 2023 (cDPO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
///
/// # Panics
/// Unless `0 ≤ label_smoothing < ½`.
#[must_use]
pub fn cdpo(policy: PairLogProb, reference: PairLogProb, beta: f64, label_smoothing: f64) -> Tensor<1> {
    assert_smoothing(label_smoothing);
    let reward_margin = difference(policy, reference) * beta;
    let (right, wrong) = (log_sigmoid(reward_margin.clone()), log_sigmoid(reward_margin.neg()));
    right * (label_smoothing - 1.0) - wrong * label_smoothing
}

/// Robust DPO, unbiased under labels flipped with probability ε:
/// `[−(1−ε)·log σ(βh) + ε·log σ(−βh)]/(1−2ε)`.   Chowdhury 2024 (rDPO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
///
/// # Panics
/// Unless `0 ≤ label_smoothing < ½`.
#[must_use]
pub fn robust(policy: PairLogProb, reference: PairLogProb, beta: f64, label_smoothing: f64) -> Tensor<1> {
    assert_smoothing(label_smoothing);
    let reward_margin = difference(policy, reference) * beta;
    let (right, wrong) = (log_sigmoid(reward_margin.clone()), log_sigmoid(reward_margin.neg()));
    let scale = 1.0 / (1.0 - 2.0 * label_smoothing);
    right * ((label_smoothing - 1.0) * scale) + wrong * (label_smoothing * scale)
}

/// Identity preference optimisation on summed log-probabilities, as in the paper: `(h − 1/(2β))²`.   Azar 2023, eq. 17
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn ipo(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    (difference(policy, reference) - 0.5 / beta).square()
}

/// [`ipo`] on log-probabilities per token, as TRL does: `h` of the log-ratios divided by the answer lengths.
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities; `lengths: [B]` in tokens, none below 1 → `[B]`
#[must_use]
pub fn ipo_norm(policy: PairLogProb, reference: PairLogProb, lengths: PairLogProb, beta: f64) -> Tensor<1> {
    (policy.log_ratio(reference).per_token(lengths).margin() - 0.5 / beta).square()
}

/// The hinge of SLiC on the reward margin: `max(0, 1 − βh)`.   Zhao 2023 (SLiC-HF)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
#[must_use]
pub fn hinge(policy: PairLogProb, reference: PairLogProb, beta: f64) -> Tensor<1> {
    activation::relu(difference(policy, reference) * -beta + 1.0)
}

/// Efficient exact optimisation on pairs: the reverse KL from the model's preference `q = σ(βh)` to the smoothed label.
///
/// `q·(log q − log(1−ε)) + (1−q)·(log(1−q) − log ε)`.   Ji 2024 (EXO)
///
/// # Shapes
/// `policy`, `reference`: `[B]` summed log-probabilities → `[B]`
///
/// # Panics
/// Unless `0 < label_smoothing < ½`: against a label without doubt the KL is infinite.
#[must_use]
pub fn exo_pair(policy: PairLogProb, reference: PairLogProb, beta: f64, label_smoothing: f64) -> Tensor<1> {
    assert_smoothing(label_smoothing);
    assert!(label_smoothing > 0.0, "EXO needs label_smoothing > 0");
    let x = difference(policy, reference) * beta;
    let right = sigmoid(x.clone()) * (log_sigmoid(x.clone()) - (1.0 - label_smoothing).ln());
    let wrong = sigmoid(x.clone().neg()) * (log_sigmoid(x.neg()) - label_smoothing.ln());
    right + wrong
}

fn assert_smoothing(label_smoothing: f64) {
    assert!((0.0..0.5).contains(&label_smoothing), "label_smoothing = {label_smoothing} is not in [0, 0.5)");
}

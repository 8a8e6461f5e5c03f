//! Losses that learn from comparisons: the reward model's, and the DPO family's.
//!
//! A pair is a *chosen* answer y_w and a *rejected* one y_l to the same prompt x. Everything is per pair, `[B]` → `[B]`,
//! to be **minimised**, and finite for log-ratios of ±10⁴: log-sigmoids are never logarithms of sigmoids.
//!
//! The DPO family writes the reward of the KL-regularised optimum in terms of the policy itself,
//! `r̂(x,y) = β·log(π(y|x)/π_ref(y|x))` plus a term of x alone. With the log-ratios `a = log π(y_w) − log π_ref(y_w)`,
//! `b` the same for y_l, and `h = a − b`:
//!
//! | loss | per pair | acts on |
//! |---|---|---|
//! | [`dpo`] | `−log σ(βh)` | the difference |
//! | [`cdpo`] | `−(1−ε)·log σ(βh) − ε·log σ(−βh)` | the difference |
//! | [`robust`] | `[−(1−ε)·log σ(βh) + ε·log σ(−βh)]/(1−2ε)` | the difference |
//! | [`ipo`], [`ipo_norm`] | `(h − 1/2β)²`, on sums or token means | the difference |
//! | [`hinge`] | `max(0, 1 − βh)` | the difference |
//! | [`exo_pair`] | `KL(σ(±βh) ‖ (1−ε, ε))` | the difference |
//! | [`sppo_hard`] | `(a − 1/2β)² + (b + 1/2β)²` | each answer |
//! | [`nca_pair`] | `−log σ(βa) − ½·log σ(−βa) − ½·log σ(−βb)` | each answer |
//! | [`bco_pair`] | `−log σ(βa) − log σ(−βb)` | each answer |
//! | [`apo_zero`] | `1 − σ(βa) + σ(βb)` | each answer |
//! | [`apo_down`] | `σ(βa) + 1 − σ(βh)` | both |
//! | [`kto_pair`] | `1 − σ(β(a − KL_b))`, `1 − σ(β(KL_a − b))` | each answer, against the batch |
//!
//! A loss of the difference is blind to how probable the two answers are: it can be lowered by making the chosen one
//! *less* probable, so long as the rejected one falls faster.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rl_core::preference::{PairLogProb, dpo};
//!
//! let at = |x: f32| Tensor::<1>::from_data([x], &Device::flex());
//! let policy = PairLogProb::new(at(-10.0), at(-12.0));
//! let reference = PairLogProb::new(at(-11.0), at(-11.0));
//! let loss: f32 = dpo(policy.clone(), reference, 0.1).into_scalar();
//! assert!((loss - 0.5981).abs() < 1e-4); // −log σ(0.1·2)
//! let loss: f32 = dpo(policy.clone(), policy, 0.1).into_scalar();
//! assert!((loss - 2_f32.ln()).abs() < 1e-6); // at π = π_ref
//! ```

mod bradley_terry;
mod calibration;
mod difference;
mod each_answer;

pub use bradley_terry::{bradley_terry, bradley_terry_with_margin, centring, preference_prob};
pub use calibration::{CalibrationBin, Ensemble, calibration, expected_calibration_error};
pub use difference::{cdpo, dpo, exo_pair, hinge, ipo, ipo_norm, robust};
pub use each_answer::{apo_down, apo_zero, batch_kl, bco_pair, kto_pair, nca_pair, sppo_hard};

use burn::tensor::{Tensor, activation};

use crate::hand_gradient::constant;

/// One number per answer of each pair: log-probabilities of whole answers, in nats (or any score of them).
#[derive(Clone, Debug)]
pub struct PairLogProb {
    /// Of the chosen answers, `[B]`.
    pub chosen: Tensor<1>,
    /// Of the rejected answers, `[B]`.
    pub rejected: Tensor<1>,
}

impl PairLogProb {
    /// The log-probabilities of the chosen and of the rejected answers.
    ///
    /// # Shapes
    /// `chosen: [B]`, `rejected: [B]`
    #[must_use]
    pub fn new(chosen: Tensor<1>, rejected: Tensor<1>) -> Self {
        assert_eq!(chosen.dims(), rejected.dims(), "one rejected answer per chosen answer");
        Self { chosen, rejected }
    }

    /// `chosen − rejected`.
    ///
    /// # Shapes
    /// → `[B]`
    #[must_use]
    pub fn margin(self) -> Tensor<1> {
        self.chosen - self.rejected
    }

    /// The log-ratios `a` and `b` to a reference: `log π − log π_ref` of each answer.
    #[must_use]
    pub fn log_ratio(self, reference: Self) -> Self {
        Self::new(self.chosen - reference.chosen, self.rejected - reference.rejected)
    }

    /// The same numbers per token: divided by the answer lengths, of which none counts as less than 1.
    ///
    /// # Shapes
    /// `lengths.chosen: [B]`, `lengths.rejected: [B]`, in tokens
    #[must_use]
    pub fn per_token(self, lengths: Self) -> Self {
        Self::new(
            self.chosen / lengths.chosen.clamp_min(1.0),
            self.rejected / lengths.rejected.clamp_min(1.0),
        )
    }
}

/// The reward that a policy claims for an answer, up to a term of the prompt: `r̂ = β·(log π(y|x) − log π_ref(y|x))`.
///   Rafailov 2023, §4
///
/// # Shapes
/// `log_prob: [B]`, `log_prob_ref: [B]` → `[B]`
#[must_use]
pub fn implicit_reward(log_prob: Tensor<1>, log_prob_ref: Tensor<1>, beta: f64) -> Tensor<1> {
    (log_prob - log_prob_ref) * beta
}

/// The share of pairs with `chosen > rejected`. A tie is not a success: at π = π_ref the accuracy of DPO is 0, not ½;
/// report [`tie_fraction`] beside it.
///
/// # Shapes
/// `chosen: [B]`, `rejected: [B]` → `[1]`
#[must_use]
pub fn accuracy(chosen: &Tensor<1>, rejected: &Tensor<1>) -> Tensor<1> {
    let (chosen, rejected) = (constant(chosen), constant(rejected));
    chosen.ones_like().mask_fill(chosen.lower_equal(rejected), 0.0).mean()
}

/// The share of pairs with `chosen = rejected`.
///
/// # Shapes
/// `chosen: [B]`, `rejected: [B]` → `[1]`
#[must_use]
pub fn tie_fraction(chosen: &Tensor<1>, rejected: &Tensor<1>) -> Tensor<1> {
    let (chosen, rejected) = (constant(chosen), constant(rejected));
    chosen.zeros_like().mask_fill(chosen.equal(rejected), 1.0).mean()
}

/// `log σ(x) = −log(1 + e^−x)`, finite for every finite x; slope ½ at 0.
///
/// # Shapes
/// `[B]` → `[B]`
#[must_use]
pub fn log_sigmoid(x: Tensor<1>) -> Tensor<1> {
    activation::log_sigmoid(x)
}

/// `σ(x) = exp(log σ(x))`, exact in double precision on every backend (burn's own `sigmoid` passes through `f32` on
/// some).
fn sigmoid(x: Tensor<1>) -> Tensor<1> {
    log_sigmoid(x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    type Loss = fn(PairLogProb, PairLogProb) -> Tensor<1>;

    /// Every loss of the family with β = 0.1 (and ε = 0.1 where it smooths).
    const FAMILY: [(&str, Loss); 12] = [
        ("dpo", |p, r| dpo(p, r, 0.1)),
        ("cdpo", |p, r| cdpo(p, r, 0.1, 0.1)),
        ("robust", |p, r| robust(p, r, 0.1, 0.1)),
        ("ipo", |p, r| ipo(p, r, 0.1)),
        ("hinge", |p, r| hinge(p, r, 0.1)),
        ("exo_pair", |p, r| exo_pair(p, r, 0.1, 0.1)),
        ("sppo_hard", |p, r| sppo_hard(p, r, 0.1)),
        ("nca_pair", |p, r| nca_pair(p, r, 0.1)),
        ("bco_pair", |p, r| bco_pair(p, r, 0.1)),
        ("apo_zero", |p, r| apo_zero(p, r, 0.1)),
        ("apo_down", |p, r| apo_down(p, r, 0.1)),
        ("kto_pair", |p, r| kto_pair(p, r, 0.1)),
    ];

    fn pair(chosen: f32, rejected: f32) -> PairLogProb {
        let device = Device::flex();
        PairLogProb::new(Tensor::from_data([chosen], &device), Tensor::from_data([rejected], &device))
    }

    fn number(x: Tensor<1>) -> f32 {
        x.mean().into_scalar()
    }

    #[track_caller]
    fn check(got: Tensor<1>, want: f32) {
        let got = number(got);
        assert!((got - want).abs() < 5e-5, "{got} is not {want}");
    }

    #[test]
    fn the_worked_pair_of_the_dpo_family() {
        // details.md D1–D3: β = 0.1, policy −10/−12, reference −11/−11, lengths 2 and 4.
        let (policy, reference) = (pair(-10.0, -12.0), pair(-11.0, -11.0));
        check(dpo(policy.clone(), reference.clone(), 0.1), 0.5981);
        check(cdpo(policy.clone(), reference.clone(), 0.1, 0.1), 0.6181);
        check(robust(policy.clone(), reference.clone(), 0.1, 0.1), 0.5731);
        check(hinge(policy.clone(), reference.clone(), 0.1), 0.8);
        check(ipo(policy.clone(), reference.clone(), 0.1), 9.0);
        check(ipo_norm(policy.clone(), reference.clone(), pair(2.0, 4.0), 0.1), 18.0625);
        check(implicit_reward(policy.chosen, reference.chosen, 0.1), 0.1);
        check(implicit_reward(policy.rejected, reference.rejected, 0.1), -0.1);
    }

    #[test]
    fn at_the_reference_dpo_pays_log_two_and_every_pair_is_a_tie() {
        let same = pair(-10.0, -12.0);
        check(dpo(same.clone(), same.clone(), 0.1), std::f32::consts::LN_2);
        let rewards = same.clone().log_ratio(same);
        assert_eq!(number(accuracy(&rewards.chosen, &rewards.rejected)), 0.0);
        assert_eq!(number(tie_fraction(&rewards.chosen, &rewards.rejected)), 1.0);
    }

    #[test]
    fn every_loss_and_gradient_is_finite_for_log_ratios_of_ten_thousand() {
        let (chosen, rejected) = ([1e4, 1e4, -1e4, -1e4, 0.0], [1e4, -1e4, 1e4, -1e4, 0.0]);
        let device = Device::flex();
        for (name, loss) in FAMILY {
            let leaf = |x| Tensor::<1>::from_data(x, &device).autodiff().require_grad();
            let policy = PairLogProb::new(leaf(chosen), leaf(rejected));
            let reference = PairLogProb::new(Tensor::zeros([5], &device), Tensor::zeros([5], &device));
            let losses = loss(policy.clone(), reference);
            let values: Vec<f32> = losses.clone().into_data().try_to_vec().unwrap();
            assert!(values.iter().all(|x| x.is_finite()), "{name}: {values:?}");
            let tape = losses.sum().backward();
            for answer in [policy.chosen, policy.rejected] {
                let gradient: Vec<f32> = answer.grad(&tape).unwrap().into_data().try_to_vec().unwrap();
                assert!(gradient.iter().all(|g| g.is_finite()), "{name}: gradient {gradient:?}");
            }
        }
    }

    #[test]
    fn a_length_of_zero_counts_as_one() {
        let per_token = pair(-6.0, -6.0).per_token(pair(0.0, 3.0));
        assert_eq!((number(per_token.chosen), number(per_token.rejected)), (-6.0, -2.0));
    }
}

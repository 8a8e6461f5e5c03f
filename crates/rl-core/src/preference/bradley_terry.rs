//! The Bradley–Terry likelihood of a comparison: what a reward model maximises.

use burn::tensor::Tensor;

use super::{log_sigmoid, sigmoid};

/// The negative log-likelihood of a comparison, `−log σ(r_w − r_l)`.   Bradley & Terry 1952; Ouyang 2022, eq. 1
///
/// # Shapes
/// `chosen: [B]`, `rejected: [B]` rewards → `[B]`, in nats
#[must_use]
pub fn bradley_terry(chosen: Tensor<1>, rejected: Tensor<1>) -> Tensor<1> {
    log_sigmoid(chosen - rejected).neg()
}

/// The same with a margin by which the chosen answer should win, `−log σ(r_w − r_l − m)`.   Touvron 2023, eq. 2
///
/// # Shapes
/// `chosen: [B]`, `rejected: [B]` rewards, `margin: [B]` → `[B]`, in nats
#[must_use]
pub fn bradley_terry_with_margin(chosen: Tensor<1>, rejected: Tensor<1>, margin: Tensor<1>) -> Tensor<1> {
    log_sigmoid(chosen - rejected - margin).neg()
}

/// `(r_w + r_l)²`: the term that, with a small weight, pins down the constant that comparisons leave open.
///   Eisenstein 2023
///
/// # Shapes
/// `chosen: [B]`, `rejected: [B]` rewards → `[B]`
#[must_use]
pub fn centring(chosen: Tensor<1>, rejected: Tensor<1>) -> Tensor<1> {
    (chosen + rejected).square()
}

/// The probability that the model gives to the comparison, `p(y_w ≻ y_l) = σ(r_w − r_l)`.
///
/// # Shapes
/// `chosen: [B]`, `rejected: [B]` rewards → `[B]`
#[must_use]
pub fn preference_prob(chosen: Tensor<1>, rejected: Tensor<1>) -> Tensor<1> {
    sigmoid(chosen - rejected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn number(x: f32) -> Tensor<1> {
        Tensor::from_data([x], &Device::flex())
    }

    #[track_caller]
    fn check(got: Tensor<1>, want: f32) {
        let got: f32 = got.into_scalar();
        assert!((got - want).abs() < 5e-5, "{got} is not {want}");
    }

    #[test]
    fn the_worked_comparisons() {
        // details.md R16
        check(bradley_terry(number(1.0), number(1.0)), std::f32::consts::LN_2);
        check(bradley_terry(number(2.0), number(0.0)), 0.1269);
        check(bradley_terry(number(-100.0), number(0.0)), 100.0);
        check(bradley_terry_with_margin(number(2.0), number(0.0), number(1.0)), 0.3133);
        check(centring(number(2.0), number(0.0)) * 0.01, 0.04);
    }

    #[test]
    fn rewards_ten_thousand_apart_are_ordinary() {
        check(bradley_terry(number(1e4), number(-1e4)), 0.0);
        check(bradley_terry(number(-1e4), number(1e4)), 2e4);
        check(preference_prob(number(-1e4), number(1e4)), 0.0);
    }
}

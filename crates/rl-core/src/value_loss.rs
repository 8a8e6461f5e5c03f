//! What a value function minimises: the squared error, and the two "clipped" forms that libraries mean by one word.
//!
//! Everything is per decision, `[N]` → `[N]`, to be **minimised**. Clipping the value has not been found to help
//! classic control (Andrychowicz 2021); it is here because RLHF code bases use it, in two incompatible forms.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use rl_core::value_loss::{clipped_max, clipped_sb3};
//!
//! let at = |x: f32| Tensor::from_data([x], &Device::flex());
//! // The value has moved by 1 where 0.2 are allowed, away from its target.
//! let max: f32 = clipped_max(at(1.0), at(0.0), at(0.0), 0.2).into_scalar();
//! let sb3: f32 = clipped_sb3(at(1.0), at(0.0), at(0.0), 0.2).into_scalar();
//! assert!((max - 0.5).abs() < 1e-6 && (sb3 - 0.04).abs() < 1e-6);
//! ```

use burn::tensor::{Bool, Tensor};

use crate::hand_gradient::{constant, with_slope};

/// Half the squared error, `½·(V − R)²`.
///
/// # Shapes
/// `value: [N]`, `target: [N]` → `[N]`
#[must_use]
pub fn squared(value: Tensor<1>, target: Tensor<1>) -> Tensor<1> {
    (value - target).square() * 0.5
}

/// Huber's loss of the error `e = V − R`: `½·e²` within ±1, `|e| − ½` beyond, so that no error pulls harder than 1.
///
/// Huber 1964; what Mnih 2015 call clipping the error term to `[−1, 1]`.
///
/// # Shapes
/// `value: [N]`, `target: [N]` → `[N]`
#[must_use]
pub fn huber(value: Tensor<1>, target: Tensor<1>) -> Tensor<1> {
    let error = value - target;
    // ½·c² + c·(e − c) with c = clip(e, −1, 1), whose slope is c on both sides.
    let near = constant(&error).clamp(-1.0, 1.0);
    let value = near.clone().square() * -0.5 + near.clone() * constant(&error);
    with_slope(value, &error, || near)
}

/// Half the larger of the plain and the clipped squared error (OpenAI baselines, CleanRL).
///
/// `½·max((V − R)², (V_clip − R)²)`,   `V_clip = V_old + clip(V − V_old, −c, c)`
///
/// The gradient is `V − R`, and 0 where the clipped error is the larger one.
///
/// # Shapes
/// `value: [N]`, `value_old: [N]`, `target: [N]` → `[N]`
#[must_use]
pub fn clipped_max(value: Tensor<1>, value_old: Tensor<1>, target: Tensor<1>, clip: f64) -> Tensor<1> {
    let (beyond, bound) = beyond_clip(&value, value_old, clip);
    let clipped_error = bound - constant(&target);
    let error = value - target;
    let larger = clipped_error.clone().abs().greater(constant(&error).abs());
    error.mask_where(beyond.bool_and(larger), clipped_error).square() * 0.5
}

/// The squared error of the clipped value, without ½ and without maximum (stable-baselines3).
///
/// `(V_clip − R)²`,   `V_clip = V_old + clip(V − V_old, −c, c)`
///
/// The gradient is `2·(V − R)` inside the clip range and 0 outside, even where the target lies further out.
///
/// # Shapes
/// `value: [N]`, `value_old: [N]`, `target: [N]` → `[N]`
#[must_use]
pub fn clipped_sb3(value: Tensor<1>, value_old: Tensor<1>, target: Tensor<1>, clip: f64) -> Tensor<1> {
    let (beyond, bound) = beyond_clip(&value, value_old, clip);
    (value.mask_where(beyond, bound) - target).square()
}

/// Where `|V − V_old| > c`, and the bound `V_old ± c` on that side.
fn beyond_clip(value: &Tensor<1>, value_old: Tensor<1>, clip: f64) -> (Tensor<1, Bool>, Tensor<1>) {
    let value_old = value_old.inner();
    let step = constant(value) - value_old.clone();
    let beyond = step.clone().abs().greater_scalar(clip);
    (beyond, value_old + step.sign() * clip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    type Loss = fn(Tensor<1>, Tensor<1>, Tensor<1>, f64) -> Tensor<1>;

    fn at(loss: Loss, value: f32, value_old: f32, target: f32) -> (f32, f32) {
        let number = |x: f32| Tensor::<1>::from_data([x], &Device::flex());
        let v = number(value).autodiff().require_grad();
        let y = loss(v.clone(), number(value_old), number(target), 0.2);
        let gradient = v.grad(&y.backward()).unwrap().into_scalar();
        (y.into_scalar(), gradient)
    }

    #[track_caller]
    fn close(got: (f32, f32), want: (f32, f32)) {
        assert!((got.0 - want.0).abs() < 1e-6 && (got.1 - want.1).abs() < 1e-6, "{got:?} is not {want:?}");
    }

    #[test]
    fn a_value_that_overstepped_towards_the_target_is_held_back() {
        close(at(clipped_max, 0.5, 0.0, 1.0), (0.32, 0.0)); // details.md P9
        close(at(clipped_sb3, 0.5, 0.0, 1.0), (0.64, 0.0));
    }

    #[test]
    fn a_value_that_left_its_target_is_pulled_back_by_the_maximum_but_not_by_sb3() {
        close(at(clipped_max, -0.5, 0.0, 1.0), (1.125, -1.5));
        close(at(clipped_sb3, -0.5, 0.0, 1.0), (1.44, 0.0));
    }

    #[test]
    fn inside_the_range_both_are_the_plain_squared_error() {
        close(at(clipped_max, 0.1, 0.0, 1.0), (0.405, -0.9));
        close(at(clipped_sb3, 0.1, 0.0, 1.0), (0.81, -1.8));
        close(at(|v, _, r, _| squared(v, r), 0.1, 0.0, 1.0), (0.405, -0.9));
    }
}

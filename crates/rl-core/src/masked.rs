//! Reductions over the real decisions of a padded batch.
//!
//! A mask **selects**; it does not multiply, since `NaN·0 = NaN`. Every function here replaces what the mask drops
//! before any arithmetic, so a masked slot may hold anything, NaN included, and harms neither value nor gradient. For a
//! formula that is not a plain mean, [`keep`] its inputs first: the gradient of `exp` at a NaN is NaN even where the
//! result is thrown away.
//!
//! `mask` is true on real decisions. Nothing is read back to the host.
//!
//! ```
//! use burn::tensor::{Bool, Device, Tensor};
//! use rl_core::masked::masked_mean;
//!
//! let device = Device::flex();
//! let mask = Tensor::<1, Bool>::from_data([true, true, false], &device);
//! let mean: f32 = masked_mean(Tensor::from_data([1.0, 3.0, f32::NAN], &device), &mask).into_scalar();
//! assert_eq!(mean, 2.0);
//! ```

use burn::tensor::{Bool, Tensor};

use crate::hand_gradient::constant;

/// The values where the mask is true, 0 elsewhere; the gradient stops at the zeros.
///
/// # Shapes
/// `values: […]`, `mask: […]` → `[…]`
#[must_use]
pub fn keep<const D: usize>(values: Tensor<D>, mask: &Tensor<D, Bool>) -> Tensor<D> {
    values.mask_fill(mask.clone().bool_not(), 0.0)
}

/// `Σ_{i: mask} x_i`.
///
/// # Shapes
/// `values: [N]`, `mask: [N]` → `[1]`
#[must_use]
pub fn masked_sum(values: Tensor<1>, mask: &Tensor<1, Bool>) -> Tensor<1> {
    keep(values, mask).sum()
}

/// `Σ_{i: mask} x_i / max(1, n)`, with n the number of real decisions: 0 where there are none.
///
/// # Shapes
/// `values: [N]`, `mask: [N]` → `[1]`
#[must_use]
pub fn masked_mean(values: Tensor<1>, mask: &Tensor<1, Bool>) -> Tensor<1> {
    let n = ones(&values, mask).sum().clamp_min(1.0);
    masked_sum(values, mask) / n
}

/// The population variance `Σ_{i: mask} (x_i − x̄)² / max(1, n)` about the masked mean.
///
/// # Shapes
/// `values: [N]`, `mask: [N]` → `[1]`
#[must_use]
pub fn masked_var(values: Tensor<1>, mask: &Tensor<1, Bool>) -> Tensor<1> {
    let mean = masked_mean(values.clone(), mask);
    masked_mean((keep(values, mask) - mean).square(), mask)
}

/// Advantages of a minibatch with mean 0 and standard deviation 1: `(x − x̄)/(s + 1e-8)`, s with n − 1.
///
/// The normalisation of classic PPO, per minibatch. A single value has no deviation and is returned as it is. Off the
/// tape: advantages are constants.
///
/// # Shapes
/// `values: [N]` → `[N]`
#[must_use]
pub fn standardise(values: Tensor<1>) -> Tensor<1> {
    let values = values.inner();
    let [n] = values.dims();
    if n < 2 {
        return values;
    }
    let centred = values.clone() - values.mean();
    let deviation = (centred.clone().square().sum() / (n - 1) as f64).sqrt();
    centred / (deviation + 1e-8)
}

/// [`standardise`] over the real decisions; 0 on the others.
///
/// # Shapes
/// `values: [N]`, `mask: [N]` → `[N]`
#[must_use]
pub fn masked_standardise(values: Tensor<1>, mask: &Tensor<1, Bool>) -> Tensor<1> {
    let values = keep(values.inner(), mask);
    let n = ones(&values, mask).sum();
    let mean = values.clone().sum() / n.clone().clamp_min(1.0);
    let centred = keep(values.clone() - mean, mask);
    let deviation = (centred.clone().square().sum() / (n.clone() - 1.0).clamp_min(1.0)).sqrt();
    let too_few = n.lower_scalar(2.0).expand(values.dims());
    (centred / (deviation + 1e-8)).mask_where(too_few, values)
}

/// `Σ_{l: mask} x_rl` of each row.
///
/// # Shapes
/// `values: [R, L]`, `mask: [R, L]` → `[R]`
#[must_use]
pub fn row_sums(values: Tensor<2>, mask: &Tensor<2, Bool>) -> Tensor<1> {
    let [rows, _] = values.dims();
    keep(values, mask).sum_dim(1).reshape([rows])
}

/// `Σ_{l: mask} x_rl / max(1, n_r)` of each row, with n_r its real decisions: 0 for an empty row.
///
/// # Shapes
/// `values: [R, L]`, `mask: [R, L]` → `[R]`
#[must_use]
pub fn row_means(values: Tensor<2>, mask: &Tensor<2, Bool>) -> Tensor<1> {
    let n = row_sums(ones(&values, mask), mask).clamp_min(1.0);
    row_sums(values, mask) / n
}

/// 1 on real decisions and 0 elsewhere, in the dtype of `like`, off the tape.
fn ones<const D: usize>(like: &Tensor<D>, mask: &Tensor<D, Bool>) -> Tensor<D> {
    keep(constant(like).ones_like(), mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    const NAN: f32 = f32::NAN;

    fn values<const N: usize>(x: [f32; N]) -> Tensor<1> {
        Tensor::from_data(x, &Device::flex())
    }

    fn mask<const N: usize>(x: [bool; N]) -> Tensor<1, Bool> {
        Tensor::from_data(x, &Device::flex())
    }

    fn numbers(x: Tensor<1>) -> Vec<f32> {
        x.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn a_nan_behind_the_mask_is_never_seen() {
        let x = values([1.0, NAN, 3.0]).autodiff().require_grad();
        let m = mask([true, false, true]);
        let y = masked_mean(x.clone(), &m) + masked_var(x.clone(), &m);
        assert_eq!(numbers(y.clone().inner()), [3.0]);
        assert_eq!(numbers(x.grad(&y.backward()).unwrap()), [-0.5, 0.0, 1.5]);
    }

    #[test]
    fn an_empty_mask_has_mean_zero() {
        assert_eq!(numbers(masked_mean(values([NAN, 5.0]), &mask([false, false]))), [0.0]);
    }

    #[test]
    fn standard_advantages_have_mean_zero_and_unbiased_deviation_one() {
        assert_eq!(numbers(standardise(values([1.0, 2.0, 3.0]))), [-1.0, 0.0, 1.0]);
        assert_eq!(
            numbers(masked_standardise(values([1.0, 2.0, 3.0, 99.0]), &mask([true, true, true, false]))),
            [-1.0, 0.0, 1.0, 0.0]
        );
    }

    #[test]
    fn one_advantage_alone_passes_through() {
        assert_eq!(numbers(standardise(values([3.0]))), [3.0]);
        assert_eq!(numbers(masked_standardise(values([NAN, 3.0]), &mask([false, true]))), [0.0, 3.0]);
    }

    #[test]
    fn equal_advantages_become_zero_and_not_nan() {
        assert_eq!(numbers(standardise(values([2.0, 2.0, 2.0]))), [0.0, 0.0, 0.0]);
    }

    #[test]
    fn rows_are_reduced_over_their_own_decisions() {
        let x = Tensor::<2>::from_data([[1.0, 2.0, NAN], [NAN, NAN, NAN]], &Device::flex());
        let m = Tensor::<2, Bool>::from_data([[true, true, false], [false; 3]], &Device::flex());
        assert_eq!(numbers(row_sums(x.clone(), &m)), [3.0, 0.0]);
        assert_eq!(numbers(row_means(x, &m)), [1.5, 0.0]);
    }
}

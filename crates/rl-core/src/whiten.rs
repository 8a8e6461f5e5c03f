//! Whitening on the host: mean 0 and standard deviation 1 over the values that count.
//!
//! Classic PPO whitens advantages per minibatch, RLHF over the whole rollout and only over real tokens. Masked values
//! are never read, so padding may hold anything, NaN included.
//!
//! ```
//! use rl_core::whiten::{Variance, whiten};
//!
//! let row = [1.0_f64, 2.0, 3.0, f64::NAN];
//! let white = whiten(&row, Some(&[true, true, true, false]), Variance::Unbiased);
//! assert!((white[0] + 1.0).abs() < 1e-6 && white[1] == 0.0 && white[3] == 0.0);
//! ```

use crate::real::Real;

/// Added to the variance under the root, so that equal values divide by 1e-4 and not by 0.
pub const VARIANCE_FLOOR: f64 = 1e-8;

/// What the sum of squared deviations of `n` values is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variance {
    /// Divide by `n`: the variance of these values.
    Biased,
    /// Divide by `n − 1`: an unbiased estimate of the variance of their population.
    Unbiased,
}

/// Number, mean and variance of the values that count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// How many values counted.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their variance.
    pub variance: f64,
}

/// Mean and variance over the unmasked values, or `None` where the variance is undefined: no value, or a single one
/// and [`Variance::Unbiased`].
///
/// `μ = Σ x/n`,   `σ² = Σ (x − μ)²/n` or `/(n − 1)`: two passes, in double precision.
///
/// # Shapes
/// `values: [N]`, `mask: [N]` (`true` counts) or `None` for all; unequal lengths panic.
pub fn moments<F: Real>(values: &[F], mask: Option<&[bool]>, variance: Variance) -> Option<Moments> {
    let counted = || counted(values, mask);
    let count = counted().count();
    let divisor = match variance {
        Variance::Biased => count,
        Variance::Unbiased => count.saturating_sub(1),
    };
    if divisor == 0 {
        return None;
    }
    // Deviations from the first value instead of sums from 0: the mean of equal values is exact.
    let origin = counted().next()?;
    let mean = origin + counted().map(|x| x - origin).sum::<f64>() / count as f64;
    let squares: f64 = counted().map(|x| (x - mean).powi(2)).sum();
    Some(Moments { count, mean, variance: squares / divisor as f64 })
}

fn counted<F: Real>(values: &[F], mask: Option<&[bool]>) -> impl Iterator<Item = f64> {
    if let Some(mask) = mask {
        assert_eq!(values.len(), mask.len(), "one mask bit per value");
    }
    values
        .iter()
        .enumerate()
        .filter(move |&(i, _)| mask.is_none_or(|mask| mask[i]))
        .map(|(_, value)| value.to_f64())
}

/// Shifts and scales the unmasked values to mean 0 and standard deviation 1; masked ones become 0.
///
/// `(x − μ)/√(σ² + 1e-8)`
///
/// Where the variance is undefined (see [`moments`]) the values pass through unchanged: a minibatch of one must not
/// become NaN.
///
/// # Shapes
/// `values: [N]`, `mask: [N]` or `None` → `[N]`; unequal lengths panic.
pub fn whiten<F: Real>(values: &[F], mask: Option<&[bool]>, variance: Variance) -> Vec<F> {
    rescale(values, mask, variance, |x, of| (x - of.mean) / deviation(of))
}

/// Scales the unmasked values to standard deviation 1 about their own mean, which stays; masked ones become 0.
///
/// `(x − μ)/√(σ² + 1e-8) + μ`
///
/// For rewards, whose sign and mean carry meaning. Otherwise as [`whiten`].
///
/// # Shapes
/// `values: [N]`, `mask: [N]` or `None` → `[N]`; unequal lengths panic.
pub fn whiten_keeping_mean<F: Real>(values: &[F], mask: Option<&[bool]>, variance: Variance) -> Vec<F> {
    rescale(values, mask, variance, |x, of| (x - of.mean) / deviation(of) + of.mean)
}

fn deviation(of: Moments) -> f64 {
    (of.variance + VARIANCE_FLOOR).sqrt()
}

fn rescale<F: Real>(
    values: &[F],
    mask: Option<&[bool]>,
    variance: Variance,
    formula: impl Fn(f64, Moments) -> f64,
) -> Vec<F> {
    let moments = moments(values, mask, variance);
    let one = |(i, &value): (usize, &F)| match (mask.is_none_or(|mask| mask[i]), moments) {
        (false, _) => F::ZERO,
        (true, None) => value,
        (true, Some(moments)) => F::from_f64(formula(value.to_f64(), moments)),
    };
    values.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Variance::{Biased, Unbiased};

    const ROW: [f64; 4] = [1.0, 2.0, 3.0, 99.0];
    const REAL: Option<&[bool]> = Some(&[true, true, true, false]);

    #[track_caller]
    fn check(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-4, "{got} is not {want}");
        }
    }

    #[test]
    fn padding_takes_no_part() {
        check(&whiten(&ROW, REAL, Biased), &[-1.2247, 0.0, 1.2247, 0.0]);
        check(&whiten(&[1.0, 2.0, 3.0, f64::NAN], REAL, Biased), &[-1.2247, 0.0, 1.2247, 0.0]);
    }

    #[test]
    fn keeping_the_mean_adds_it_back() {
        check(&whiten_keeping_mean(&ROW, REAL, Biased), &[0.7753, 2.0, 3.2247, 0.0]);
    }

    #[test]
    fn unbiased_divides_by_one_less() {
        check(&whiten(&ROW, REAL, Unbiased), &[-1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn values_without_a_variance_pass_through() {
        assert!(whiten::<f32>(&[], None, Biased).is_empty());
        assert_eq!(whiten(&[7.0_f32], None, Unbiased), [7.0]);
        assert_eq!(whiten(&[7.0_f32, 8.0], Some(&[false, true]), Unbiased), [0.0, 8.0]);
        assert_eq!(whiten(&[7.0_f32, 8.0], Some(&[false, false]), Biased), [0.0, 0.0]);
    }

    #[test]
    fn equal_values_become_exactly_zero() {
        assert_eq!(whiten(&[0.1_f32; 3], None, Unbiased), [0.0; 3]);
        assert_eq!(whiten(&[0.1_f64; 3], None, Biased), [0.0; 3]);
    }

    #[test]
    #[should_panic(expected = "one mask bit per value")]
    fn a_short_mask_is_a_bug() {
        whiten(&[1.0, 2.0], Some(&[true]), Biased);
    }
}

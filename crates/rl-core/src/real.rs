//! The two floating-point types in which host functions compute.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`: the numbers of a host function.
///
/// Training uses `f32`, the golden vectors and the laws `f64`; one body serves both. The trait is
/// sealed, so a formula may rely on IEEE arithmetic.
pub trait Real:
    sealed::Sealed
    + Copy
    + Debug
    + Display
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + Sum
{
    /// The number 0.
    const ZERO: Self;
    /// The number 1.
    const ONE: Self;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// `√self`.
    fn sqrt(self) -> Self;
    /// `exp(self) − 1`, exact near 0.
    fn exp_m1(self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! real {
    ($($float:ty),*) => {$(
        impl Real for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn from_f64(value: f64) -> Self { value as $float }
            fn to_f64(self) -> f64 { f64::from(self) }
            fn sqrt(self) -> Self { self.sqrt() }
            fn exp_m1(self) -> Self { self.exp_m1() }
            fn is_finite(self) -> bool { self.is_finite() }
        }
    )*};
}
real!(f32, f64);

/// `Σ_i a_i·b_i`, accumulated in double precision: parameter vectors have millions of entries.
///
/// # Shapes
/// `a: [P], b: [P]`; unequal lengths panic.
pub fn dot<F: Real>(a: &[F], b: &[F]) -> F {
    assert_eq!(a.len(), b.len(), "a dot product needs vectors of one length");
    F::from_f64(a.iter().zip(b).map(|(&a, &b)| a.to_f64() * b.to_f64()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_in_f32_does_not_lose_small_terms() {
        let mut a = vec![1e-8_f32; 1_000_001];
        a[0] = 1.0;
        assert_eq!(dot(&a, &vec![1.0; a.len()]), 1.01);
    }

    #[test]
    fn exp_m1_is_exact_near_zero() {
        assert_eq!(Real::exp_m1(1e-20_f64), 1e-20);
    }
}

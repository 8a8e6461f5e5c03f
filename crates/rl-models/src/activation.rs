//! Activation functions: burn's own, and a vectorised tanh for networks in host memory.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

/// The non-linearity between two layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `tanh x`: bounded, the usual choice for policy gradients on small observations.
    #[default]
    Tanh,
    /// `max(0, x)`.
    Relu,
}

impl Activation {
    /// `σ(x)` elementwise, in burn's operations.
    pub fn forward(self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Relu => activation::relu(x),
        }
    }

    /// `x ← σ(x)` on host memory, as wide as the processor's vectors are; the same bits on each.
    pub(crate) fn apply(self, x: &mut [f32]) {
        pulp::Arch::new().dispatch(|| match self {
            Activation::Tanh => x.iter_mut().for_each(|x| *x = tanh(*x)),
            Activation::Relu => x.iter_mut().for_each(|x| *x = x.max(0.0)),
        });
    }

    /// `d ← d·σ'(x)` on host memory, from the output `y = σ(x)`: `1 − y²`, or `1[y > 0]`.
    pub(crate) fn pull_back(self, d: &mut [f32], y: &[f32]) {
        pulp::Arch::new().dispatch(|| match self {
            Activation::Tanh => d.iter_mut().zip(y).for_each(|(d, y)| *d *= 1.0 - y * y),
            Activation::Relu => d.iter_mut().zip(y).for_each(|(d, y)| *d = if *y > 0.0 { *d } else { 0.0 }),
        });
    }
}

/// tanh by a rational function of degrees 13 and 6, within 5e-7 of the true value.
///
/// The C library's tanh is a call per element and costs 10 ns; this has no branch, vectorises and
/// costs 0.5 ns (docs/performance.md). NaN stays NaN. Coefficients: the minimax approximation used
/// by the Eigen library (`generic_fast_tanh_float`).
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    const A: [f32; 7] = [
        4.893_524_6e-3,
        6.372_619_3e-4,
        1.485_722_4e-5,
        5.122_297e-8,
        -8.604_672e-11,
        2.000_188e-13,
        -2.760_768_5e-16,
    ];
    const B: [f32; 4] = [4.893_525e-3, 2.268_434_6e-3, 1.185_347_1e-4, 1.198_258_4e-6];
    // Beyond this the nearest f32 is ±1. `clamp` keeps NaN.
    let x = x.clamp(-7.905_311, 7.905_311);
    let s = x * x;
    let p = A[6];
    let p = p * s + A[5];
    let p = p * s + A[4];
    let p = p * s + A[3];
    let p = p * s + A[2];
    let p = p * s + A[1];
    let p = p * s + A[0];
    let q = B[3];
    let q = q * s + B[2];
    let q = q * s + B[1];
    let q = q * s + B[0];
    x * p / q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rational_tanh_is_within_five_e_minus_seven_everywhere() {
        let worst = (-200_000..=200_000)
            .map(|i| i as f32 * 1e-4)
            .map(|x| (tanh(x) as f64 - (x as f64).tanh()).abs())
            .fold(0.0, f64::max);
        assert!(worst < 5e-7, "{worst:e}");
        assert!(tanh(f32::NAN).is_nan());
        assert!(tanh(f32::INFINITY) <= 1.0 && tanh(f32::NEG_INFINITY) >= -1.0);
    }

    #[test]
    fn pull_back_is_the_derivative() {
        for (sigma, xs) in
            [(Activation::Tanh, [-2.0f32, -0.1, 0.5, 3.0]), (Activation::Relu, [-2.0, -0.1, 0.5, 3.0])]
        {
            let (mut up, mut down, mut y, mut d) = (xs.map(|x| x + 1e-2), xs.map(|x| x - 1e-2), xs, [1.0; 4]);
            sigma.apply(&mut up);
            sigma.apply(&mut down);
            sigma.apply(&mut y);
            sigma.pull_back(&mut d, &y);
            for i in 0..4 {
                assert!(((up[i] - down[i]) / 2e-2 - d[i]).abs() < 1e-3, "{sigma:?} at {}", xs[i]);
            }
        }
    }
}

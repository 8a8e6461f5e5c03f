//! Gradients written by hand: a value computed off the autodiff tape, with its derivative attached.
//!
//! First-order autodiff asks one thing of a formula `y(x)`: its value and its slope at the point `x̄` where it was
//! evaluated. The expansion
//!
//! ```text
//! y(x) ≈ y(x̄) + y′(x̄)·(x − x̄)
//! ```
//!
//! has both, exactly, because `x − x̄` is zero. Composing `y` from tensor operations instead would record a tape node
//! for each of them (about 2 µs apiece on the CPU, however few the numbers), and would meet `0·∞` on the way back
//! wherever a logit is −∞. Here `y(x̄)` and `y′(x̄)` are plain numbers in which such cases are written out, and the tape
//! holds a handful of products. The law suite compares every gradient made this way with a central difference.

use burn::tensor::Tensor;

/// The same numbers off the tape: `x̄`.
///
/// (`Tensor::detach` would not do: it keeps `require_grad`, so a detached leaf is tracked again.)
pub(crate) fn constant<const D: usize>(x: &Tensor<D>) -> Tensor<D> {
    x.clone().inner()
}

/// `value + slope·(x − x̄)`: the value, with `∂value_i/∂x_i = slope_i`. Without a tape, just the value.
///
/// # Shapes
/// `value: [N]` plain, `x: [N]`, `slope: [N]` plain → `[N]`
pub(crate) fn with_slope(value: Tensor<1>, x: &Tensor<1>, slope: impl FnOnce() -> Tensor<1>) -> Tensor<1> {
    if x.is_autodiff() { value + (x.clone() - constant(x)) * slope() } else { value }
}

/// `value_i + Σ_k J_ik·δ_ik`, where `δ = x − x̄`: the value of row i, with `∂value_i/∂x_ik = J_ik`.
///
/// # Shapes
/// `value: [N]` plain, `deviation: [N, A]`, `jacobian: [N, A]` plain → `[N]`
pub(crate) fn with_jacobian(value: Tensor<1>, deviation: Tensor<2>, jacobian: Tensor<2>) -> Tensor<1> {
    let [n, _] = deviation.dims();
    value + (deviation * jacobian).sum_dim(1).reshape([n])
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn the_value_is_untouched_and_the_slope_is_the_gradient() {
        let x = Tensor::<1>::from_data([3.0, -1e4], &Device::flex()).autodiff().require_grad();
        let value = Tensor::from_data([9.0, 1e8], &Device::flex());
        let y = with_slope(value.clone(), &x, || Tensor::from_data([6.0, -2e4], &Device::flex()));
        assert_eq!(y.clone().inner().into_data(), value.into_data());
        let gradient = x.grad(&y.sum().backward()).unwrap();
        assert_eq!(gradient.to_data().try_to_vec::<f32>().unwrap(), [6.0, -2e4]);
    }

    #[test]
    fn off_the_tape_the_slope_is_never_computed() {
        let x = Tensor::<1>::from_data([1.0], &Device::flex());
        let y = with_slope(x.clone(), &x, || unreachable!("no tape, no slope"));
        assert_eq!(y.into_scalar::<f32>(), 1.0);
    }
}

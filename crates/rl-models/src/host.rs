//! Elementwise loops on host memory, for networks on CPU devices.
//!
//! burn's CPU backends hand their buffer over and take it back without a copy where it is not
//! shared, so one pass over a slice can do what four operations would (docs/performance.md).

use burn::tensor::{DType, Tensor, TensorData};

/// The tensor's numbers as a row-major buffer of `f32`.
///
/// # Panics
/// If the tensor is not `f32`: host kernels serve single-precision networks only.
pub(crate) fn take<const D: usize>(t: Tensor<D>) -> TensorData {
    assert_eq!(t.dtype(), DType::F32, "host kernels need f32 parameters; use Kernels::Portable");
    t.into_data()
}

/// `t ← f(t)` over the row-major numbers of `t`.
pub(crate) fn map<const D: usize>(t: Tensor<D>, f: impl FnOnce(&mut [f32])) -> Tensor<D> {
    let device = t.device();
    let mut data = take(t);
    f(data.as_mut_slice::<f32>().expect("f32 was asserted"));
    Tensor::from_data(data, &device)
}

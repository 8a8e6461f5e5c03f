//! What the suites of this package share: the devices under test, tensors in double precision, and a gradient checker.

pub mod fuzz;
pub mod small_models;
pub mod token_lesson;
pub mod token_world_vectors;

use std::sync::LazyLock;

use burn::tensor::{DType, Device, Tensor, TensorData};

/// The value of `BURN_DEVICE`, which chooses the device under test.
static CHOSEN: LazyLock<Option<String>> =
    LazyLock::new(|| std::env::var("BURN_DEVICE").ok().map(|name| name.to_lowercase()));

/// The devices that every suite runs on, by name.
///
/// With `BURN_DEVICE` set (`cargo xtask test --device …` sets it) only that one, so the same tests run on a GPU;
/// otherwise every CPU backend that is compiled in. With `BURN_DEVICE=wgpu` on a machine without a graphics adapter
/// there is none, and a line on standard error says so.
#[must_use]
#[allow(deprecated)] // burn will drop ndarray; while it is here, it is tested
pub fn devices() -> Vec<(&'static str, Device)> {
    match CHOSEN.as_deref() {
        #[cfg(feature = "wgpu")]
        Some("wgpu") => wgpu().map(|device| ("wgpu", device)).into_iter().collect(),
        Some(name) => vec![(name, Device::default())],
        None => vec![
            #[cfg(feature = "flex")]
            ("flex", Device::flex()),
            #[cfg(feature = "ndarray")]
            ("ndarray", Device::ndarray()),
        ],
    }
}

/// The default graphics adapter, opened once per process (a second `init` would be an error).
#[cfg(feature = "wgpu")]
fn wgpu() -> Option<Device> {
    static DEVICE: LazyLock<Option<Device>> = LazyLock::new(|| {
        let device = Device::wgpu_options().device_kind(burn::tensor::DeviceKind::DefaultDevice).init();
        device.inspect_err(|error| eprintln!("skipped: no graphics adapter ({error})")).ok()
    });
    DEVICE.clone()
}

/// A plain tensor in double precision.
///
/// # Panics
/// If `shape` does not hold exactly `values`.
#[must_use]
pub fn tensor<const D: usize>(values: &[f64], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (device, DType::F64))
}

/// Every number of a tensor, row after row.
///
/// # Panics
/// If the tensor cannot be read back.
#[must_use]
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.inner().try_into_vec_as::<f64>().expect("a computed tensor can be read back")
}

/// The gradient of `Σ f(x)` in x by autodiff, row after row.
///
/// # Panics
/// If `f` does not depend on its argument.
#[must_use]
pub fn gradient<const D: usize>(f: impl Fn(Tensor<D>) -> Tensor<1>, x: &Tensor<D>) -> Vec<f64> {
    let leaf = x.clone().inner().autodiff().require_grad();
    let tape = f(leaf.clone()).sum().backward();
    numbers(leaf.grad(&tape).expect("the result depends on x"))
}

/// Asserts that the gradient of `Σ f(x)` by autodiff equals the central difference, coordinate by coordinate.
///
/// `∂f/∂x_i ≈ (f(x + h·e_i) − f(x − h·e_i))/2h`, `h = 1e-5·max(1, |x_i|)`, to `1e-6` of `max(1, |∂f/∂x_i|)`. x must be in
/// double precision (see [`tensor`]), and `f` smooth within h of it: keep away from kinks.
///
/// # Panics
/// If a coordinate differs; the message names it and both numbers.
#[track_caller]
pub fn check_gradient<const D: usize>(f: impl Fn(Tensor<D>) -> Tensor<1>, x: &Tensor<D>) {
    assert_eq!(x.dtype(), DType::F64, "a central difference needs double precision");
    let (device, shape) = (x.clone().inner().device(), x.dims());
    let analytic = gradient(&f, x);
    let mut point = numbers(x.clone());
    for i in 0..point.len() {
        let (x_i, h) = (point[i], 1e-5 * point[i].abs().max(1.0));
        let mut at = |x_i: f64| {
            point[i] = x_i;
            numbers(f(tensor(&point, shape, &device))).iter().sum::<f64>()
        };
        let difference = (at(x_i + h) - at(x_i - h)) / (2.0 * h);
        point[i] = x_i;
        let error = (analytic[i] - difference).abs();
        assert!(
            error <= 1e-6 * difference.abs().max(1.0),
            "coordinate {i} of {shape:?}: autodiff says {}, the central difference {difference}",
            analytic[i]
        );
    }
}

/// Whether two numbers differ by no more than `tolerance`, absolutely and relative to the second.
#[must_use]
pub fn close(got: f64, want: f64, tolerance: f64) -> bool {
    (got - want).abs() <= tolerance * want.abs().max(1.0)
}

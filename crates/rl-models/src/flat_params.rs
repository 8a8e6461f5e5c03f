//! All parameters of a network as one vector `[P]`, and back.
//!
//! An optimiser step, a natural-gradient step and a global norm are then one-line formulas, the
//! same on every device, and a checkpoint is three vectors.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};

/// θ: every float parameter in visiting order, flat `[P]`, on the plain device.
pub fn flatten<M: Module>(module: &M) -> Tensor<1> {
    struct Visitor(Vec<Tensor<1>>);
    impl ModuleVisitor for Visitor {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(flat(param.val().inner()));
        }
    }
    let mut visitor = Visitor(Vec::new());
    module.visit(&mut visitor);
    Tensor::cat(visitor.0, 0)
}

/// The number of float parameters `P`.
pub fn count<M: Module>(module: &M) -> usize {
    module.num_params()
}

/// The network with parameters θ. Keeps parameter ids and whether they record gradients.
///
/// # Shapes
/// `theta: [P]`; panics on any other length
pub fn unflatten<M: Module>(module: M, theta: &Tensor<1>) -> M {
    struct Mapper<'a> {
        theta: &'a Tensor<1>,
        at: usize,
    }
    impl ModuleMapper for Mapper<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let (id, old, mapper) = param.consume();
            let (shape, tracked, leaf) = (old.shape(), old.is_autodiff(), old.is_require_grad());
            let n = shape.num_elements();
            let mut new: Tensor<D> = self.theta.clone().narrow(0, self.at, n).reshape(shape);
            self.at += n;
            if tracked {
                new = new.autodiff();
                if leaf {
                    new = new.require_grad();
                }
            }
            Param::from_mapped_value(id, new, mapper)
        }
    }
    let mut mapper = Mapper { theta, at: 0 };
    let module = module.map(&mut mapper);
    assert_eq!(mapper.at, theta.dims()[0], "the flat vector has another length than the parameters");
    module
}

/// ∇_θ loss(module), flat `[P]` on the plain device, by autodiff: the module is lifted for this call only.
pub fn autodiff_gradient<M: Module>(module: &M, loss: impl FnOnce(&M) -> Tensor<1>) -> Tensor<1> {
    let tracked = module.clone().train();
    let mut grads = loss(&tracked).backward();
    flat_grad(&tracked, &mut grads)
}

/// ∇_θ of the last backward pass, flat `[P]` in the order of [`flatten`]; zeros where a parameter
/// took no part.
pub fn flat_grad<M: Module>(module: &M, grads: &mut Gradients) -> Tensor<1> {
    let pieces = grad_pieces(module, grads);
    Tensor::cat(pieces, 0)
}

/// [`flat_grad`] before concatenation: one `[p]` per parameter.
pub(crate) fn grad_pieces<M: Module>(module: &M, grads: &mut Gradients) -> Vec<Tensor<1>> {
    struct Visitor<'a> {
        grads: &'a mut Gradients,
        pieces: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let grad = value.grad_remove(self.grads).unwrap_or_else(|| value.inner().zeros_like());
            self.pieces.push(flat(grad));
        }
    }
    let mut visitor = Visitor { grads, pieces: Vec::new() };
    module.visit(&mut visitor);
    visitor.pieces
}

/// `[…]` → `[p]`, row-major.
pub(crate) fn flat<const D: usize>(t: Tensor<D>) -> Tensor<1> {
    let n = t.shape().num_elements();
    t.reshape([n])
}

/// `g·min(1, max_norm / (‖g‖₂ + 1e-6))` and the norm `‖g‖₂` before clipping, over *all* parameters.
///
/// Nothing is read back: both results stay on the device.   Pascanu et al. 2013, algorithm 1; the
/// 1e-6 is PyTorch's.
///
/// # Shapes
/// `grad: [P]` → (`[P]`, `[1]`)
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use rl_models::flat_params::clip_grad_norm;
///
/// let gradient = Tensor::<1>::from_data([3.0, 4.0], &Device::flex());
/// let (clipped, norm) = clip_grad_norm(gradient, 1.0);
/// assert_eq!(norm.into_scalar::<f32>(), 5.0);
/// assert!((clipped.square().sum().into_scalar::<f32>() - 1.0).abs() < 1e-5);
/// ```
pub fn clip_grad_norm(grad: Tensor<1>, max_norm: f64) -> (Tensor<1>, Tensor<1>) {
    let norm = grad.clone().square().sum().sqrt();
    let scale = (norm.clone() + 1e-6).recip().mul_scalar(max_norm).clamp_max(1.0);
    (grad * scale, norm)
}

/// [`clip_grad_norm`] where there is a limit; without one `g` itself, and its norm.
///
/// # Shapes
/// `grad: [P]` → (`[P]`, `[1]`)
pub fn limit_grad_norm(grad: Tensor<1>, max_norm: Option<f64>) -> (Tensor<1>, Tensor<1>) {
    match max_norm {
        Some(max_norm) => clip_grad_norm(grad, max_norm),
        None => (grad.clone(), grad.square().sum().sqrt()),
    }
}

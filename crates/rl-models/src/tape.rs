//! An MLP's forward pass with what its backward pass needs, as host loops around matrix products.
//!
//! The same numbers as autodiff gives (a test says so), without a graph: on small networks the
//! graph costs more than the arithmetic.

use burn::tensor::{Gradients, Tensor, TensorData};
use rand::Rng;

use crate::flat_params::flat;
use crate::host;
use crate::mlp::Mlp;

/// One forward pass.
pub(crate) struct Tape {
    /// What each layer saw: `x`, then the activations of each hidden layer after dropout.
    inputs: Vec<Tensor<2>>,
    /// Each hidden layer's dropout factors, where dropout is on.
    masks: Vec<Option<Vec<f32>>>,
    /// The last layer's outputs `[R, outputs]`.
    pub(crate) output: Tensor<2>,
}

/// ∇ of a loss of the network's outputs: one flat piece per parameter in visiting order, and what
/// else the loss depends on. Autodiff records from the outputs on; the network is pulled back by hand.
///
/// # Shapes
/// `loss`: `[R, outputs]` → `[1]`
pub(crate) fn gradient(
    mlp: &Mlp,
    x: Tensor<2>,
    noise: &mut dyn Rng,
    loss: impl FnOnce(Tensor<2>) -> Tensor<1>,
) -> (Vec<Tensor<1>>, Gradients) {
    let tape = Tape::record(mlp, x, Some(noise));
    let z = tape.output.clone().autodiff().require_grad();
    let mut grads = loss(z.clone()).backward();
    let d = z.grad_remove(&mut grads).unwrap_or_else(|| tape.output.zeros_like());
    (tape.pull_back(mlp, d), grads)
}

impl Tape {
    /// The forward pass; with `noise`, hidden units are dropped as in training.
    pub(crate) fn record(mlp: &Mlp, x: Tensor<2>, mut noise: Option<&mut dyn Rng>) -> Self {
        let (last, hidden) = mlp.layers.split_last().expect("an MLP has at least one layer");
        let mut inputs = vec![x];
        let mut masks = Vec::new();
        for layer in hidden {
            let x = inputs[inputs.len() - 1].clone();
            let bias = bias(layer);
            let bias = bias.as_slice::<f32>().expect("host::take gives f32");
            let mut mask = None;
            let h = host::map(x.matmul(layer.weight.val()), |z| {
                for row in z.chunks_exact_mut(bias.len()) {
                    row.iter_mut().zip(bias).for_each(|(z, b)| *z += b);
                }
                mlp.activation.apply(z);
                if let (Some(noise), true) = (noise.as_deref_mut(), mlp.dropout > 0.0) {
                    let factors = mlp.dropout_mask(z.len(), noise);
                    z.iter_mut().zip(&factors).for_each(|(z, m)| *z *= m);
                    mask = Some(factors);
                }
            });
            masks.push(mask);
            inputs.push(h);
        }
        let bias = last.bias.as_ref().expect("MLP layers have biases").val();
        let output = inputs[inputs.len() - 1].clone().matmul(last.weight.val()) + bias.unsqueeze();
        Self { inputs, masks, output }
    }

    /// Jᵀ·d: the gradient of `⟨d, output⟩`, one flat piece per parameter in visiting order.
    ///
    /// # Shapes
    /// `d: [R, outputs]`
    pub(crate) fn pull_back(mut self, mlp: &Mlp, d: Tensor<2>) -> Vec<Tensor<1>> {
        let mut pieces = Vec::with_capacity(2 * mlp.layers.len());
        let mut d = d;
        for (i, layer) in mlp.layers.iter().enumerate().rev() {
            // y = x·W + b:   ∂W = xᵀ·d,   ∂b = Σ_rows d,   ∂x = d·Wᵀ
            pieces.push(flat(d.clone().sum_dim(0)));
            pieces.push(flat(self.inputs[i].clone().transpose().matmul(d.clone())));
            if i == 0 {
                break;
            }
            let mut y = host::take(self.inputs.pop().expect("one input per layer"));
            let y = y.as_mut_slice::<f32>().expect("host::take gives f32");
            d = host::map(d.matmul(layer.weight.val().transpose()), |d| {
                if let Some(mask) = &self.masks[i - 1] {
                    // y = m·σ(z): a dropped unit passes nothing back, and σ' needs σ itself.
                    d.iter_mut().zip(mask).for_each(|(d, m)| *d *= m);
                    y.iter_mut().zip(mask).for_each(|(y, m)| *y = if *m > 0.0 { *y / m } else { 0.0 });
                }
                mlp.activation.pull_back(d, y);
            });
        }
        pieces.reverse();
        pieces
    }
}

fn bias(layer: &burn::nn::Linear) -> TensorData {
    host::take(layer.bias.as_ref().expect("MLP layers have biases").val())
}

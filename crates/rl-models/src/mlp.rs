//! The multi-layer perceptron: shape, initialisation, forward pass.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::activation::Activation;
use crate::init::orthogonal;
use crate::tape::Tape;

/// The shape of the networks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpConfig {
    /// Units of each hidden layer; empty is a linear map.
    pub hidden: Vec<usize>,
    /// The non-linearity after each hidden layer.
    pub activation: Activation,
    /// Probability of dropping a hidden unit in training passes, `0 ≤ p < 1`.
    pub dropout: f64,
    /// Which code runs the passes; not part of a run file.
    #[serde(skip)]
    pub kernels: Kernels,
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { hidden: vec![64, 64], activation: Activation::Tanh, dropout: 0.0, kernels: Kernels::Portable }
    }
}

/// Which code runs a network's forward and backward passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kernels {
    /// burn's operations and autodiff: any device, any precision.
    #[default]
    Portable,
    /// burn's matrix products, and one fused loop on host memory for everything between them, with
    /// the backward pass written out: twice as fast on CPU devices in `f32`, pointless elsewhere.
    Host,
}

/// `x → W_k·σ(… σ(W_1·x + b_1) …) + b_k`.
#[derive(Module, Debug)]
pub struct Mlp {
    /// The layers, weights `[in, out]`.
    pub layers: Vec<Linear>,
    #[module(skip)]
    pub(crate) activation: Activation,
    #[module(skip)]
    pub(crate) kernels: Kernels,
    pub(crate) dropout: f64,
}

impl Mlp {
    /// Orthogonal weights, gain √2 in hidden layers and `output_gain` in the last; zero biases.
    ///
    /// Small output gains (0.01) start a policy close to uniform.   Andrychowicz et al. 2021, §3.2
    pub fn new<R: Rng + ?Sized>(
        config: &MlpConfig,
        inputs: usize,
        outputs: usize,
        output_gain: f64,
        rng: &mut R,
        device: &Device,
    ) -> Self {
        let widths: Vec<usize> =
            [inputs].into_iter().chain(config.hidden.iter().copied()).chain([outputs]).collect();
        let last = widths.len() - 2;
        let layers = widths.windows(2).enumerate().map(|(i, w)| {
            let gain = if i == last { output_gain } else { 2f64.sqrt() };
            let weight = TensorData::new(orthogonal(w[0], w[1], gain, rng), [w[0], w[1]]);
            Linear {
                weight: Param::from_data(weight, device),
                bias: Some(Param::from_tensor(Tensor::zeros([w[1]], device))),
            }
        });
        Self {
            layers: layers.collect(),
            activation: config.activation,
            kernels: config.kernels,
            dropout: config.dropout,
        }
    }

    /// The outputs for `R` inputs, without dropout.
    ///
    /// # Shapes
    /// `x: [R, inputs]` → `[R, outputs]`
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        if self.uses_host_kernels() {
            return Tape::record(self, x, None).output;
        }
        let (last, hidden) = self.layers.split_last().expect("an MLP has at least one layer");
        let h = hidden.iter().fold(x, |h, layer| self.activation.forward(layer.forward(h)));
        last.forward(h)
    }

    /// [`Mlp::forward`] with dropout after each hidden layer: a unit is zero with probability `p`
    /// and divided by `1 − p` otherwise (Srivastava et al. 2014, inverted). Masks come from `noise`.
    pub fn forward_in_training(&self, x: Tensor<2>, noise: &mut dyn Rng) -> Tensor<2> {
        let (last, hidden) = self.layers.split_last().expect("an MLP has at least one layer");
        let h =
            hidden.iter().fold(x, |h, layer| self.drop_out(self.activation.forward(layer.forward(h)), noise));
        last.forward(h)
    }

    /// One layer's dropout.
    pub(crate) fn drop_out(&self, h: Tensor<2>, noise: &mut dyn Rng) -> Tensor<2> {
        if self.dropout == 0.0 {
            return h;
        }
        let shape = h.dims();
        let mask = TensorData::new(self.dropout_mask(shape[0] * shape[1], noise), shape);
        let mask = Tensor::from_data(mask, (&h.device(), h.dtype()));
        h * mask
    }

    /// Whether passes run as host loops: asked for, and not under autodiff.
    pub(crate) fn uses_host_kernels(&self) -> bool {
        self.kernels == Kernels::Host && !self.layers[0].weight.is_autodiff()
    }

    /// `n` factors, 0 with probability `p` and `1/(1 − p)` otherwise.
    pub(crate) fn dropout_mask(&self, n: usize, noise: &mut dyn Rng) -> Vec<f32> {
        let keep = (1.0 / (1.0 - self.dropout)) as f32;
        (0..n).map(|_| if noise.random::<f64>() < self.dropout { 0.0 } else { keep }).collect()
    }
}

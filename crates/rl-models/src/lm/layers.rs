//! The parts of a transformer block: norms, rotary positions, attention, feed-forward.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData, activation};
use rand::{Rng, RngExt};

use super::cache::LayerCache;
use super::config::{Architecture, LmConfig};
use super::rope::RopeScaling;

/// `x / √(mean(x²) + ε) · w` (Zhang & Sennrich 2019), or with a bias `(x − mean) / √(var + ε) · w + b`
/// (Ba et al. 2016).
#[derive(Module, Debug)]
pub struct Norm {
    /// Scale `[D]`.
    pub weight: Param<Tensor<1>>,
    /// Shift `[D]`; with it the mean is taken off.
    pub bias: Option<Param<Tensor<1>>>,
    eps: f64,
}

impl Norm {
    /// A norm that does nothing yet.
    pub fn new(config: &LmConfig, device: &Device) -> Self {
        let bias = (config.architecture == Architecture::Gpt2)
            .then(|| Param::from_tensor(Tensor::zeros([config.hidden], device)));
        Self { weight: Param::from_tensor(Tensor::ones([config.hidden], device)), bias, eps: config.norm_eps }
    }

    /// # Shapes
    /// `x: [R, S, D]` → `[R, S, D]`
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = match self.bias {
            Some(_) => x.clone() - x.mean_dim(2),
            None => x,
        };
        let scale = (x.clone().square().mean_dim(2) + self.eps).sqrt().recip();
        let y = x * scale * self.weight.val().unsqueeze();
        match &self.bias {
            Some(bias) => y + bias.val().unsqueeze(),
            None => y,
        }
    }
}

/// Cosines and sines of the rotary angles of positions `0..n`, and their choice for a batch.
#[derive(Debug, Clone)]
pub struct Rotary {
    /// `[n, d/2]` each; afterwards `[R, 1, S, d/2]`.
    cos: Tensor<2>,
    sin: Tensor<2>,
}

/// The angles of one batch, `[R, 1, S, d/2]` each.
#[derive(Debug, Clone)]
pub struct Angles {
    cos: Tensor<4>,
    sin: Tensor<4>,
}

impl Rotary {
    /// Angles `position · f_i`, worked out in double precision.   Su et al. 2021, eq. 34
    pub fn new(
        positions: usize,
        head_dim: usize,
        (base, scaling): (f64, RopeScaling),
        dtype: DType,
        device: &Device,
    ) -> Self {
        let half = head_dim / 2;
        let (frequencies, scale) = scaling.frequencies(head_dim, base);
        let table = |f: fn(f64) -> f64| {
            let angle = |n: usize| (n / half) as f64 * frequencies[n % half];
            let numbers: Vec<f64> = (0..positions * half).map(|n| scale * f(angle(n))).collect();
            Tensor::from_data(
                TensorData::new(numbers, [positions, half]).convert_dtype(dtype),
                (device, dtype),
            )
        };
        Self { cos: table(f64::cos), sin: table(f64::sin) }
    }

    /// The angles at `places` `[R, S]`.
    pub fn at(&self, places: Tensor<2, Int>) -> Angles {
        let [rows, columns] = places.dims();
        let half = self.cos.dims()[1];
        let places = places.reshape([rows * columns]);
        let choose =
            |table: &Tensor<2>| table.clone().select(0, places.clone()).reshape([rows, 1, columns, half]);
        Angles { cos: choose(&self.cos), sin: choose(&self.sin) }
    }
}

impl Angles {
    /// Turns each pair `(x_i, x_{i+d/2})` by its angle.
    ///
    /// # Shapes
    /// `x: [R, H, S, d]` → the same
    pub fn turn(&self, x: Tensor<4>) -> Tensor<4> {
        let half = x.dims()[3] / 2;
        let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
        let (cos, sin) = (self.cos.clone(), self.sin.clone());
        Tensor::cat(vec![a.clone() * cos.clone() - b.clone() * sin.clone(), b * cos + a * sin], 3)
    }
}

/// One block: attention, then feed-forward, each on a normalised copy of the stream and added to it.
#[derive(Module, Debug)]
pub struct Block {
    /// Before the attention.
    pub attention_norm: Norm,
    /// Queries `[D, H·d]`.
    pub q: Linear,
    /// Keys `[D, KV·d]`.
    pub k: Linear,
    /// Values `[D, KV·d]`.
    pub v: Linear,
    /// Out of the heads `[H·d, D]`.
    pub o: Linear,
    /// Before the feed-forward.
    pub mlp_norm: Norm,
    /// The gate of SwiGLU (Shazeer 2020); GELU without.
    pub gate: Option<Linear>,
    /// Into the feed-forward.
    pub up: Linear,
    /// Out of it.
    pub down: Linear,
    heads: usize,
    kv_heads: usize,
}

impl Block {
    /// A block with weights from `Normal(0, 0.02)`.
    pub fn new<R: Rng + ?Sized>(config: &LmConfig, rng: &mut R, device: &Device) -> Self {
        let (d, q, kv) = (config.hidden, config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let mut map = |inputs, outputs, bias| linear(inputs, outputs, bias, rng, device);
        let gated = config.architecture != Architecture::Gpt2;
        Self {
            q: map(d, q, config.qkv_bias),
            k: map(d, kv, config.qkv_bias),
            v: map(d, kv, config.qkv_bias),
            o: map(q, d, config.out_bias),
            gate: gated.then(|| map(d, config.intermediate, config.mlp_bias)),
            up: map(d, config.intermediate, config.mlp_bias),
            down: map(config.intermediate, d, config.mlp_bias),
            attention_norm: Norm::new(config, device),
            mlp_norm: Norm::new(config, device),
            heads: config.heads,
            kv_heads: config.kv_heads,
        }
    }

    /// A block of given parts: its two norms; q, k, v and o; the gate; up and down.
    pub(crate) fn from_parts(
        [attention_norm, mlp_norm]: [Norm; 2],
        [q, k, v, o]: [Linear; 4],
        gate: Option<Linear>,
        [up, down]: [Linear; 2],
        config: &LmConfig,
    ) -> Self {
        let (heads, kv_heads) = (config.heads, config.kv_heads);
        Self { attention_norm, q, k, v, o, mlp_norm, gate, up, down, heads, kv_heads }
    }

    /// The stream after this block.
    ///
    /// # Shapes
    /// `x: [R, S, D]`; `hidden: [R, S, T]`, true where key `T` is out of a query's sight; `T = S` without a cache
    pub fn forward(
        &self,
        x: Tensor<3>,
        angles: Option<&Angles>,
        hidden: &Tensor<3, Bool>,
        cache: Option<&mut LayerCache>,
        dropout: &mut Dropout,
    ) -> Tensor<3> {
        let attended = self.attend(self.attention_norm.forward(x.clone()), angles, hidden, cache);
        let x = x + dropout.apply(attended);
        let h = self.mlp_norm.forward(x.clone());
        let h = match &self.gate {
            Some(gate) => activation::silu(gate.forward(h.clone())) * self.up.forward(h),
            None => gelu_new(self.up.forward(h)),
        };
        x + dropout.apply(self.down.forward(h))
    }

    /// `softmax(q·kᵀ/√d)·v`, each key head serving its group of query heads.   Vaswani et al. 2017, eq. 1
    fn attend(
        &self,
        x: Tensor<3>,
        angles: Option<&Angles>,
        hidden: &Tensor<3, Bool>,
        cache: Option<&mut LayerCache>,
    ) -> Tensor<3> {
        let [rows, s, _] = x.dims();
        let split = |t: Tensor<3>, heads: usize| {
            let d = t.dims()[2] / heads;
            t.reshape([rows, s, heads, d]).swap_dims(1, 2)
        };
        let turn = |t: Tensor<4>| match angles {
            Some(angles) => angles.turn(t),
            None => t,
        };
        let q = turn(split(self.q.forward(x.clone()), self.heads));
        let k = turn(split(self.k.forward(x.clone()), self.kv_heads));
        let v = split(self.v.forward(x), self.kv_heads);
        let (k, v) = match cache {
            Some(cache) => cache.append(k, v),
            None => (k, v),
        };
        let (d, t, group) = (q.dims()[3], k.dims()[2], self.heads / self.kv_heads);
        // The queries of one group are rows of one product: keys are not repeated.
        let q = q.reshape([rows, self.kv_heads, group * s, d]) * (d as f64).sqrt().recip();
        let scores = q.matmul(k.swap_dims(2, 3)).reshape([rows, self.heads, s, t]);
        let hidden = hidden.clone().unsqueeze_dim::<4>(1).expand([rows, self.heads, s, t]);
        let weights = activation::softmax(scores.mask_fill(hidden, -1e30), 3);
        let mixed = weights.reshape([rows, self.kv_heads, group * s, t]).matmul(v);
        let mixed =
            mixed.reshape([rows, self.heads, s, d]).swap_dims(1, 2).reshape([rows, s, self.heads * d]);
        self.o.forward(mixed)
    }
}

/// Zeroes numbers of the stream in training passes; what stays is divided by its chance to stay.
pub struct Dropout<'a> {
    p: f64,
    noise: Option<&'a mut dyn Rng>,
}

impl<'a> Dropout<'a> {
    /// None: what inference sees.
    pub fn off() -> Self {
        Self { p: 0.0, noise: None }
    }

    /// With probability `p`, decided by `noise`.
    pub fn new(p: f64, noise: &'a mut dyn Rng) -> Self {
        Self { p, noise: Some(noise) }
    }

    /// # Shapes
    /// `x: [R, S, D]` → the same
    pub(crate) fn apply(&mut self, x: Tensor<3>) -> Tensor<3> {
        let Some(noise) = self.noise.as_deref_mut().filter(|_| self.p > 0.0) else { return x };
        let (shape, keep) = (x.dims(), (1.0 / (1.0 - self.p)) as f32);
        let factor = |_| if noise.random::<f64>() < self.p { 0.0 } else { keep };
        let factors: Vec<f32> = (0..shape.iter().product()).map(factor).collect();
        let like = (&x.device().inner(), x.dtype());
        x * Tensor::from_data(TensorData::new(factors, shape), like)
    }
}

/// `½x(1 + tanh(√(2/π)·(x + 0.044715x³)))`, GPT-2's GELU.   Hendrycks & Gimpel 2016, §2
fn gelu_new(x: Tensor<3>) -> Tensor<3> {
    let inner = (x.clone() + x.clone().powi_scalar(3) * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
    x * 0.5 * (inner.tanh() + 1.0)
}

/// A linear map with weights from `Normal(0, 0.02)` and a zero bias.
pub(crate) fn linear<R: Rng + ?Sized>(
    inputs: usize,
    outputs: usize,
    bias: bool,
    rng: &mut R,
    device: &Device,
) -> Linear {
    Linear {
        weight: Param::from_tensor(normal([inputs, outputs], rng, device)),
        bias: bias.then(|| Param::from_tensor(Tensor::zeros([outputs], device))),
    }
}

/// Numbers from `Normal(0, 0.02)`, GPT-2's initialisation.
pub(crate) fn normal<R: Rng + ?Sized>(shape: [usize; 2], rng: &mut R, device: &Device) -> Tensor<2> {
    let law = rand_distr::Normal::new(0.0f32, 0.02).expect("a positive spread");
    let numbers: Vec<f32> = (0..shape[0] * shape[1]).map(|_| rng.sample(law)).collect();
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

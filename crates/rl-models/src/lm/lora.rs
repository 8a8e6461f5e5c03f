//! Low-rank adapters: a frozen model, and small trained corrections of its linear maps.
//!
//! ```text
//! W' = W + (α/r)·A·B        A: [in, r], B: [r, out], B = 0 at the start
//! ```
//!
//! Hu et al. 2022, *LoRA*, §4.1 (whose B·A acts from the left). The corrected maps are computed once per pass, so that
//! everything a [`Transformer`] does is done by the same code, and saving the merged model needs no adapter format.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rl_core::dist::Categorical;
use serde::{Deserialize, Serialize};

use super::layers::Block;
use super::transformer::Transformer;
use crate::sampler::{Response, Sampler, Sampling};
use crate::tokens::Tokens;
use crate::traits::Policy;

/// A causal language model that learns, whole or through adapters.
pub trait LanguageModel: Policy<Obs = Tokens, Dist = Categorical> + Sampler {
    /// The model that computes, as it is now.
    fn whole(&self) -> Transformer;
}

impl LanguageModel for Transformer {
    fn whole(&self) -> Transformer {
        self.clone()
    }
}

/// The settings of adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoraConfig {
    /// r, the rank of a correction.
    pub rank: usize,
    /// α: corrections count α/r.
    pub alpha: f64,
    /// Which maps are corrected.
    pub targets: LoraTargets,
}

impl Default for LoraConfig {
    fn default() -> Self {
        Self { rank: 8, alpha: 16.0, targets: LoraTargets::All }
    }
}

/// Which linear maps of each block have adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoraTargets {
    /// Queries and values, as in the paper.
    QueryValue,
    /// Queries, keys, values, and the way out of the heads.
    Attention,
    /// Those and the feed-forward.   Dettmers et al. 2023, §4
    All,
}

impl LoraTargets {
    /// The maps of a block, in a fixed order.
    fn maps(self, block: &mut Block) -> Vec<&mut Linear> {
        let Block { q, k, v, o, gate, up, down, .. } = block;
        match self {
            Self::QueryValue => vec![q, v],
            Self::Attention => vec![q, k, v, o],
            Self::All => [q, k, v, o].into_iter().chain(gate.as_mut()).chain([up, down]).collect(),
        }
    }
}

/// The correction of one map.
#[derive(Module, Debug)]
pub struct Adapter {
    /// Into the low rank `[in, r]`.
    pub a: Param<Tensor<2>>,
    /// Out of it `[r, out]`.
    pub b: Param<Tensor<2>>,
}

/// A frozen model with adapters; its parameters are the adapters' alone.
#[derive(Module, Debug)]
pub struct LoraTransformer {
    /// Of each block in order, of each of its target maps.
    pub adapters: Vec<Adapter>,
    #[module(skip)]
    base: Transformer,
    #[module(skip)]
    config: LoraConfig,
}

impl LoraTransformer {
    /// Adapters that correct nothing yet: `A` from `U(−1/√in, 1/√in)`, `B = 0`.
    ///
    /// # Panics
    /// If the rank is 0.
    pub fn new<R: Rng + ?Sized>(base: Transformer, config: LoraConfig, rng: &mut R) -> Self {
        assert!(config.rank > 0, "adapters of rank 0 learn nothing");
        let device: Device = base.embedding.val().device();
        let dtype = base.embedding.val().dtype();
        let mut adapter = |map: &mut Linear| {
            let ([inputs, outputs], r) = (map.weight.val().dims(), config.rank);
            let edge = (inputs as f64).sqrt().recip();
            let a: Vec<f64> = (0..inputs * r).map(|_| rng.random_range(-edge..edge)).collect();
            let a = TensorData::new(a, [inputs, r]).convert_dtype(dtype);
            Adapter {
                a: Param::from_tensor(Tensor::from_data(a, (&device, dtype))),
                b: Param::from_tensor(Tensor::zeros([r, outputs], (&device, dtype))),
            }
        };
        let mut blocks = base.blocks.clone();
        let adapters =
            blocks.iter_mut().flat_map(|block| config.targets.maps(block)).map(&mut adapter).collect();
        Self { adapters, base, config }
    }

    /// The frozen model: the reference of whatever is learnt.
    pub fn base(&self) -> &Transformer {
        &self.base
    }
}

impl LanguageModel for LoraTransformer {
    /// With every correction added to its map.
    fn whole(&self) -> Transformer {
        let mut model = self.base.clone();
        let scale = self.config.alpha / self.config.rank as f64;
        let maps = model.blocks.iter_mut().flat_map(|block| self.config.targets.maps(block));
        for (map, Adapter { a, b }) in maps.zip(&self.adapters) {
            let (id, weight, mapper) = map.weight.clone().consume();
            let corrected = weight + a.val().matmul(b.val()) * scale;
            map.weight = Param::from_mapped_value(id, corrected, mapper);
        }
        model
    }
}

impl Policy for LoraTransformer {
    type Obs = Tokens;
    type Dist = Categorical;

    fn policy(&self, tokens: &Tokens) -> Categorical {
        self.whole().policy(tokens)
    }

    fn policy_in_training(&self, tokens: &Tokens, noise: &mut dyn Rng) -> Categorical {
        self.whole().policy_in_training(tokens, noise)
    }
}

impl Sampler for LoraTransformer {
    fn respond(&self, prompts: &[&[u32]], rngs: &mut [ChaCha8Rng], how: &Sampling) -> Vec<Response> {
        self.whole().respond(prompts, rngs, how)
    }
}

//! What the families call their tensors, and how they lay them out.
//!
//! Llama and Qwen2 store a linear map as `[out, in]`, GPT-2 as `[in, out]` with q, k and v side by side in one; here a
//! map is `[in, out]` and q, k and v are three.

use std::collections::BTreeMap;

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};

use super::{HfError, Weights};
use crate::lm::config::{Architecture, LmConfig, Positions};
use crate::lm::layers::{Block, Norm};
use crate::lm::transformer::Transformer;

/// Where each part's name stands, by family.
struct Names {
    embedding: &'static str,
    positions: &'static str,
    block: &'static str,
    norm: &'static str,
}

const LLAMA: Names = Names {
    embedding: "model.embed_tokens.weight",
    positions: "",
    block: "model.layers.",
    norm: "model.norm",
};
const GPT2: Names = Names {
    embedding: "transformer.wte.weight",
    positions: "transformer.wpe.weight",
    block: "transformer.h.",
    norm: "transformer.ln_f",
};

fn names(config: &LmConfig) -> &'static Names {
    if config.architecture == Architecture::Gpt2 { &GPT2 } else { &LLAMA }
}

/// The model whose tensors `weights` holds; takes them all.
pub(super) fn assemble(
    config: LmConfig,
    weights: &mut Weights,
    device: &Device,
) -> Result<Transformer, HfError> {
    let (v, d, names) = (config.vocabulary, config.hidden, names(&config));
    let mut reader = Reader { config: &config, weights, device };
    let embedding = Param::from_tensor(reader.weights.matrix(names.embedding, [v, d], device)?);
    let positions = match config.positions {
        Positions::Learned => {
            let shape = [config.max_positions, d];
            Some(Param::from_tensor(reader.weights.matrix(names.positions, shape, device)?))
        }
        Positions::Rotary { .. } => None,
    };
    let blocks = (0..config.layers).map(|i| reader.block(&format!("{}{i}", names.block)));
    let blocks = blocks.collect::<Result<_, _>>()?;
    let norm = reader.norm(names.norm)?;
    let head = match config.tied {
        true => None,
        false => Some(Param::from_tensor(weights.matrix("lm_head.weight", [v, d], device)?)),
    };
    // Buffers that some versions of transformers wrote beside the weights, and a tied head written out.
    let tied = config.tied;
    weights.forget(|name| {
        name.ends_with(".attn.bias")
            || name.ends_with(".attn.masked_bias")
            || name.ends_with(".rotary_emb.inv_freq")
            || (tied && name == "lm_head.weight")
    });
    Ok(Transformer::from_parts(embedding, positions, blocks, norm, head, config))
}

struct Reader<'a> {
    config: &'a LmConfig,
    weights: &'a mut Weights,
    device: &'a Device,
}

impl Reader<'_> {
    fn norm(&mut self, name: &str) -> Result<Norm, HfError> {
        let mut norm = Norm::new(self.config, self.device);
        let d = self.config.hidden;
        norm.weight = Param::from_tensor(self.weights.vector(&format!("{name}.weight"), d, self.device)?);
        if norm.bias.is_some() {
            norm.bias =
                Some(Param::from_tensor(self.weights.vector(&format!("{name}.bias"), d, self.device)?));
        }
        Ok(norm)
    }

    /// A map stored as `[out, in]`.
    fn transposed(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
        bias: bool,
    ) -> Result<Linear, HfError> {
        let weight = self.weights.matrix(&format!("{name}.weight"), [outputs, inputs], self.device)?;
        let bias =
            bias.then(|| self.weights.vector(&format!("{name}.bias"), outputs, self.device)).transpose()?;
        Ok(map(contiguous(weight.transpose()), bias))
    }

    /// A map stored as `[in, out]`.
    fn straight(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear, HfError> {
        let weight = self.weights.matrix(&format!("{name}.weight"), [inputs, outputs], self.device)?;
        let bias = self.weights.vector(&format!("{name}.bias"), outputs, self.device)?;
        Ok(map(weight, Some(bias)))
    }

    fn block(&mut self, at: &str) -> Result<Block, HfError> {
        let config = self.config;
        let (d, m) = (config.hidden, config.intermediate);
        let (wide, narrow) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        if config.architecture == Architecture::Gpt2 {
            let fused = self.straight(&format!("{at}.attn.c_attn"), d, 3 * d)?;
            let part = |i: usize| {
                let weight = contiguous(fused.weight.val().narrow(1, i * d, d));
                let bias = fused.bias.as_ref().map(|bias| bias.val().narrow(0, i * d, d));
                map(weight, bias)
            };
            return Ok(Block::from_parts(
                [self.norm(&format!("{at}.ln_1"))?, self.norm(&format!("{at}.ln_2"))?],
                [part(0), part(1), part(2), self.straight(&format!("{at}.attn.c_proj"), d, d)?],
                None,
                [
                    self.straight(&format!("{at}.mlp.c_fc"), d, m)?,
                    self.straight(&format!("{at}.mlp.c_proj"), m, d)?,
                ],
                config,
            ));
        }
        let (qkv, out, mlp) = (config.qkv_bias, config.out_bias, config.mlp_bias);
        Ok(Block::from_parts(
            [
                self.norm(&format!("{at}.input_layernorm"))?,
                self.norm(&format!("{at}.post_attention_layernorm"))?,
            ],
            [
                self.transposed(&format!("{at}.self_attn.q_proj"), d, wide, qkv)?,
                self.transposed(&format!("{at}.self_attn.k_proj"), d, narrow, qkv)?,
                self.transposed(&format!("{at}.self_attn.v_proj"), d, narrow, qkv)?,
                self.transposed(&format!("{at}.self_attn.o_proj"), wide, d, out)?,
            ],
            Some(self.transposed(&format!("{at}.mlp.gate_proj"), d, m, mlp)?),
            [
                self.transposed(&format!("{at}.mlp.up_proj"), d, m, mlp)?,
                self.transposed(&format!("{at}.mlp.down_proj"), m, d, mlp)?,
            ],
            config,
        ))
    }
}

fn map(weight: Tensor<2>, bias: Option<Tensor<1>>) -> Linear {
    Linear { weight: Param::from_tensor(weight), bias: bias.map(Param::from_tensor) }
}

/// The same numbers in row-major order, so that products run over memory in order.
fn contiguous(t: Tensor<2>) -> Tensor<2> {
    let device = t.device();
    Tensor::from_data(t.into_data(), &device)
}

/// Numbers and shape of a tensor, by name.
type Tensors = BTreeMap<String, (Vec<f32>, Vec<usize>)>;

/// The tensors of a folder for `model`.
pub(super) fn disassemble(model: &Transformer) -> Tensors {
    let (config, names) = (model.config(), names(model.config()));
    let mut tensors = Tensors::new();
    put(&mut tensors, names.embedding, model.embedding.val());
    if let Some(positions) = &model.positions {
        put(&mut tensors, names.positions, positions.val());
    }
    for (i, block) in model.blocks.iter().enumerate() {
        let at = format!("{}{i}", names.block);
        match config.architecture {
            Architecture::Gpt2 => put_gpt2(&mut tensors, &at, block),
            _ => put_llama(&mut tensors, &at, block),
        }
    }
    put_norm(&mut tensors, names.norm, &model.norm);
    if let Some(head) = &model.head {
        put(&mut tensors, "lm_head.weight", head.val());
    }
    tensors
}

fn put<const D: usize>(tensors: &mut Tensors, name: &str, t: Tensor<D>) {
    let data = t.inner().into_data();
    let shape = data.shape().to_vec();
    tensors.insert(name.to_owned(), (data.try_into_vec_as().expect("floats convert to f32"), shape));
}

fn put_norm(tensors: &mut Tensors, name: &str, norm: &Norm) {
    put(tensors, &format!("{name}.weight"), norm.weight.val());
    if let Some(bias) = &norm.bias {
        put(tensors, &format!("{name}.bias"), bias.val());
    }
}

fn put_map(tensors: &mut Tensors, name: &str, weight: Tensor<2>, bias: Option<Tensor<1>>) {
    put(tensors, &format!("{name}.weight"), weight);
    if let Some(bias) = bias {
        put(tensors, &format!("{name}.bias"), bias);
    }
}

fn put_llama(tensors: &mut Tensors, at: &str, block: &Block) {
    let mut transposed = |name: &str, map: &Linear| {
        let bias = map.bias.as_ref().map(Param::val);
        put_map(tensors, &format!("{at}.{name}"), map.weight.val().transpose(), bias);
    };
    transposed("self_attn.q_proj", &block.q);
    transposed("self_attn.k_proj", &block.k);
    transposed("self_attn.v_proj", &block.v);
    transposed("self_attn.o_proj", &block.o);
    transposed("mlp.gate_proj", block.gate.as_ref().expect("Llama's feed-forward is gated"));
    transposed("mlp.up_proj", &block.up);
    transposed("mlp.down_proj", &block.down);
    put_norm(tensors, &format!("{at}.input_layernorm"), &block.attention_norm);
    put_norm(tensors, &format!("{at}.post_attention_layernorm"), &block.mlp_norm);
}

fn put_gpt2(tensors: &mut Tensors, at: &str, block: &Block) {
    let bias = |map: &Linear| map.bias.as_ref().expect("GPT-2's maps have biases").val();
    let qkv = [&block.q, &block.k, &block.v];
    let weight = Tensor::cat(qkv.map(|map| map.weight.val()).to_vec(), 1);
    put_map(tensors, &format!("{at}.attn.c_attn"), weight, Some(Tensor::cat(qkv.map(bias).to_vec(), 0)));
    for (name, map) in [("attn.c_proj", &block.o), ("mlp.c_fc", &block.up), ("mlp.c_proj", &block.down)] {
        put_map(tensors, &format!("{at}.{name}"), map.weight.val(), Some(bias(map)));
    }
    put_norm(tensors, &format!("{at}.ln_1"), &block.attention_norm);
    put_norm(tensors, &format!("{at}.ln_2"), &block.mlp_norm);
}

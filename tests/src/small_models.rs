//! Small random language models of each family, for laws and for other libraries to read.

use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_models::flat_params::{flatten, unflatten};
use rl_models::lm::{Architecture, LmConfig, Positions, Transformer};

/// Their vocabulary.
pub const V: usize = 17;

/// One small shape of each family, Llama, Qwen2 and GPT-2, with tied and untied heads and grouped queries.
#[must_use]
pub fn shapes() -> [LmConfig; 3] {
    let llama = LmConfig { max_positions: 32, ..LmConfig::llama(V, 16, 2, 4, 2) };
    let qwen = LmConfig { architecture: Architecture::Qwen2, qkv_bias: true, tied: false, ..llama.clone() };
    let gpt = LmConfig {
        architecture: Architecture::Gpt2,
        positions: Positions::Learned,
        kv_heads: 4,
        qkv_bias: true,
        out_bias: true,
        mlp_bias: true,
        ..llama.clone()
    };
    [llama, qwen, gpt]
}

/// A model whose every parameter is random, biases and norms too, large enough that attention matters.
#[must_use]
pub fn model(config: &LmConfig, seed: u64) -> Transformer {
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let model = Transformer::new(config.clone(), &mut rng, &device);
    let theta: Vec<f32> = (0..flatten(&model).dims()[0]).map(|_| rng.random_range(-0.5..0.5)).collect();
    let n = theta.len();
    unflatten(model, &Tensor::from_data(TensorData::new(theta, [n]), &device))
}

//! Causal language models: one transformer for the common open families, their files, and how they write and score.
//!
//! | family | norm | positions | feed-forward | biases |
//! |---|---|---|---|---|
//! | Llama, SmolLM, TinyStories | RMS | rotary | SwiGLU | none, or attention |
//! | Qwen2 | RMS | rotary | SwiGLU | q, k, v |
//! | GPT-2 | layer | learned | GELU (tanh) | all |

pub mod actor_critic;
pub mod cache;
pub mod config;
pub mod generate;
pub mod hf;
pub mod layers;
pub mod lora;
pub mod reward_model;
pub mod rope;
pub mod score;
pub mod transformer;

pub use actor_critic::LmActorCritic;
pub use cache::KvCache;
pub use config::{Architecture, LmConfig, Positions};
pub use generate::{Generated, Generation, generate};
pub use hf::{FloatFormat, HfError, NonFinite};
pub use lora::{LanguageModel, LoraConfig, LoraTargets, LoraTransformer};
pub use reward_model::RewardModel;
pub use rope::RopeScaling;
pub use score::{TokenScores, score};
pub use transformer::Transformer;

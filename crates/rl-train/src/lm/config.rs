//! `[start]` and `[corpus]`: which language model a run begins with, and which texts it learns.

use rl_models::lm::{self, LoraConfig};
use rl_models::text::Units;
use serde::{Deserialize, Serialize};

use crate::config::error::ConfigError;
use crate::config::in_range;
use crate::paths;

/// `[start]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartConfig {
    /// Where the model comes from.
    pub from: Start,
    /// Chance of zeroing a number in training passes.
    pub dropout: f64,
    /// Low-rank adapters on a frozen model; absent is that the whole model learns.
    pub lora: Option<LoraConfig>,
}

/// Where a language model comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Start {
    /// A Hugging Face folder: config.json, model.safetensors, tokenizer.json.
    Folder(Folder),
    /// Random weights, and a tokenizer of the run's own text.
    Scratch(Shape),
}

impl Default for Start {
    fn default() -> Self {
        Self::Scratch(Shape::default())
    }
}

/// A model's folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Its place; `$NAME` is a variable of the environment.
    pub path: String,
}

/// A small Llama.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// What a token is.
    pub units: Units,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Tokens it can look back on.
    pub context: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { units: Units::Words, hidden: 128, layers: 2, heads: 4, kv_heads: 4, context: 256 }
    }
}

impl Shape {
    /// The model's config for a tokenizer of this many tokens.
    pub fn llama(&self, vocabulary: usize) -> lm::LmConfig {
        let config = lm::LmConfig::llama(vocabulary, self.hidden, self.layers, self.heads, self.kv_heads);
        lm::LmConfig { max_positions: self.context, ..config }
    }
}

impl StartConfig {
    /// # Errors
    /// Names the first setting that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        in_range("start.dropout", "[0, 1)", self.dropout, (0.0..1.0).contains(&self.dropout))?;
        if let Some(LoraConfig { rank, alpha, .. }) = self.lora {
            in_range("start.lora.rank", "[1, 65536]", rank as f64, (1..=65_536).contains(&rank))?;
            in_range("start.lora.alpha", "(0, ∞)", alpha, alpha > 0.0 && alpha.is_finite())?;
        }
        let Start::Scratch(shape) = &self.from else { return Ok(()) };
        let counted = |key, got: usize| in_range(key, "[1, 65536]", got as f64, (1..=65_536).contains(&got));
        counted("start.from.hidden", shape.hidden)?;
        counted("start.from.layers", shape.layers)?;
        counted("start.from.heads", shape.heads)?;
        counted("start.from.kv_heads", shape.kv_heads)?;
        counted("start.from.context", shape.context)?;
        let wrong = |key: &str, what: String| Err(ConfigError::Value { key: key.into(), what });
        let Shape { hidden, heads, kv_heads, .. } = *shape;
        if !hidden.is_multiple_of(2 * heads) {
            return wrong("start.from.hidden", format!("{hidden} is no multiple of 2 · {heads} heads"));
        }
        if !heads.is_multiple_of(kv_heads) {
            return wrong("start.from.kv_heads", format!("{kv_heads} does not divide {heads} heads"));
        }
        Ok(())
    }
}

/// `[corpus]`: the last `eval.episodes` rows are never learnt; an evaluation is on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CorpusConfig {
    /// The built-in stories, each a row.
    Stories(StoriesConfig),
    /// Text, packed: rows of `algo.max_tokens`, each text opened by BOS and closed by EOS.
    Text(FileConfig),
    /// Prompts with responses, of which the responses count.
    Responses(FileConfig),
}

impl Default for CorpusConfig {
    fn default() -> Self {
        Self::Stories(StoriesConfig::default())
    }
}

impl StartConfig {
    /// # Errors
    /// If its folder is not there.
    pub fn check_paths(&self) -> Result<(), ConfigError> {
        match &self.from {
            Start::Folder(folder) => paths::existing("start.from.path", &folder.path).map(|_| ()),
            Start::Scratch(_) => Ok(()),
        }
    }
}

impl CorpusConfig {
    /// # Errors
    /// If its file is not there.
    pub fn check_paths(&self) -> Result<(), ConfigError> {
        match self {
            Self::Text(of) | Self::Responses(of) => paths::existing("corpus.path", &of.path).map(|_| ()),
            Self::Stories(_) => Ok(()),
        }
    }
}

/// The built-in stories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoriesConfig {
    /// How many.
    pub stories: usize,
    /// Seed of the stories; the same for every training seed.
    pub seed: u64,
}

impl Default for StoriesConfig {
    fn default() -> Self {
        Self { stories: 20_000, seed: 1 }
    }
}

/// A file of examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// Text: any file, its texts separated by `<|endoftext|>`, or JSON lines with `text`. Responses: JSON lines with
    /// `prompt` and `response`. `$NAME` is a variable of the environment.
    pub path: String,
}

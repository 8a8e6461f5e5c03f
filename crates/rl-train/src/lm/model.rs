//! A language model with its tokenizer: where it comes from, and the folder it is left in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rl_models::lm::{FloatFormat, Transformer};
use rl_models::text::TextTokenizer;

use super::config::{Folder, Start, StartConfig};
use crate::config::error::ConfigError;
use crate::paths;

/// What transformers keeps of a tokenizer beside `tokenizer.json`.
const TOKENIZER_FILES: [&str; 8] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
];

/// What turns text into tokens, and the folder it came from, if it did.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    /// The tokenizer.
    pub tokenizer: TextTokenizer,
    folder: Option<PathBuf>,
}

/// The model that a run begins with.
///
/// `texts` are the run's, of which a tokenizer from scratch is made.
///
/// # Errors
/// [`ConfigError`] if the folder holds no such model.
pub fn begin<'a>(
    config: &StartConfig,
    texts: impl Iterator<Item = &'a str>,
    rng: &mut ChaCha8Rng,
    device: &Device,
) -> Result<(Transformer, Vocabulary)> {
    let (model, vocabulary) = match &config.from {
        Start::Folder(Folder { path }) => {
            let path = &paths::existing("start.from.path", path)?;
            let no_model = |error: &dyn std::fmt::Display| ConfigError::Value {
                key: "start.from.path".into(),
                what: format!("no model in `{}`: {error}", path.display()),
            };
            let model = Transformer::load(path, device).map_err(|e| no_model(&e))?;
            let tokenizer = TextTokenizer::load(path).map_err(|e| no_model(&e))?;
            (model, Vocabulary { tokenizer, folder: Some(path.clone()) })
        }
        Start::Scratch(shape) => {
            let tokenizer = TextTokenizer::from_scratch(shape.units, texts);
            let model = Transformer::new(shape.llama(tokenizer.vocabulary()), rng, device);
            (model, Vocabulary { tokenizer, folder: None })
        }
    };
    Ok((model.with_dropout(config.dropout), vocabulary))
}

impl Vocabulary {
    /// Writes model and tokenizer into `folder`, for `rl-train generate` and for transformers.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, model: &Transformer, folder: &Path) -> Result<()> {
        model.save(folder, FloatFormat::F32)?;
        let Some(from) = &self.folder else {
            return Ok(self.tokenizer.save(folder)?);
        };
        for name in TOKENIZER_FILES {
            let source = from.join(name);
            if source.is_file() {
                let what = || format!("cannot copy `{}`", source.display());
                fs::copy(&source, folder.join(name)).with_context(what)?;
            }
        }
        Ok(())
    }
}

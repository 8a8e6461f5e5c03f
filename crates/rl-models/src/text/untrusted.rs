//! A stranger's `tokenizer.json`: bounded, and unable to end the program or to cut, fill or swell a text.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::lm::HfError;
use crate::lm::hf::files;

/// How often longer its replacements may make a text.
const MOST_GROWTH: usize = 4096;

/// A `tokenizer.json` of the tokenizers library.
///
/// Padding and truncation that the file asks for are off: a text has the tokens it has. A panic of the library, which
/// a broken file can cause, is an error here.
#[derive(Debug, Clone)]
pub struct HfTokenizer {
    inner: Tokenizer,
    /// Text of the special tokens, the longest first.
    specials: Vec<String>,
    /// The same tokenizer, to which special tokens are text; made when first needed.
    plain: OnceLock<Box<Tokenizer>>,
}

/// The parts of the file that rewrite text.
#[derive(Deserialize)]
struct Rewriters {
    normalizer: Option<Value>,
    decoder: Option<Value>,
}

impl HfTokenizer {
    /// The tokenizer in the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is too large, is no tokenizer, or would swell a text without bound.
    pub(super) fn load(path: &Path) -> Result<Self, HfError> {
        Self::parse(&files::read(path, files::MOST_TOKENIZER_BYTES)?)
            .map_err(|what| HfError::file(path, what))
    }

    /// The tokenizer that the text of a `tokenizer.json` describes.
    ///
    /// # Errors
    /// As a sentence, what is wrong with it.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let rewriters: Rewriters = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        for part in [rewriters.normalizer, rewriters.decoder].into_iter().flatten() {
            let growth = growth(&part);
            if growth > MOST_GROWTH {
                return Err(format!("its replacements may make a text {growth} times as long"));
            }
        }
        let mut inner = guarded(|| Tokenizer::from_bytes(json))?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| e.to_string())?;
        let added = inner.get_added_tokens_decoder();
        let mut specials: Vec<String> = added
            .into_values()
            .filter(|it| it.special && !it.content.is_empty())
            .map(|it| it.content)
            .collect();
        specials.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        Ok(Self { inner, specials, plain: OnceLock::new() })
    }

    /// Tokens of `text`; what spells a special token is that token.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, HfError> {
        encode(&self.inner, text)
    }

    /// Tokens of `text`; what spells a special token is text like any other.
    pub(super) fn encode_text(&self, text: &str) -> Result<Vec<u32>, HfError> {
        if !self.specials.iter().any(|special| text.contains(special)) {
            return self.encode(text);
        }
        let plain = self.plain.get_or_init(|| {
            let mut plain = self.inner.clone();
            plain.set_encode_special_tokens(true);
            Box::new(plain)
        });
        encode(plain, text)
    }

    pub(super) fn decode(&self, tokens: &[u32], skip_special: bool) -> Result<String, HfError> {
        guarded(|| self.inner.decode(tokens, skip_special)).map_err(HfError::Text)
    }

    /// The file's text.
    pub(super) fn json(&self) -> Result<String, HfError> {
        self.inner.to_string(true).map_err(|error| HfError::Text(error.to_string()))
    }

    /// Tokens, special ones included.
    pub(super) fn vocabulary(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    pub(super) fn token(&self, text: &str) -> Option<u32> {
        self.inner.token_to_id(text)
    }

    pub(super) fn piece(&self, token: u32) -> Option<String> {
        self.inner.id_to_token(token)
    }

    /// Text of the special tokens, the longest first.
    pub(super) fn specials(&self) -> &[String] {
        &self.specials
    }
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, HfError> {
    guarded(|| tokenizer.encode(text, false)).map(|it| it.get_ids().to_vec()).map_err(HfError::Text)
}

/// What `call` returns; its panic as an error.
fn guarded<T, E: ToString>(call: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the tokenizer is broken: the library that runs it gave up".into()),
    }
}

/// An upper bound of how often longer the replacements in a part of the file make a text.
fn growth(part: &Value) -> usize {
    match part {
        Value::Array(parts) => parts.iter().map(growth).fold(1, usize::saturating_mul),
        Value::Object(entries) => {
            let below = entries.values().map(growth).fold(1, usize::saturating_mul);
            let replaces = part["type"] == "Replace";
            // A pattern that matches nothing matches between any two bytes.
            let own = part["content"].as_str().filter(|_| replaces).map_or(1, |content| content.len() + 1);
            below.saturating_mul(own)
        }
        _ => 1,
    }
}

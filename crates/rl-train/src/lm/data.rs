//! From files and the built-in corpus to rows of tokens.

use std::fs;
use std::path::Path;

use anyhow::Result;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_envs::story::story;
use rl_models::lm::LmConfig;
use rl_models::text::TextTokenizer;
use serde_json::Value;

use super::config::CorpusConfig;
use crate::config::error::ConfigError;
use crate::paths;

/// What separates texts in one file.
const SEPARATOR: &str = "<|endoftext|>";

/// Examples as text.
#[derive(Debug, Clone, PartialEq)]
pub enum Examples {
    /// Texts, each a row of its own.
    Apart(Vec<String>),
    /// Texts, one after another in full rows.
    Packed(Vec<String>),
    /// Prompts and responses.
    Pairs(Vec<(String, String)>),
}

/// A prompt, at least one token, and the response that counts.
pub type TokenRow = (Vec<u32>, Vec<u32>);

impl Examples {
    /// What `[corpus]` asks for.
    ///
    /// # Errors
    /// [`ConfigError`] names the file and the line that cannot be read.
    pub fn read(config: &CorpusConfig) -> Result<Self> {
        Ok(match config {
            CorpusConfig::Stories(of) => {
                let mut rng = ChaCha8Rng::seed_from_u64(of.seed);
                Self::Apart((0..of.stories).map(|_| story(&mut rng).text()).collect())
            }
            CorpusConfig::Text(of) => Self::Packed(texts(&paths::existing("corpus.path", &of.path)?)?),
            CorpusConfig::Responses(of) => {
                Self::Pairs(json_lines(&paths::existing("corpus.path", &of.path)?, |line| {
                    Ok((field(line, "prompt")?, field(line, "response")?))
                })?)
            }
        })
    }

    /// Every text in it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (texts, pairs): (&[String], &[(String, String)]) = match self {
            Self::Apart(texts) | Self::Packed(texts) => (texts, &[]),
            Self::Pairs(pairs) => (&[], pairs),
        };
        let pairs = pairs.iter().flat_map(|(prompt, response)| [prompt.as_str(), response.as_str()]);
        texts.iter().map(String::as_str).chain(pairs)
    }

    /// Rows of at most `max_tokens` tokens, and how many had to be cut.
    ///
    /// # Errors
    /// If a text has no tokens, or a prompt leaves no room for its response.
    pub fn rows(
        &self,
        tokenizer: &TextTokenizer,
        model: &LmConfig,
        max_tokens: usize,
    ) -> Result<(Vec<TokenRow>, usize)> {
        // What a text says is text, also where it spells a control token.
        let opened = |text: &str| -> Result<Vec<u32>> {
            let mut tokens: Vec<u32> = model.bos.into_iter().collect();
            tokens.extend(tokenizer.encode_text(text)?);
            Ok(tokens)
        };
        let closed = |mut tokens: Vec<u32>| {
            tokens.extend(model.eos.first());
            tokens
        };
        let mut cut = 0;
        let mut row = |prompt: Vec<u32>, mut response: Vec<u32>| {
            let room = max_tokens.saturating_sub(prompt.len());
            cut += usize::from(response.len() > room);
            response.truncate(room);
            (prompt, response)
        };
        let rows: Vec<TokenRow> = match self {
            Self::Packed(texts) => {
                let mut stream = vec![];
                for text in texts {
                    stream.extend(closed(opened(text)?));
                }
                let whole = |piece: &[u32]| (vec![piece[0]], piece[1..].to_vec());
                stream.chunks(max_tokens).filter(|piece| piece.len() > 1).map(whole).collect()
            }
            Self::Apart(texts) => {
                let apart = |text: &String| {
                    let mut tokens = closed(opened(text)?);
                    let rest = tokens.split_off(1.min(tokens.len()));
                    Ok(row(tokens, rest))
                };
                texts.iter().map(apart).collect::<Result<_>>()?
            }
            Self::Pairs(pairs) => {
                let pair = |(prompt, response): &(String, String)| {
                    let response = closed(tokenizer.encode_continuation(response)?);
                    Ok(row(opened(prompt)?, response))
                };
                pairs.iter().map(pair).collect::<Result<_>>()?
            }
        };
        if let Some(at) = rows.iter().position(|(prompt, response)| prompt.is_empty() || response.is_empty())
        {
            let what =
                format!("row {} has no prompt, or no room for its response in {max_tokens} tokens", at + 1);
            return Err(ConfigError::Value { key: "corpus".into(), what }.into());
        }
        Ok((rows, cut))
    }
}

/// The texts of a file: JSON lines with `text`, or text with separators.
fn texts(path: &Path) -> Result<Vec<String>> {
    if path.extension().is_some_and(|kind| kind == "jsonl") {
        return json_lines(path, |line| field(line, "text"));
    }
    let whole = open(path)?;
    let texts = whole.split(SEPARATOR).map(str::trim).filter(|text| !text.is_empty());
    Ok(texts.map(str::to_owned).collect())
}

fn open(path: &Path) -> Result<String> {
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), source: error };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn json_lines<T>(path: &Path, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>> {
    let text = open(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let one = |(at, line): (usize, &str)| {
        let parsed = serde_json::from_str(line).map_err(|error| error.to_string());
        parsed.and_then(|value| read(&value)).map_err(|what| {
            let what = format!("{}:{}: {what}", path.display(), at + 1);
            ConfigError::Value { key: "corpus.path".into(), what }.into()
        })
    };
    lines.map(one).collect()
}

fn field(line: &Value, key: &str) -> Result<String, String> {
    line[key].as_str().map(str::to_owned).ok_or_else(|| format!("no text under `{key}`"))
}

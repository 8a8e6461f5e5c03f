//! Text in and out of tokens: `tokenizer.json`, bytes, characters, and chat templates.

mod chat;
mod scratch;
mod untrusted;

use std::path::Path;

use crate::lm::HfError;

pub use chat::{ChatTemplate, Message, Prompt};
pub use scratch::{BOS, EOS, PAD, SPECIALS, Units};
pub use untrusted::HfTokenizer;

/// What turns text into tokens and back.
#[derive(Debug, Clone)]
pub enum TextTokenizer {
    /// A `tokenizer.json` of the tokenizers library.
    Hf(Box<HfTokenizer>),
    /// Token = byte of UTF-8, 0 to 255: any text, no training.
    Bytes,
    /// Token = place in this list of characters: for models trained from scratch on a small alphabet.
    Characters(Vec<char>),
}

/// Whether special tokens appear in decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// As their text.
    Shown,
    /// Not at all.
    Hidden,
}

impl TextTokenizer {
    /// The tokenizer of a model's folder.
    ///
    /// # Errors
    /// If there is no readable `tokenizer.json`.
    pub fn load(folder: &Path) -> Result<Self, HfError> {
        Ok(Self::Hf(Box::new(HfTokenizer::load(&folder.join("tokenizer.json"))?)))
    }

    /// The characters of `text`, each once, in order of their numbers.
    pub fn characters_of(text: &str) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        Self::Characters(characters)
    }

    /// Tokens of `text`, without a BOS or EOS that is not in it. Text that spells a special token is that token: for
    /// rendered templates and prompts of one's own. What others wrote goes through [`TextTokenizer::encode_text`].
    ///
    /// # Errors
    /// If the text holds something that has no token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, HfError> {
        match self {
            Self::Hf(tokenizer) => tokenizer.encode(text),
            Self::Bytes => Ok(text.bytes().map(u32::from).collect()),
            Self::Characters(known) => text
                .chars()
                .map(|c| known.binary_search(&c).map(|at| at as u32))
                .collect::<Result<_, _>>()
                .map_err(|_| {
                    let unknown: Vec<char> =
                        text.chars().filter(|c| known.binary_search(c).is_err()).collect();
                    HfError::Text(format!("the alphabet has no {:?}", unknown[0]))
                }),
        }
    }

    /// Tokens of a stranger's `text`: what spells a special token is text like any other, so that nobody can end a turn,
    /// or speak as another, from within what they say.
    ///
    /// # Errors
    /// As [`TextTokenizer::encode`].
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, HfError> {
        match self {
            Self::Hf(tokenizer) => tokenizer.encode_text(text),
            Self::Bytes | Self::Characters(_) => self.encode(text),
        }
    }

    /// Text of the special tokens, the longest first.
    fn specials(&self) -> &[String] {
        match self {
            Self::Hf(tokenizer) => tokenizer.specials(),
            Self::Bytes | Self::Characters(_) => &[],
        }
    }

    /// [`TextTokenizer::encode`] with exactly one `bos` in front, also where the text has one already.
    ///
    /// # Errors
    /// As [`TextTokenizer::encode`].
    pub fn encode_after(&self, bos: Option<u32>, text: &str) -> Result<Vec<u32>, HfError> {
        let mut tokens = self.encode(text)?;
        if let Some(bos) = bos
            && tokens.first() != Some(&bos)
        {
            tokens.insert(0, bos);
        }
        Ok(tokens)
    }

    /// Tokens of a text that goes on with another, such as an answer after its prompt: as [`TextTokenizer::encode_text`], but
    /// without the space that some tokenizers put before everything they read.
    ///
    /// # Errors
    /// As [`TextTokenizer::encode`].
    pub fn encode_continuation(&self, text: &str) -> Result<Vec<u32>, HfError> {
        const ANCHOR: &str = "\n";
        if matches!(self, Self::Bytes | Self::Characters(_)) {
            return self.encode_text(text);
        }
        let before = self.encode_text(ANCHOR)?;
        if before.len() == 1 {
            return self.encode_text(text); // nothing is put before a text
        }
        let both = self.encode_text(&format!("{ANCHOR}{text}"))?;
        match both.strip_prefix(before.as_slice()) {
            Some(rest) => Ok(rest.to_vec()),
            None => self.encode_text(text),
        }
    }

    /// How a token is written in the vocabulary.
    pub fn piece(&self, token: u32) -> String {
        match self {
            Self::Hf(tokenizer) => tokenizer.piece(token).unwrap_or_else(|| format!("<{token}>")),
            Self::Bytes | Self::Characters(_) => {
                let text = self.decode(&[token], Specials::Shown).unwrap_or_default();
                text.chars().flat_map(char::escape_debug).collect()
            }
        }
    }

    /// The text of tokens; bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// If the tokenizer refuses a token.
    pub fn decode(&self, tokens: &[u32], specials: Specials) -> Result<String, HfError> {
        match self {
            Self::Hf(tokenizer) => tokenizer.decode(tokens, specials == Specials::Hidden),
            Self::Bytes => {
                let bytes: Vec<u8> = tokens.iter().filter_map(|&token| u8::try_from(token).ok()).collect();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Self::Characters(known) => {
                let character =
                    |&token: &u32| known.get(token as usize).copied().unwrap_or(char::REPLACEMENT_CHARACTER);
                Ok(tokens.iter().map(character).collect())
            }
        }
    }

    /// The number of a special token's text, where it has one.
    pub fn token(&self, text: &str) -> Option<u32> {
        match self {
            Self::Hf(tokenizer) => tokenizer.token(text),
            Self::Bytes | Self::Characters(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_come_back() {
        let text = "Ein Käfer,\nzwei Käfer";
        for tokenizer in [TextTokenizer::Bytes, TextTokenizer::characters_of(text)] {
            let tokens = tokenizer.encode(text).unwrap();
            assert_eq!(tokenizer.decode(&tokens, Specials::Shown).unwrap(), text);
        }
        let error = TextTokenizer::characters_of("abc").encode("abd").unwrap_err().to_string();
        assert!(error.contains("'d'"), "{error}");
    }

    #[test]
    fn there_is_exactly_one_bos() {
        let tokens = |text| TextTokenizer::Bytes.encode_after(Some(97), text).unwrap();
        assert_eq!((tokens("bc"), tokens("abc")), (vec![97, 98, 99], vec![97, 98, 99]));
        assert_eq!(TextTokenizer::Bytes.encode_after(None, "bc").unwrap(), [98, 99]);
    }
}

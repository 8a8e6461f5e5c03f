//! Tokenizers for models trained from scratch, made from a text and written as a `tokenizer.json` like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{HfTokenizer, TextTokenizer};
use crate::lm::HfError;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Units {
    /// A byte of UTF-8: any text.
    Bytes,
    /// A character of the text it was made from.
    #[default]
    Characters,
    /// A word of the text it was made from, with the space before it, or any other character.
    Words,
}

/// The special tokens, in the order of their numbers: padding, begin, end, unknown.
pub const SPECIALS: [&str; 4] = ["<pad>", "<s>", "</s>", "<unk>"];
/// What fills gaps.
pub const PAD: u32 = 0;
/// What opens a text.
pub const BOS: u32 = 1;
/// What ends a text.
pub const EOS: u32 = 2;

/// A word with at most one space before it, else one character.
const WORD: &str = " ?[\\p{L}']+|[^\\p{L}]";

impl TextTokenizer {
    /// A tokenizer of these units. Characters and words are those of `texts`; others become `<unk>`.
    ///
    /// ```
    /// use rl_models::text::{Specials, TextTokenizer, Units};
    ///
    /// let tokenizer = TextTokenizer::from_scratch(Units::Words, ["Lily saw a dog."].into_iter());
    /// let ids = tokenizer.encode("a dog saw Lily.").unwrap();
    /// assert_eq!(ids.len(), 5);
    /// assert!(tokenizer.decode(&ids, Specials::Hidden).unwrap().contains(" dog"));
    /// ```
    pub fn from_scratch<'a>(units: Units, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut json = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
            "added_tokens": SPECIALS.iter().enumerate().map(|(id, content)| json!({
                "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true,
            })).collect::<Vec<_>>(),
        });
        let split = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        let (before, after, model) = match units {
            Units::Bytes => {
                let level = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
                    "use_regex": false });
                let model = json!({
                    "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                    "vocab": numbered(byte_letters().map(String::from)), "merges": [],
                });
                (level.clone(), level, model)
            }
            Units::Characters => {
                let known: BTreeSet<char> = texts.flat_map(str::chars).collect();
                let vocabulary = numbered(known.into_iter().map(String::from));
                (split("[\\s\\S]"), json!({ "type": "Fuse" }), whole_words(vocabulary))
            }
            Units::Words => {
                let known: BTreeSet<String> = texts.flat_map(words).collect();
                (split(WORD), json!({ "type": "Fuse" }), whole_words(numbered(known.into_iter())))
            }
        };
        (json["pre_tokenizer"], json["decoder"], json["model"]) = (before, after, model);
        let tokenizer = HfTokenizer::parse(json.to_string().as_bytes());
        Self::Hf(Box::new(tokenizer.unwrap_or_else(|error| panic!("our own tokenizer: {error}"))))
    }

    /// How many tokens there are, special ones included.
    pub fn vocabulary(&self) -> usize {
        match self {
            Self::Hf(tokenizer) => tokenizer.vocabulary(),
            Self::Bytes => 256,
            Self::Characters(known) => known.len(),
        }
    }

    /// Writes a tokenizer made by [`TextTokenizer::from_scratch`] into a model's folder, so that the transformers
    /// library reads it too.
    ///
    /// # Errors
    /// If the folder cannot be written.
    ///
    /// # Panics
    /// If it is not a `tokenizer.json`.
    pub fn save(&self, folder: &Path) -> Result<(), HfError> {
        let Self::Hf(tokenizer) = self else { panic!("only a tokenizer.json can be saved as one") };
        let [pad, bos, eos, unk] = SPECIALS;
        let about = json!({
            "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
            "pad_token": pad, "bos_token": bos, "eos_token": eos, "unk_token": unk,
        });
        let text = tokenizer.json()?;
        let about = serde_json::to_string_pretty(&about).expect("names become JSON") + "\n";
        for (name, text) in [("tokenizer.json", text), ("tokenizer_config.json", about)] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| HfError::file(&path, error))?;
        }
        Ok(())
    }
}

/// Special tokens first, then `tokens` in order.
fn numbered(tokens: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    SPECIALS.iter().map(|&token| token.to_owned()).chain(tokens).enumerate().map(|(id, t)| (t, id)).collect()
}

/// Each piece that the pre-tokenizer cuts is one token.
fn whole_words(vocabulary: BTreeMap<String, usize>) -> Value {
    json!({ "type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIALS[3] })
}

/// The pieces that [`WORD`] cuts.
fn words(text: &str) -> Vec<String> {
    let letter = |c: char| c.is_alphabetic() || c == '\'';
    let mut pieces: Vec<String> = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let space = usize::from(first == ' ' && rest[1..].starts_with(letter));
        let length = rest[space..].find(|c| !letter(c)).unwrap_or(rest.len() - space);
        let (piece, after) = rest.split_at(if length == 0 { first.len_utf8() } else { space + length });
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

/// How byte-level tokenizers write bytes 0 to 255: visible Latin-1 as it is, the others from U+0100 on.   GPT-2
fn byte_letters() -> impl Iterator<Item = char> {
    let visible = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    (0..256u32).map(move |byte| {
        let code = if visible(byte) {
            byte
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).expect("below U+0144")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Specials;

    const TEXT: &str = "Tom's bear  ran.\nÄh, \"so\" fast!";

    #[test]
    fn every_unit_gives_the_text_back_also_from_a_folder() {
        for (units, vocabulary, tokens) in [
            (Units::Bytes, 260, TEXT.len()),
            (Units::Characters, 4 + 20, TEXT.chars().count()),
            (Units::Words, 4 + 12, 14),
        ] {
            let made = TextTokenizer::from_scratch(units, [TEXT].into_iter());
            let folder = tempfile::tempdir().unwrap();
            made.save(folder.path()).unwrap();
            for tokenizer in [made, TextTokenizer::load(folder.path()).unwrap()] {
                let ids = tokenizer.encode(TEXT).unwrap();
                assert_eq!(tokenizer.decode(&ids, Specials::Hidden).unwrap(), TEXT, "{units:?}");
                assert_eq!((tokenizer.vocabulary(), ids.len()), (vocabulary, tokens), "{units:?}");
                assert!(ids.iter().all(|&id| id >= SPECIALS.len() as u32 && (id as usize) < vocabulary));
                assert_eq!(tokenizer.token("<s>"), Some(BOS));
                assert_eq!(
                    tokenizer.decode(&[BOS, ids[0], EOS], Specials::Hidden).unwrap().chars().next(),
                    Some('T')
                );
            }
        }
    }

    #[test]
    fn what_is_not_in_the_text_is_unknown() {
        let words = TextTokenizer::from_scratch(Units::Words, ["a bear"].into_iter());
        assert_eq!(words.encode("a bear a").unwrap(), [5, 4, 3]);
        let bytes = TextTokenizer::from_scratch(Units::Bytes, [].into_iter());
        assert_eq!(bytes.decode(&bytes.encode("\u{0}☃ß").unwrap(), Specials::Shown).unwrap(), "\u{0}☃ß");
    }
}

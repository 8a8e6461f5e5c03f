//! Chat templates: how a conversation becomes one text. Templates are programs of strangers, so they run on a budget.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use minijinja::{Environment, Error, ErrorKind, context};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TextTokenizer;
use crate::lm::HfError;
use crate::lm::hf::files::{self, MOST_SETTINGS_BYTES};

/// Steps a template may take: thousands of times what a long conversation needs.
const FUEL: u64 = 10_000_000;

/// The longest text that a template may write, in bytes.
pub const MOST_TEXT_BYTES: usize = 1 << 26;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
}

/// A model's own way to write conversations down.
///
/// ```
/// use rl_models::text::{ChatTemplate, Message, Prompt};
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
/// );
/// let said = [Message { role: "user".into(), content: "Once?".into() }];
/// assert_eq!(template.render(&said, Prompt::Open).unwrap(), "<user>Once?<assistant>");
/// // A template that never ends is stopped.
/// let endless = ChatTemplate::new("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}");
/// assert!(endless.render(&said, Prompt::Closed).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    source: String,
    /// Text of the tokens that templates refer to: `bos_token`, `eos_token`, `pad_token`, `unk_token`.
    tokens: serde_json::Map<String, Value>,
}

impl ChatTemplate {
    /// The template of a model's folder: `chat_template.jinja`, or `chat_template` of `tokenizer_config.json`.
    ///
    /// # Errors
    /// If neither is there, or one cannot be read.
    pub fn load(folder: &Path) -> Result<Self, HfError> {
        let path = folder.join("tokenizer_config.json");
        let text = files::text(&path, MOST_SETTINGS_BYTES)?;
        let config: Value = serde_json::from_str(&text).map_err(|e| HfError::file(&path, e))?;
        let own = folder.join("chat_template.jinja");
        let source = match &config["chat_template"] {
            _ if own.exists() => files::text(&own, MOST_SETTINGS_BYTES)?,
            Value::String(source) => source.clone(),
            _ => {
                let what = "there is no such file, and tokenizer_config.json has none";
                return Err(HfError::file(&own, what));
            }
        };
        let text_of = |value: &Value| value.as_str().or(value["content"].as_str()).map(str::to_owned);
        let tokens = ["bos_token", "eos_token", "pad_token", "unk_token"]
            .into_iter()
            .filter_map(|name| text_of(&config[name]).map(|text| (name.to_owned(), text.into())))
            .collect();
        Ok(Self { source, tokens })
    }

    /// A template of given source, with no tokens to refer to.
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), tokens: serde_json::Map::new() }
    }

    /// The text of `messages`; with `prompt`, up to where the assistant is to speak.
    ///
    /// # Errors
    /// What the template refuses, or that it takes too long.
    pub fn render(&self, messages: &[Message], prompt: Prompt) -> Result<String, HfError> {
        let mut engine = Environment::new();
        engine.set_fuel(Some(FUEL));
        engine.set_trim_blocks(true);
        engine.set_lstrip_blocks(true);
        engine.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        engine.add_function("raise_exception", |why: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        let refused = |error: Error| HfError::Text(format!("the chat template: {error:#}"));
        let template = engine.template_from_str(&self.source).map_err(refused)?;
        let tokens = minijinja::Value::from_serialize(&self.tokens);
        let own = context! { messages, add_generation_prompt => prompt == Prompt::Open };
        let mut text = Bounded(Vec::new());
        let done = template.render_captured_to(context! { ..own, ..tokens }, &mut text).map(drop);
        if text.0.len() > MOST_TEXT_BYTES {
            return Err(HfError::Text(format!(
                "the chat template: its text is longer than {MOST_TEXT_BYTES} bytes"
            )));
        }
        done.map_err(refused)?;
        String::from_utf8(text.0)
            .map_err(|_| HfError::Text("the chat template: its text is not UTF-8".into()))
    }

    /// Tokens of the text of `messages`. A special token that a message spells is text: nobody ends a turn, or speaks as
    /// another, from within what they say.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`], and if the text has no tokens.
    pub fn encode(
        &self,
        tokenizer: &TextTokenizer,
        messages: &[Message],
        prompt: Prompt,
    ) -> Result<Vec<u32>, HfError> {
        let said = || messages.iter().flat_map(|it| [it.role.as_str(), it.content.as_str()]);
        let spelt: Vec<&String> = tokenizer
            .specials()
            .iter()
            .filter(|special| said().any(|text| text.contains(*special)))
            .collect();
        if spelt.is_empty() {
            return tokenizer.encode(&self.render(messages, prompt)?);
        }
        // A character of nobody's stands for each of them while the template runs.
        let used: BTreeSet<char> = said().chain([self.source.as_str()]).flat_map(str::chars).collect();
        let free = PRIVATE.filter(|mark| !used.contains(mark));
        let marks: Vec<(char, &String)> = free.zip(spelt).collect();
        let marked = |text: &str| {
            marks.iter().fold(text.to_owned(), |text, (mark, special)| {
                text.replace(special.as_str(), mark.encode_utf8(&mut [0; 4]))
            })
        };
        let messages: Vec<Message> = messages
            .iter()
            .map(|it| Message { role: marked(&it.role), content: marked(&it.content) })
            .collect();
        let text = self.render(&messages, prompt)?;
        let mut tokens = Vec::new();
        let mut rest = text.as_str();
        let special_of = |c: char| marks.iter().find(|(mark, _)| *mark == c).map(|(_, special)| *special);
        while let Some((at, mark)) = rest.char_indices().find(|(_, c)| special_of(*c).is_some()) {
            tokens.extend(tokenizer.encode(&rest[..at])?);
            tokens.extend(tokenizer.encode_text(special_of(mark).expect("it was found"))?);
            rest = &rest[at + mark.len_utf8()..];
        }
        tokens.extend(tokenizer.encode(rest)?);
        Ok(tokens)
    }
}

/// Characters that no text has: a plane for private use.
const PRIVATE: std::ops::RangeInclusive<char> = '\u{100000}'..='\u{10fffd}';

/// A text that must not grow without end.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MOST_TEXT_BYTES + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a rendered conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// After its last message.
    Closed,
    /// Where the assistant is to speak.
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_never_ends_is_stopped() {
        let endless = "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
        let error = ChatTemplate::new(endless).render(&[], Prompt::Closed).unwrap_err().to_string();
        assert!(error.contains("fuel"), "{error}");
    }

    #[test]
    fn what_a_template_refuses_is_said() {
        let error = ChatTemplate::new("{{ raise_exception('roles must alternate') }}")
            .render(&[], Prompt::Open)
            .unwrap_err()
            .to_string();
        assert!(error.contains("roles must alternate"), "{error}");
    }
}

//! Chat templates: how a conversation becomes one text. Templates are programs of strangers, so they run on a budget.

use std::fs;
use std::path::Path;

use minijinja::{Environment, Error, ErrorKind, context};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lm::HfError;

/// Steps a template may take: thousands of times what a long conversation needs.
const FUEL: u64 = 10_000_000;

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
}

/// A model's own way to write conversations down.
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
        let text = fs::read_to_string(&path).map_err(|e| HfError::file(&path, e))?;
        let config: Value = serde_json::from_str(&text).map_err(|e| HfError::file(&path, e))?;
        let own = folder.join("chat_template.jinja");
        let source = match fs::read_to_string(&own) {
            Ok(source) => source,
            Err(_) => match &config["chat_template"] {
                Value::String(source) => source.clone(),
                _ => {
                    return Err(HfError::file(
                        &own,
                        "there is no such file, and tokenizer_config.json has none",
                    ));
                }
            },
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
        template.render(context! { ..own, ..tokens }).map_err(refused)
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

//! Preference texts as tokens: prompt and answers are cut into tokens apart and joined as tokens, so that what an answer
//! is never depends on what stands before it.

use std::path::Path;

use anyhow::Result;
use rl_envs::preference::{Message, Pair, Prompt, Role};
use rl_models::lm::{HfError, LmConfig};
use rl_models::text::{self, ChatTemplate, Specials, TextTokenizer};
use serde::{Deserialize, Serialize};

/// What stands behind an answer's last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model's end token: answers are whole, and to stop is part of them.
    #[default]
    Eos,
    /// Nothing: answers were cut somewhere, and to stop there would be learnt as well.
    Open,
}

/// The most tokens of each part. A longer prompt loses its beginning, a longer answer its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of a prompt, BOS included.
    pub prompt: usize,
    /// Of an answer, its end included.
    pub answer: usize,
}

impl Limits {
    /// Both halves of what a model can look back on.
    pub fn of_sight(positions: usize) -> Self {
        Self { prompt: positions / 2, answer: positions - positions / 2 }
    }
}

/// Turns texts into tokens as one model reads them.
#[derive(Debug, Clone)]
pub struct Encoder {
    tokenizer: TextTokenizer,
    template: Option<ChatTemplate>,
    bos: Option<u32>,
    eos: Option<u32>,
    ending: Ending,
    limits: Limits,
}

/// A comparison as tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EncodedPair {
    /// What was asked.
    pub prompt: Vec<u32>,
    /// The better answer.
    pub chosen: Vec<u32>,
    /// The worse one.
    pub rejected: Vec<u32>,
}

impl Encoder {
    /// The encoder of the model in `folder`.
    ///
    /// # Errors
    /// If the folder has no readable tokenizer.
    pub fn of_model(folder: &Path, config: &LmConfig, ending: Ending) -> Result<Self, HfError> {
        Ok(Self {
            tokenizer: TextTokenizer::load(folder)?,
            template: ChatTemplate::load(folder).ok(),
            bos: config.bos,
            eos: config.eos.first().copied(),
            ending,
            limits: Limits::of_sight(config.max_positions),
        })
    }

    /// Without a model: every byte is a token.
    pub fn of_bytes() -> Self {
        let (prompt, answer) = (usize::MAX, usize::MAX);
        Self {
            tokenizer: TextTokenizer::Bytes,
            template: None,
            bos: None,
            eos: None,
            ending: Ending::Open,
            limits: Limits { prompt, answer },
        }
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The most tokens of each part.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The tokens of a prompt, whole.
    ///
    /// # Errors
    /// If the tokenizer has no token for something in it, or the chat template refuses it.
    pub fn whole_prompt(&self, prompt: &Prompt) -> Result<Vec<u32>, HfError> {
        let mut tokens = self.text(prompt)?;
        if let Some(bos) = self.bos.filter(|bos| tokens.first() != Some(bos)) {
            tokens.insert(0, bos);
        }
        Ok(tokens)
    }

    /// The tokens of an answer, whole, its end included.
    ///
    /// # Errors
    /// If the tokenizer has no token for something in it.
    pub fn whole_answer(&self, answer: &str) -> Result<Vec<u32>, HfError> {
        let mut tokens = self.tokenizer.encode_continuation(answer)?;
        let eos = self.eos.filter(|eos| self.ending == Ending::Eos && tokens.last() != Some(eos));
        tokens.extend(eos);
        Ok(tokens)
    }

    /// A prompt as a model sees it, within the limits.
    ///
    /// # Errors
    /// As [`Encoder::whole_prompt`].
    pub fn prompt(&self, prompt: &Prompt) -> Result<Vec<u32>, HfError> {
        let mut tokens = self.whole_prompt(prompt)?;
        let most = self.limits.prompt.max(2);
        if tokens.len() > most {
            let opening = self.bos.filter(|bos| tokens.first() == Some(bos));
            let kept = most - usize::from(opening.is_some());
            tokens = opening.into_iter().chain(tokens[tokens.len() - kept..].iter().copied()).collect();
        }
        Ok(tokens)
    }

    /// A comparison, within the limits.
    ///
    /// # Errors
    /// As [`Encoder::prompt`], and if an answer has no token.
    pub fn pair(&self, pair: &Pair) -> Result<EncodedPair> {
        let [chosen, rejected] = [&pair.chosen, &pair.rejected].map(|answer| self.answer(answer));
        Ok(EncodedPair { prompt: self.prompt(&pair.prompt)?, chosen: chosen?, rejected: rejected? })
    }

    /// An answer, within the limits.
    ///
    /// # Errors
    /// As [`Encoder::whole_answer`], and if it has no token.
    pub fn answer(&self, answer: &str) -> Result<Vec<u32>> {
        let mut tokens = self.whole_answer(answer)?;
        tokens.truncate(self.limits.answer.max(1));
        anyhow::ensure!(
            !tokens.is_empty(),
            "the answer {answer:?} has no token: there is nothing to compare"
        );
        Ok(tokens)
    }

    /// The text of tokens, special ones left out.
    pub fn decode(&self, tokens: &[u32]) -> String {
        self.tokenizer.decode(tokens, Specials::Hidden).unwrap_or_default()
    }

    /// How each token is written in the vocabulary.
    pub fn pieces(&self, tokens: &[u32]) -> Vec<String> {
        tokens.iter().map(|&token| self.tokenizer.piece(token)).collect()
    }

    /// A prompt without a BOS: a dialogue by the model's template or, where there is none, as HH writes it. What people
    /// wrote in it is text, also where it spells a special token.
    fn text(&self, prompt: &Prompt) -> Result<Vec<u32>, HfError> {
        match (prompt, &self.template) {
            (Prompt::Text(text), _) => self.tokenizer.encode_text(text),
            (Prompt::Messages(turns), Some(template)) => {
                let turns: Vec<text::Message> = turns.iter().map(turn).collect();
                template.encode(&self.tokenizer, &turns, text::Prompt::Open)
            }
            (Prompt::Messages(turns), None) => self.tokenizer.encode_text(&transcript(turns)),
        }
    }
}

fn turn(message: &Message) -> text::Message {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    text::Message { role: role.to_owned(), content: message.content.clone() }
}

/// `\n\nHuman: …\n\nAssistant:`, as in the HH dataset.
fn transcript(turns: &[Message]) -> String {
    let mut text = String::new();
    for Message { role, content } in turns {
        let speaker = match role {
            Role::System => "System",
            Role::User => "Human",
            Role::Assistant => "Assistant",
            Role::Tool => "Tool",
        };
        text += &format!("\n\n{speaker}: {content}");
    }
    text + "\n\nAssistant:"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(prompt: &str, chosen: &str) -> Pair {
        let (prompt, chosen) = (Prompt::Text(prompt.into()), chosen.into());
        Pair { prompt, chosen, rejected: "no".into(), margin: None, rewards: None }
    }

    fn bytes(text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    #[test]
    fn a_long_prompt_loses_its_beginning_and_a_long_answer_its_end() {
        let encoder = Encoder { bos: Some(1), eos: Some(2), ending: Ending::Eos, ..Encoder::of_bytes() }
            .with_limits(Limits { prompt: 3, answer: 4 });
        let cut = encoder.pair(&pair("abcdef", "vwxyz")).unwrap();
        assert_eq!(cut.prompt, [1, 101, 102]);
        assert_eq!(cut.chosen, bytes("vwxy"));
        assert_eq!(cut.rejected, [110, 111, 2]);
    }

    #[test]
    fn the_boundary_between_prompt_and_answer_never_merges() {
        let encoder = Encoder::of_bytes();
        for (prompt, answer) in [("How much? ", "$46"), ("a", "b"), ("a ", " b")] {
            let encoded = encoder.pair(&pair(prompt, answer)).unwrap();
            assert_eq!([encoded.prompt, encoded.chosen].concat(), bytes(&format!("{prompt}{answer}")));
        }
    }

    #[test]
    fn a_dialogue_without_a_template_is_a_transcript() {
        let turns = vec![Message { role: Role::User, content: "Hi".into() }];
        let tokens = Encoder::of_bytes().prompt(&Prompt::Messages(turns)).unwrap();
        assert_eq!(tokens, bytes("\n\nHuman: Hi\n\nAssistant:"));
    }
}

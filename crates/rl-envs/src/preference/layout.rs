//! The six ways in which people write a preference down.

use serde::{Deserialize, Serialize};

use super::columns::Columns;
use super::dialogue::{joined, message, messages, shared, split, split_text};
use super::error::Fault;
use super::fields::{Field, Fields};
use super::json::Json;
use super::{Judged, Message, Pair, Preference, Prompt, Role};

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Prompt, chosen and rejected text.
    Triple,
    /// Two whole dialogues as text.
    Hh,
    /// Lists of messages.
    Chat,
    /// `conversations`, and one turn for each answer.
    #[serde(rename = "sharegpt")]
    ShareGpt,
    /// Two answers and the number of the better one.
    PairLabel,
    /// One answer, good or not.
    Kto,
}

const CURE: &str = "add it, or name its column with `--field`";

impl Layout {
    /// The layout that a row's columns speak for.
    pub(super) fn of(columns: &Columns<'_>, fields: &Fields) -> Result<Self, Fault> {
        let has = |field| columns.has(field, fields);
        let is_turns =
            |field| matches!(columns.optional(field, fields), Some((_, Json::List(_) | Json::Object(_))));
        if has(Field::Conversations) {
            return Ok(Self::ShareGpt);
        }
        if has(Field::Answer1) || has(Field::Answer2) {
            return Ok(Self::PairLabel);
        }
        if has(Field::Completion) {
            return Ok(Self::Kto);
        }
        if !has(Field::Chosen) && !has(Field::Rejected) {
            return Err(columns.missing(Field::Chosen, fields, CURE));
        }
        Ok(match [Field::Prompt, Field::Chosen, Field::Rejected].map(is_turns).contains(&true) {
            true => Self::Chat,
            false if has(Field::Prompt) => Self::Triple,
            false => Self::Hh,
        })
    }

    /// Reads a row that is written so.
    pub(super) fn read(self, columns: &Columns<'_>, fields: &Fields) -> Result<Preference, Fault> {
        let row = Row { columns, fields };
        if self == Self::Kto {
            return Ok(Preference::Judged(row.judged()?));
        }
        let (prompt, chosen, rejected) = match self {
            Self::Triple => (row.prompt()?, row.text(Field::Chosen)?, row.text(Field::Rejected)?),
            Self::Hh => row.dialogues()?,
            Self::Chat => row.chat()?,
            Self::ShareGpt => row.conversation()?,
            Self::PairLabel => row.labelled()?,
            Self::Kto => unreachable!("read above"),
        };
        for (field, answer) in [(Field::Chosen, &chosen), (Field::Rejected, &rejected)] {
            row.not_empty(field, answer)?;
        }
        let prompt = row.with_system(prompt)?;
        let margin = row.number(Field::Margin)?;
        let rewards = row.number(Field::RewardChosen)?.zip(row.number(Field::RewardRejected)?);
        Ok(Preference::Pair(Pair { prompt, chosen, rejected, margin, rewards: rewards.map(Into::into) }))
    }
}

/// A row under its layout.
struct Row<'r, 'a> {
    columns: &'r Columns<'a>,
    fields: &'r Fields,
}

impl Row<'_, '_> {
    fn get(&self, field: Field) -> Result<(&str, &Json<'_>), Fault> {
        self.columns.required(field, self.fields, CURE)
    }

    fn text(&self, field: Field) -> Result<String, Fault> {
        text(self.get(field)?)
    }

    /// A plain prompt, `instruction` and `input` joined.
    fn prompt(&self) -> Result<Prompt, Fault> {
        let (name, value) = self.get(Field::Prompt)?;
        let mut prompt = text((name, value))?;
        match self.columns.optional(Field::PromptInput, self.fields) {
            Some((input, value)) if input != name && name == "instruction" => {
                let input = text((input, value))?;
                if !input.is_empty() {
                    prompt = format!("{prompt}\n{input}");
                }
            }
            _ => {}
        }
        Ok(Prompt::Text(prompt))
    }

    fn dialogues(&self) -> Result<(Prompt, String, String), Fault> {
        let (chosen, rejected) = (self.text(Field::Chosen)?, self.text(Field::Rejected)?);
        let (before_chosen, chosen) = split_text("chosen", &chosen)?;
        let (before_rejected, rejected) = split_text("rejected", &rejected)?;
        let prompt = shared(before_chosen, before_rejected)?;
        Ok((Prompt::Text(prompt.to_owned()), chosen.to_owned(), rejected.to_owned()))
    }

    /// One side of a chat: a list of turns, one turn, or, beside an explicit prompt, text.
    fn side(&self, field: Field) -> Result<(Vec<Message>, String), Fault> {
        let (name, value) = self.get(field)?;
        match value {
            Json::Text(answer) => Ok((vec![], answer.to_string())),
            Json::Object(_) => split(name, vec![message(name, value)?]),
            _ => split(name, messages(name, value)?),
        }
    }

    fn chat(&self) -> Result<(Prompt, String, String), Fault> {
        let explicit = match self.columns.optional(Field::Prompt, self.fields) {
            None => None,
            Some((_, Json::Text(text))) => Some(Prompt::Text(text.to_string())),
            Some((name, value)) => Some(Prompt::Messages(messages(name, value)?)),
        };
        let (before_chosen, chosen) = self.side(Field::Chosen)?;
        let (before_rejected, rejected) = self.side(Field::Rejected)?;
        if before_chosen != before_rejected {
            let byte = |turns: &[Message]| format!("{turns:?}");
            shared(byte(&before_chosen), byte(&before_rejected))?;
        }
        if explicit.is_none() && before_chosen.is_empty() {
            return Err(self.columns.missing(
                Field::Prompt,
                self.fields,
                "or begin both sides with its turns",
            ));
        }
        Ok((joined(explicit, before_chosen), chosen, rejected))
    }

    fn conversation(&self) -> Result<(Prompt, String, String), Fault> {
        let (name, value) = self.get(Field::Conversations)?;
        let turns = messages(name, value)?;
        let answer = |field| -> Result<String, Fault> {
            let (before, answer) = self.side(field)?;
            match before.is_empty() {
                true => Ok(answer),
                false => {
                    let name = self.get(field)?.0.to_owned();
                    Err(Fault::Kind {
                        field: name,
                        want: "one turn",
                        found: format!("{} turns", before.len() + 1),
                    })
                }
            }
        };
        Ok((Prompt::Messages(turns), answer(Field::Chosen)?, answer(Field::Rejected)?))
    }

    fn labelled(&self) -> Result<(Prompt, String, String), Fault> {
        let (first_name, _) = self.get(Field::Answer1)?;
        let (second_name, _) = self.get(Field::Answer2)?;
        let (first, second) = (self.text(Field::Answer1)?, self.text(Field::Answer2)?);
        let (name, label) = self.get(Field::Label)?;
        let found = match label {
            Json::Number(it) => it.to_string(),
            Json::Text(it) => it.to_string(),
            other => other.kind(),
        };
        // `output_1` is meant by 1, `"1"` and `"output_1"`.
        let means = |answer: &str, usual: &str| {
            found == answer || found == answer.rsplit_once('_').map_or(usual, |(_, number)| number)
        };
        let prompt = self.prompt()?;
        match (means(first_name, "1"), means(second_name, "2")) {
            (true, false) => Ok((prompt, first, second)),
            (false, true) => Ok((prompt, second, first)),
            _ => Err(Fault::Label { field: name.to_owned(), want: "1 or 2".to_owned(), found: label.kind() }),
        }
    }

    fn judged(&self) -> Result<Judged, Fault> {
        let (name, value) = self.get(Field::Prompt)?;
        let prompt = match value {
            Json::List(_) => Prompt::Messages(messages(name, value)?),
            _ => self.prompt()?,
        };
        let (name, value) = self.get(Field::Completion)?;
        let completion = match value {
            Json::List(_) => split(name, messages(name, value)?)?.1,
            _ => text((name, value))?,
        };
        self.not_empty(Field::Completion, &completion)?;
        let (name, label) = self.get(Field::Label)?;
        let good = match label {
            Json::Bool(good) => *good,
            // CSV has no other way to say it.
            Json::Text(it) if it.eq_ignore_ascii_case("true") => true,
            Json::Text(it) if it.eq_ignore_ascii_case("false") => false,
            other => {
                return Err(Fault::Kind {
                    field: name.to_owned(),
                    want: "true or false",
                    found: other.kind(),
                });
            }
        };
        Ok(Judged { prompt: self.with_system(prompt)?, completion, good })
    }

    fn not_empty(&self, field: Field, answer: &str) -> Result<(), Fault> {
        let name = || self.fields.columns(field).next().unwrap_or_default().to_owned();
        if answer.trim().is_empty() { Err(Fault::Empty { field: name() }) } else { Ok(()) }
    }

    fn with_system(&self, prompt: Prompt) -> Result<Prompt, Fault> {
        let Some(system) = self.columns.optional(Field::System, self.fields) else { return Ok(prompt) };
        let content = text(system)?;
        if content.is_empty() {
            return Ok(prompt);
        }
        Ok(joined(
            Some(Prompt::Messages(vec![Message { role: Role::System, content }])),
            match prompt {
                Prompt::Text(content) => vec![Message { role: Role::User, content }],
                Prompt::Messages(turns) => turns,
            },
        ))
    }

    fn number(&self, field: Field) -> Result<Option<f64>, Fault> {
        let Some((name, value)) = self.columns.optional(field, self.fields) else { return Ok(None) };
        let number = match value {
            Json::Number(it) => Some(*it),
            // CSV has text alone, and leaves out what is not known.
            Json::Text(it) if it.is_empty() => return Ok(None),
            Json::Text(it) => it.parse().ok(),
            _ => None,
        };
        match number {
            Some(it) if it.is_finite() => Ok(Some(it)),
            _ => Err(Fault::NotFinite { field: name.to_owned(), found: value.kind() }),
        }
    }
}

fn text((name, value): (&str, &Json<'_>)) -> Result<String, Fault> {
    match value {
        Json::Text(text) => Ok(text.to_string()),
        other => Err(Fault::Kind { field: name.to_owned(), want: "text", found: other.kind() }),
    }
}

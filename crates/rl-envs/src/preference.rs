//! Preference data as people have it: one reader for every layout and container.
//!
//! A **row** compares two answers to a prompt ([`Pair`]) or judges one ([`Judged`]). It is written in one of six
//! [`Layout`]s and stored in one of four containers:
//!
//! | layout | columns |
//! |---|---|
//! | [`Triple`](Layout::Triple) | `prompt`, `chosen`, `rejected`: text (`instruction` + `input`, `question` name a prompt too) |
//! | [`Hh`](Layout::Hh) | `chosen`, `rejected`: whole dialogues, split behind the *last* `\n\nAssistant:` |
//! | [`Chat`](Layout::Chat) | `chosen`, `rejected`: lists of `{role, content}`; `prompt` explicit or their common part |
//! | [`ShareGpt`](Layout::ShareGpt) | `conversations`: a list of `{from, value}`; `chosen`, `rejected`: one such turn each |
//! | [`PairLabel`](Layout::PairLabel) | `input`, `output_1`, `output_2`, `label`: the number of the better one |
//! | [`Kto`](Layout::Kto) | `prompt`, `completion`, `label`: true for a good answer |
//!
//! | container | told by |
//! |---|---|
//! | JSON lines, a JSON array | the first character; a byte-order mark, CRLF and blank lines are tolerated |
//! | CSV, TSV | the file's ending, or a first line that names columns |
//! | Parquet (feature `parquet`) | its magic bytes |
//! | gzip of any text above | its magic bytes; several members are one file |
//! | a folder | all files of these kinds directly in it, by name |
//!
//! Optional columns everywhere: `margin`, `reward_chosen` with `reward_rejected`, `system`. Other columns are ignored;
//! [`Fields`] renames. The first row that fits a layout settles the layout of its file.
//!
//! # Bad rows
//!
//! Strict by default: the first bad row ends the load with a [`DataError`] that names the file, the line (or element),
//! the field, what was found and what would do. With [`OnBad::Skip`] bad rows are counted and listed in [`Skipped`], and
//! only a file of which nothing is left is an error. A damaged container (bad syntax between the elements of an array, a
//! truncated gzip stream, a web page) is an error in both. An answer of white space alone is a bad row; two identical
//! answers are a tie, which is kept and counted.
//!
//! # Hostile input
//!
//! Memory is bounded by one row ([`MOST_ROW_BYTES`]) whatever the size of the file; JSON deeper than 128 levels, numbers
//! beyond `f64`, and gzip streams and Parquet pages that swell [`MOST_SWELLING`]-fold are refused, and so are devices and
//! pipes.
//!
//! ```
//! use rl_envs::preference::{Dataset, ReadOptions};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("pairs.jsonl");
//! std::fs::write(&path, r#"{"prompt": "2 + 2?", "chosen": " 4", "rejected": " 5"}"#).unwrap();
//! let data = Dataset::load(&path, &ReadOptions::default()).unwrap();
//! assert_eq!(data.pairs[0].chosen, " 4");
//!
//! std::fs::write(&path, r#"{"prompt": "2 + 2?", "chosen": null, "rejected": " 5"}"#).unwrap();
//! let error = Dataset::load(&path, &ReadOptions::default()).unwrap_err().to_string();
//! assert!(error.contains("pairs.jsonl, line 1: `chosen` must be text, but is null"), "{error}");
//! ```

mod array;
mod columns;
mod container;
mod dataset;
mod dialogue;
mod error;
mod fields;
mod json;
mod layout;
mod lines;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod reader;
mod stream;
mod survey;
mod synthetic;
mod table;

pub use container::MOST_ROW_BYTES;
pub use dataset::Dataset;
pub use error::{DataError, Fault, Place, Position};
pub use fields::{Field, Fields};
pub use layout::Layout;
pub use reader::{OnBad, ReadOptions, Rows, Skipped};
pub use stream::MOST_SWELLING;
pub use survey::{Lengths, Survey};
pub use synthetic::{Preferred, SyntheticPreferences};

use serde::{Deserialize, Serialize};

/// Who speaks in a dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instructions that stand before a dialogue.
    System,
    /// The human.
    User,
    /// The model.
    Assistant,
    /// What a tool gave back.
    Tool,
}

/// One turn of a dialogue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// What an answer answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Prompt {
    /// Plain text, continued as it stands.
    Text(String),
    /// A dialogue, to be rendered by the model's chat template.
    Messages(Vec<Message>),
}

/// Two answers to one prompt, of which `chosen` was preferred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// What both answer.
    pub prompt: Prompt,
    /// The preferred answer.
    pub chosen: String,
    /// The other one.
    pub rejected: String,
    /// By how much it was preferred, where the data says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The rewards of the chosen and the rejected answer, where the data says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewards: Option<[f64; 2]>,
}

impl Pair {
    /// Whether the two answers are the same: a comparison that says nothing.
    pub fn is_tie(&self) -> bool {
        self.chosen == self.rejected
    }

    /// The margin of the data, or the difference of its rewards.
    pub fn known_margin(&self) -> Option<f64> {
        self.margin.or(self.rewards.map(|[chosen, rejected]| chosen - rejected))
    }
}

/// One answer to a prompt, judged by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What is answered.
    pub prompt: Prompt,
    /// The answer.
    pub completion: String,
    /// Whether it was found good.
    pub good: bool,
}

/// One row of a preference file.
#[derive(Debug, Clone, PartialEq)]
pub enum Preference {
    /// Two answers compared.
    Pair(Pair),
    /// One answer judged.
    Judged(Judged),
}

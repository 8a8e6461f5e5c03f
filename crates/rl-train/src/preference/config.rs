//! `[lm]` and `[data]`: which language model, and the texts it learns from.

use rl_envs::preference::{Dataset, Fields, OnBad, ReadOptions};
use serde::{Deserialize, Serialize};

use crate::config::error::ConfigError;
use crate::pairs::{Ending, Limits};
use crate::paths;

/// `[lm]`: where a language model comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LmSection {
    /// A folder with config.json, model.safetensors and tokenizer.json; `$NAME` is a variable of the environment.
    pub model: String,
}

/// What judges answers that no human has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gold {
    /// How cheerful the text is; see [`rl_envs::sentiment`].
    Vader,
    /// How the sentences of a built-in story feel; see [`rl_envs::story::sentiment`].
    Stories,
}

impl Gold {
    /// The gold reward of an answer.
    pub fn of(self, answer: &str) -> f64 {
        match self {
            Self::Vader => rl_envs::sentiment::compound(answer),
            Self::Stories => rl_envs::story::sentiment(answer),
        }
    }
}

/// What an RLHF run is trained to please.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RewardSection {
    /// The gold reward itself: nothing to be cheated but its own definition.
    #[default]
    Vader,
    /// A reward model: a proxy.
    Model {
        /// Its folder, such as the `model` of a run of `rm-stories`.
        folder: String,
    },
}

/// `[data]`: preference files and how they become tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSection {
    /// The pairs to learn from: a file or a folder; `$NAME` is a variable of the environment.
    pub train: String,
    /// Held-out pairs.
    #[serde(default)]
    pub eval: Option<String>,
    /// A text file of prompts, one a line, to be answered in evaluations; those of `train` are left out.
    #[serde(default)]
    pub prompts: Option<String>,
    /// What judges these answers.
    #[serde(default)]
    pub gold: Option<Gold>,
    /// Fields that are in other columns, such as `chosen=answer_a`.
    #[serde(default)]
    pub fields: Vec<String>,
    /// What a bad row does.
    #[serde(default)]
    pub on_bad: OnBad,
    /// What stands behind an answer.
    #[serde(default)]
    pub ending: Ending,
    /// The most tokens of a prompt; absent is half of what the model can look back on.
    #[serde(default)]
    pub max_prompt_tokens: Option<usize>,
    /// The most tokens of an answer, read or written; absent is the other half.
    #[serde(default)]
    pub max_answer_tokens: Option<usize>,
    /// What an RLHF run is trained to please; its prompts are those of `train`.
    #[serde(default)]
    pub reward: Option<RewardSection>,
    /// Pairs of one update.
    #[serde(default = "sixteen")]
    pub batch: usize,
    /// Where the reference's log-probs are kept between runs.
    #[serde(default = "cache")]
    pub cache: String,
}

fn sixteen() -> usize {
    16
}

fn cache() -> String {
    "runs/cache".into()
}

impl DataSection {
    /// Checks the numbers and the renames.
    ///
    /// # Errors
    /// Names the first setting that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let tokens = |key, limit: Option<usize>, least: usize, range| match limit {
            Some(got) if got < least || got > 1 << 20 => {
                Err(ConfigError::OutOfRange { key, range, got: got as f64 })
            }
            _ => Ok(()),
        };
        tokens("data.batch", Some(self.batch), 1, "[1, 1048576]")?;
        tokens("data.max_prompt_tokens", self.max_prompt_tokens, 2, "[2, 1048576]")?;
        tokens("data.max_answer_tokens", self.max_answer_tokens, 1, "[1, 1048576]")?;
        let renamed = Fields::renamed(self.fields.iter().map(String::as_str));
        renamed.map_err(|error| ConfigError::Value { key: "data.fields".into(), what: error.to_string() })?;
        Ok(())
    }

    /// Checks that everything it names is there.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check_paths(&self) -> Result<(), ConfigError> {
        paths::existing("data.train", &self.train)?;
        self.eval.iter().try_for_each(|path| paths::existing("data.eval", path).map(|_| ()))?;
        self.prompts.iter().try_for_each(|path| paths::existing("data.prompts", path).map(|_| ()))?;
        match &self.reward {
            Some(RewardSection::Model { folder }) => {
                paths::existing("data.reward.folder", folder).map(|_| ())
            }
            Some(RewardSection::Vader) | None => Ok(()),
        }
    }

    /// Reads the file at `path`, the value of `key`.
    ///
    /// # Errors
    /// If the file cannot be read, or has a bad row in strict reading.
    pub fn read(&self, key: &'static str, path: &str) -> anyhow::Result<Dataset> {
        let path = paths::existing(key, path)?;
        let fields = Fields::renamed(self.fields.iter().map(String::as_str))?;
        let options = ReadOptions { fields, on_bad: self.on_bad, ..ReadOptions::default() };
        Ok(Dataset::load(&path, &options)?)
    }

    /// The limits on tokens, for a model that can look back on `positions`.
    ///
    /// # Errors
    /// If both together are more than that.
    pub fn limits(&self, positions: usize) -> Result<Limits, ConfigError> {
        let half = Limits::of_sight(positions);
        let prompt = self.max_prompt_tokens.unwrap_or(half.prompt);
        let answer = self.max_answer_tokens.unwrap_or(half.answer);
        if prompt + answer > positions {
            let what = format!(
                "{prompt} tokens of a prompt and {answer} of an answer are more than the {positions} that the model \
                 can look back on; lower `data.max_prompt_tokens` or `data.max_answer_tokens`"
            );
            return Err(ConfigError::Value { key: "data.max_prompt_tokens".into(), what });
        }
        Ok(Limits { prompt, answer })
    }
}

//! What each stage of the pipeline changes in a shipped config.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::exam::{OPENINGS, PREFERENCES};

/// The stages that train, in order.
pub const STAGES: &[&str] = &["base", "reward", "ppo", "dpo"];

/// Tokens of an opening and of an answer at most: a whole story of the grammar fits.
pub const TOKENS: [usize; 2] = [24, 80];

/// How much of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Minutes on two cores.
    Full,
    /// Seconds: it shows that every stage works, and proves nothing.
    Tiny,
}

impl Size {
    /// The number for this size.
    pub fn pick<T>(self, full: T, tiny: T) -> T {
        match self {
            Self::Full => full,
            Self::Tiny => tiny,
        }
    }
}

/// The config of a stage, and what it changes there.
pub fn recipe(stage: &str, size: Size, folder: &Path) -> (&'static str, Vec<String>) {
    let place = |path: &str| Value::String(folder.join(path).display().to_string());
    match stage {
        "base" => {
            let changes = [
                ("corpus.stories", size.pick(4_000, 400)),
                ("total_steps", size.pick(6_400, 320)),
                ("start.from.hidden", size.pick(64, 16)),
                ("start.from.layers", size.pick(2, 1)),
                ("start.from.heads", size.pick(4, 2)),
                ("start.from.kv_heads", size.pick(4, 2)),
                ("eval.every_steps", size.pick(3_200, 320)),
            ];
            ("sft-stories", changes.iter().map(|(key, value)| format!("{key}={value}")).collect())
        }
        _ => {
            let [prompt, answer] = TOKENS;
            let mut set = vec![
                format!("lm.model={}", place("base/model")),
                format!("data.train={}", place(PREFERENCES)),
                format!("data.prompts={}", place(OPENINGS)),
                format!("data.cache={}", place("cache")),
                r#"data.gold="stories""#.to_owned(),
                r#"data.ending="eos""#.to_owned(),
                format!("data.max_prompt_tokens={prompt}"),
                format!("data.max_answer_tokens={answer}"),
                format!("eval.episodes={}", size.pick(48, 8)),
            ];
            let (config, own) = match stage {
                "reward" => ("rm-stories", reward(size)),
                "dpo" => ("dpo-stories", dpo(size)),
                "ppo" => {
                    let model = place("reward/model");
                    set.push(format!("data.reward={{kind=\"model\",folder={model}}}"));
                    ("rlhf-stories", ppo(size))
                }
                _ => unreachable!("one of STAGES"),
            };
            set.extend(own);
            (config, set)
        }
    }
}

fn reward(size: Size) -> Vec<String> {
    let steps = size.pick(1_600, 64);
    vec![format!("total_steps={steps}"), format!("eval.every_steps={steps}")]
}

fn dpo(size: Size) -> Vec<String> {
    let steps = size.pick(3_200, 64);
    let rate = "algo.optimizer.learning_rate=1e-4".to_owned();
    vec![rate, format!("total_steps={steps}"), format!("eval.every_steps={steps}")]
}

fn ppo(size: Size) -> Vec<String> {
    let steps = size.pick(3_840, 128);
    vec![
        "algo.rollout.kl={kind=\"proportional\",beta=0.3,target=3.0}".to_owned(), // at 8 nats the proxy is hacked
        "guards.cut_ceiling=0.9".to_owned(), // answers that end are the rule here
        format!("total_steps={steps}"),
        format!("eval.every_steps={steps}"),
    ]
}

//! `[algo]`: which algorithm, and its settings.

use rl_algos::{
    A2cConfig, GrpoConfig, LmRolloutConfig, PpoConfig, ReinforceConfig, RlhfPpoConfig, RlooConfig,
};
use serde::Serialize;
use toml::{Table, Value};

use super::error::ConfigError;
use super::reader::{Misread, Mistake, read};

/// `[algo]`: one kind, and that kind's settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AlgoConfig {
    /// Proximal policy optimisation.
    Ppo(PpoConfig),
    /// Advantage actor-critic.
    A2c(A2cConfig),
    /// REINFORCE.
    Reinforce(ReinforceConfig),
    /// The same on responses of a language model, with KL to a reference.
    RlhfPpo(RlhfPpoConfig),
    /// REINFORCE on responses, against the others of their group.
    Rloo(RlooConfig),
    /// Group-relative policy optimisation.
    Grpo(GrpoConfig),
}

/// The kinds of `[algo]`, with what they are.
pub const ALGORITHMS: &[(&str, &str)] = &[
    ("ppo", "proximal policy optimisation: clip, KL penalty, or both"),
    ("a2c", "advantage actor-critic: one gradient step on each short rollout"),
    ("reinforce", "the policy gradient from whole episodes, with or without a baseline"),
    ("rlhf_ppo", "PPO on a language model's responses, with a controlled KL to its reference"),
    ("rloo", "REINFORCE on responses, each against the others to its prompt; no critic"),
    ("grpo", "group-relative policy optimisation: token losses, KL in the loss; no critic"),
];
const ALGORITHM_NAMES: &[&str] = &["ppo", "a2c", "reinforce", "rlhf_ppo", "rloo", "grpo"];

impl AlgoConfig {
    /// The algorithm of a table.
    ///
    /// # Errors
    /// An unknown kind, key or choice, or a value of another type.
    pub fn from_table(mut table: Table) -> Result<Self, ConfigError> {
        let root = Value::Table(table.clone());
        let misread = |mistake, path: &[&str]| {
            let path = path.iter().map(|key| key.to_string()).collect();
            ConfigError::misread(Misread { path, mistake }, &root, &["algo"])
        };
        let kind = table.remove("kind").ok_or_else(|| misread(Mistake::MissingKey("kind"), &[]))?;
        let settings = Value::Table(table);
        let algo = match kind.as_str() {
            Some("ppo") => read(&settings).map(Self::Ppo),
            Some("a2c") => read(&settings).map(Self::A2c),
            Some("reinforce") => read(&settings).map(Self::Reinforce),
            Some("rlhf_ppo") => read(&settings).map(Self::RlhfPpo),
            Some("rloo") => read(&settings).map(Self::Rloo),
            Some("grpo") => read(&settings).map(Self::Grpo),
            _ => return Err(misread(Mistake::UnknownChoice { known: ALGORITHM_NAMES }, &["kind"])),
        };
        algo.map_err(|e| ConfigError::misread(e, &root, &["algo"]))
    }

    /// Its name in `kind`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ppo(_) => "ppo",
            Self::A2c(_) => "a2c",
            Self::Reinforce(_) => "reinforce",
            Self::RlhfPpo(_) => "rlhf_ppo",
            Self::Rloo(_) => "rloo",
            Self::Grpo(_) => "grpo",
        }
    }

    /// How an RLHF algorithm samples; `None` for the others.
    pub fn rlhf_rollout(&self) -> Option<&LmRolloutConfig> {
        match self {
            Self::Ppo(_) | Self::A2c(_) | Self::Reinforce(_) => None,
            Self::RlhfPpo(RlhfPpoConfig { rollout, .. })
            | Self::Rloo(RlooConfig { rollout, .. })
            | Self::Grpo(GrpoConfig { rollout, .. }) => Some(rollout),
        }
    }

    /// Steps of each environment between two updates; of whole episodes, the fewest.
    pub fn rollout_steps(&self) -> usize {
        match self {
            Self::Ppo(ppo) => ppo.rollout_steps,
            Self::A2c(a2c) => a2c.rollout_steps,
            Self::Reinforce(_) | Self::RlhfPpo(_) | Self::Rloo(_) | Self::Grpo(_) => 1,
        }
    }
}

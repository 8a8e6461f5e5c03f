//! `[algo]`: which algorithm, and its settings.

use rl_algos::{
    A2cConfig, DpoConfig, DqnConfig, GrpoConfig, LmRolloutConfig, PpoConfig, ReinforceConfig,
    RewardModelConfig, RlhfPpoConfig, RlooConfig, SftConfig, TrpoConfig,
};
use serde::Serialize;
use toml::{Table, Value};

use super::error::ConfigError;
use super::reader::{Misread, Mistake, OFF, read};
use super::{Layout, ModelConfig, NormalizeConfig};

/// `[algo]`: one kind, and that kind's settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AlgoConfig {
    /// Proximal policy optimisation.
    Ppo(PpoConfig),
    /// Trust-region policy optimisation.
    Trpo(TrpoConfig),
    /// The natural policy gradient: TRPO's step without its line search.
    Npg(TrpoConfig),
    /// Advantage actor-critic.
    A2c(A2cConfig),
    /// REINFORCE.
    Reinforce(ReinforceConfig),
    /// Deep Q-learning.
    Dqn(DqnConfig),
    /// PPO on responses of a language model, with KL to a reference.
    RlhfPpo(RlhfPpoConfig),
    /// REINFORCE on responses, against the others of their group.
    Rloo(RlooConfig),
    /// Group-relative policy optimisation.
    Grpo(GrpoConfig),
    /// A reward model from comparisons.
    RewardModel(RewardModelConfig),
    /// Direct preference optimisation and its relatives.
    Dpo(DpoConfig),
    /// Supervised fine-tuning of a language model.
    Sft(SftConfig),
}

/// The kinds of `[algo]`, with what they are.
pub const ALGORITHMS: &[(&str, &str)] = &[
    ("ppo", "proximal policy optimisation: clip, KL penalty, or both"),
    ("trpo", "trust-region policy optimisation: the natural gradient, checked by a line search"),
    ("npg", "natural policy gradient: every step as the Fisher matrix proposes it"),
    ("a2c", "advantage actor-critic: one gradient step on each short rollout"),
    ("reinforce", "the policy gradient from whole episodes, with or without a baseline"),
    ("dqn", "deep Q-learning: action values from a replay, double or not; numbered actions only"),
    ("rlhf_ppo", "PPO on a language model's responses, with a controlled KL to its reference"),
    ("rloo", "REINFORCE on responses, each against the others to its prompt; no critic"),
    ("grpo", "group-relative policy optimisation: token losses, KL in the loss; no critic"),
    ("reward_model", "a language model's trunk that scores texts, from comparisons: Bradley and Terry"),
    ("dpo", "direct preference optimisation and its relatives: the policy as its own reward model"),
    ("sft", "supervised fine-tuning of a language model, and pre-training from scratch"),
];
const ALGORITHM_NAMES: &[&str] = &[
    "ppo",
    "trpo",
    "npg",
    "a2c",
    "reinforce",
    "dqn",
    "rlhf_ppo",
    "rloo",
    "grpo",
    "reward_model",
    "dpo",
    "sft",
];

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
        if kind.as_str() == Some("npg") {
            // The settings are TRPO's but for the line search, which is off here and stays off.
            table.entry("line_search").or_insert_with(|| OFF.into());
        }
        let settings = Value::Table(table);
        let algo = match kind.as_str() {
            Some("ppo") => read(&settings).map(Self::Ppo),
            Some("trpo") => read(&settings).map(Self::Trpo),
            Some("npg") => read(&settings).map(Self::Npg),
            Some("a2c") => read(&settings).map(Self::A2c),
            Some("reinforce") => read(&settings).map(Self::Reinforce),
            Some("dqn") => read(&settings).map(Self::Dqn),
            Some("rlhf_ppo") => read(&settings).map(Self::RlhfPpo),
            Some("rloo") => read(&settings).map(Self::Rloo),
            Some("grpo") => read(&settings).map(Self::Grpo),
            Some("reward_model") => read(&settings).map(Self::RewardModel),
            Some("dpo") => read(&settings).map(Self::Dpo),
            Some("sft") => read(&settings).map(Self::Sft),
            _ => return Err(misread(Mistake::UnknownChoice { known: ALGORITHM_NAMES }, &["kind"])),
        };
        algo.map_err(|e| ConfigError::misread(e, &root, &["algo"]))
    }

    /// Its name in `kind`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ppo(_) => "ppo",
            Self::Trpo(_) => "trpo",
            Self::Npg(_) => "npg",
            Self::A2c(_) => "a2c",
            Self::Reinforce(_) => "reinforce",
            Self::Dqn(_) => "dqn",
            Self::RlhfPpo(_) => "rlhf_ppo",
            Self::Rloo(_) => "rloo",
            Self::Grpo(_) => "grpo",
            Self::RewardModel(_) => "reward_model",
            Self::Dpo(_) => "dpo",
            Self::Sft(_) => "sft",
        }
    }

    /// How an RLHF algorithm samples; `None` for the others.
    pub fn rlhf_rollout(&self) -> Option<&LmRolloutConfig> {
        match self {
            Self::Ppo(_)
            | Self::Trpo(_)
            | Self::Npg(_)
            | Self::A2c(_)
            | Self::Reinforce(_)
            | Self::Dqn(_) => None,
            Self::RewardModel(_) | Self::Dpo(_) | Self::Sft(_) => None,
            Self::RlhfPpo(RlhfPpoConfig { rollout, .. })
            | Self::Rloo(RlooConfig { rollout, .. })
            | Self::Grpo(GrpoConfig { rollout, .. }) => Some(rollout),
        }
    }

    /// Steps of each environment between two updates; of whole episodes, the fewest.
    pub fn rollout_steps(&self) -> usize {
        match self {
            Self::Ppo(ppo) => ppo.rollout_steps,
            Self::Trpo(trpo) | Self::Npg(trpo) => trpo.rollout_steps,
            Self::A2c(a2c) => a2c.rollout_steps,
            Self::Dqn(dqn) => dqn.rollout_steps,
            Self::Reinforce(_) | Self::RlhfPpo(_) | Self::Rloo(_) | Self::Grpo(_) => 1,
            Self::RewardModel(_) | Self::Dpo(_) | Self::Sft(_) => 1,
        }
    }

    /// Checks that the algorithm can work with such a model and such normalisers, and that its name is the right one.
    ///
    /// # Errors
    /// Names the first setting that does not go with the algorithm.
    pub fn fit(&self, model: &ModelConfig, normalize: &NormalizeConfig) -> Result<(), ConfigError> {
        if let Self::Dqn(_) = self {
            return fit_dqn(model, normalize);
        }
        if let (Self::Reinforce(_), true) = (self, model.noise_correlation > 0.0) {
            return Err(ConfigError::NotWithAlgo {
                key: "model.noise_correlation",
                got: model.noise_correlation.to_string(),
                algo: "reinforce",
                why: "a trajectory's probability is the product of its steps' only without it; use 0",
            });
        }
        if self.rlhf_rollout().is_some() && model.temperature != 1.0 {
            return Err(ConfigError::NotWithAlgo {
                key: "model.temperature",
                got: model.temperature.to_string(),
                algo: self.name(),
                why: "responses are sampled at `algo.rollout.temperature`; use 1",
            });
        }
        let (Self::Trpo(trpo) | Self::Npg(trpo)) = self else { return Ok(()) };
        let (key, got, why) = match (self, &trpo.line_search) {
            _ if model.layout == Layout::Shared => (
                "model.layout",
                "\"shared\"".into(),
                "the value's optimiser would move the policy; use \"separate\"",
            ),
            _ if model.dropout > 0.0 => {
                ("model.dropout", model.dropout.to_string(), "KL would be measured on another network; use 0")
            }
            (Self::Npg(_), Some(_)) => {
                ("algo.line_search", "a table".into(), "with a line search it is `algo.kind` = \"trpo\"")
            }
            (Self::Trpo(_), None) => {
                ("algo.line_search", "\"off\"".into(), "without a line search it is `algo.kind` = \"npg\"")
            }
            _ => return Ok(()),
        };
        Err(ConfigError::NotWithAlgo { key, got, algo: self.name(), why })
    }
}

/// DQN learns one network from transitions of long ago.
fn fit_dqn(model: &ModelConfig, normalize: &NormalizeConfig) -> Result<(), ConfigError> {
    let stale = "the statistics would have moved since a transition was stored; take it out";
    let (key, got, why) = match normalize {
        _ if model.layout == Layout::Shared => {
            ("model.layout", "\"shared\"".into(), "it has one network; use \"separate\"")
        }
        _ if model.temperature != 1.0 => {
            ("model.temperature", model.temperature.to_string(), "it explores by `algo.epsilon`; use 1")
        }
        NormalizeConfig { obs_clip: Some(clip), .. } => ("normalize.obs_clip", clip.to_string(), stale),
        NormalizeConfig { reward_clip: Some(clip), .. } => ("normalize.reward_clip", clip.to_string(), stale),
        _ => return Ok(()),
    };
    Err(ConfigError::NotWithAlgo { key, got, algo: "dqn", why })
}

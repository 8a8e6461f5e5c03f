//! The run file: everything a run depends on, as checked data.
//!
//! A file becomes a tree of TOML, `--set` changes the tree, the tree becomes a [`RunConfig`], and
//! [`RunConfig::validate`] refuses what cannot work. Nothing else about a run can be set, so the
//! resolved config in a run's folder is the run.

pub mod algo;
pub mod assignment;
pub mod error;
pub mod nearest;
pub mod reader;
pub mod shipped;
mod sources;

use rl_algos::GuardConfig;
use rl_models::{Activation, Kernels, MlpConfig};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::lm::config::{CorpusConfig, StartConfig};
use crate::preference::config::{DataSection, LmSection};
use crate::rlhf::config::TokenWorldConfig;
use crate::world::TaskKind;
pub use algo::{ALGORITHMS, AlgoConfig};
use error::ConfigError;
use reader::{read, without_null};

/// A run, resolved: no setting is left open.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunConfig {
    /// Decides everything random in the run.
    pub seed: u64,
    /// Where tensors live.
    pub device: String,
    /// Environment steps; the run makes as many whole rollouts as fit.
    pub total_steps: u64,
    /// What is to be learnt.
    pub task: TaskConfig,
    /// What learns it.
    pub model: ModelConfig,
    /// How.
    pub algo: AlgoConfig,
    /// What the learner sees of observations and rewards.
    pub normalize: NormalizeConfig,
    /// How the result is measured.
    pub eval: EvalConfig,
    /// How the run survives interruption.
    pub checkpoint: CheckpointConfig,
    /// The token world of an RLHF run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_world: Option<TokenWorldConfig>,
    /// What an RLHF run is watched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guards: Option<GuardConfig>,
    /// The language model of a run on texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lm: Option<LmSection>,
    /// What it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSection>,
    /// The language model that a run on a corpus begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartConfig>,
    /// The texts that it imitates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusConfig>,
}

/// The run file as it is written; `algo` is read once its kind is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    #[serde(default = "one")]
    seed: u64,
    #[serde(default = "flex")]
    device: String,
    total_steps: u64,
    task: TaskConfig,
    #[serde(default)]
    model: ModelConfig,
    algo: Table,
    #[serde(default)]
    normalize: NormalizeConfig,
    #[serde(default)]
    eval: EvalConfig,
    #[serde(default)]
    checkpoint: CheckpointConfig,
    token_world: Option<TokenWorldConfig>,
    guards: Option<GuardConfig>,
    lm: Option<LmSection>,
    data: Option<DataSection>,
    start: Option<StartConfig>,
    corpus: Option<CorpusConfig>,
}

fn one() -> u64 {
    1
}

fn flex() -> String {
    "flex".into()
}

fn eight() -> usize {
    8
}

/// `[task]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskConfig {
    /// The environment.
    pub kind: TaskKind,
    /// How many of it run side by side.
    #[serde(default = "eight")]
    pub envs: usize,
    /// Seconds after which an environment that does not answer ends the run; absent waits for ever.
    #[serde(default)]
    pub step_timeout_s: Option<f64>,
}

/// Whether policy and value share their hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Two networks.
    #[default]
    Separate,
    /// One trunk under two heads.
    Shared,
}

/// `[model]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The non-linearity after each hidden layer.
    pub activation: Activation,
    /// Probability of dropping a hidden unit in training passes.
    pub dropout: f64,
    /// Whether policy and value share their hidden layers.
    pub layout: Layout,
    /// First log σ of a continuous policy.
    pub log_std_init: f64,
    /// Lowest log σ of a continuous policy.
    pub log_std_min: f64,
    /// Highest log σ of a continuous policy.
    pub log_std_max: f64,
    /// ρ, how much of a continuous policy's noise stays from one step to the next; 0 draws it anew.
    pub noise_correlation: f64,
    /// T: the policy is `∝ π^{1/T}`, in play and in learning. Above 1 it explores more.
    pub temperature: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        let MlpConfig { hidden, activation, dropout, .. } = MlpConfig::default();
        let (log_std_init, log_std_min, log_std_max) = (0.0, -5.0, 2.0);
        Self {
            hidden,
            activation,
            dropout,
            layout: Layout::Separate,
            log_std_init,
            log_std_min,
            log_std_max,
            noise_correlation: 0.0,
            temperature: 1.0,
        }
    }
}

impl ModelConfig {
    /// The network's shape, run by `kernels`.
    pub fn mlp(&self, kernels: Kernels) -> MlpConfig {
        MlpConfig { hidden: self.hidden.clone(), activation: self.activation, dropout: self.dropout, kernels }
    }
}

/// `[normalize]`: absent is off.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NormalizeConfig {
    /// Standardise observations, and clip them to ± this many standard deviations.
    pub obs_clip: Option<f64>,
    /// Divide rewards by the standard deviation of the discounted return, and clip them to ± this.
    pub reward_clip: Option<f64>,
}

/// `[eval]`: greedy episodes of a frozen policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// Environment steps between evaluations; 0 evaluates only at the end.
    pub every_steps: u64,
    /// Episodes of one evaluation.
    pub episodes: usize,
    /// Seed of the evaluation's environments. The same for every training seed, so that all face the
    /// same episodes; far from the seeds people train with, so that none has trained on them.
    pub seed: u64,
}

impl EvalConfig {
    /// Whether an evaluation lies in `(before, after]`.
    pub fn is_due(&self, before: u64, after: u64) -> bool {
        self.every_steps > 0 && after / self.every_steps > before / self.every_steps
    }
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self { every_steps: 0, episodes: 20, seed: 1_000_000 }
    }
}

/// `[checkpoint]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// Updates between two checkpoints.
    pub every_updates: u64,
    /// How many of the last checkpoints stay.
    pub keep: usize,
    /// How many checkpoints of the best evaluations stay beside them.
    pub keep_best: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every_updates: 50, keep: 2, keep_best: 0 }
    }
}

impl RunConfig {
    /// The config of a tree, checked.
    ///
    /// # Errors
    /// The first thing that cannot work.
    pub fn from_tree(tree: Table) -> Result<Self, ConfigError> {
        let root = Value::Table(tree);
        let file: RunFile = read(&root).map_err(|error| ConfigError::misread(error, &root, &[]))?;
        let RunFile { seed, device, total_steps, task, model, algo, normalize, eval, checkpoint, .. } = file;
        let algo = AlgoConfig::from_table(algo)?;
        let rlhf = algo.rlhf_rollout().is_some();
        let in_world = rlhf && task.kind == TaskKind::TokenWorld;
        let token_world = file.token_world.or_else(|| in_world.then(TokenWorldConfig::default));
        let guards = file.guards.or_else(|| rlhf.then(GuardConfig::default));
        let imitates = matches!(algo, AlgoConfig::Sft(_));
        let config = Self {
            seed,
            device,
            total_steps,
            task,
            model,
            algo,
            normalize,
            eval,
            checkpoint,
            token_world,
            guards,
            lm: file.lm,
            data: file.data,
            start: file.start.or_else(|| imitates.then(StartConfig::default)),
            corpus: file.corpus.or_else(|| imitates.then(CorpusConfig::default)),
        };
        config.validate()?;
        Ok(config)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let Self { task, model, normalize, eval, checkpoint, .. } = self;
        let positive = |key, got: f64| in_range(key, "(0, ∞)", got, got > 0.0 && got.is_finite());
        let counted = |key, got: f64| in_range(key, "[1, ∞)", got, got >= 1.0);
        in_range("task.envs", "[1, 65536]", task.envs as f64, (1..=65_536).contains(&task.envs))?;
        for &units in &model.hidden {
            in_range(
                "model.hidden",
                "[1, 65536] in each layer",
                units as f64,
                (1..=65_536).contains(&units),
            )?;
        }
        in_range("model.dropout", "[0, 1)", model.dropout, (0.0..1.0).contains(&model.dropout))?;
        let (low, high) = (model.log_std_min, model.log_std_max);
        in_range("model.log_std_min", "[-20, log_std_max)", low, (-20.0..high).contains(&low))?;
        in_range("model.log_std_max", "(log_std_min, 20]", high, high <= 20.0)?;
        let init = model.log_std_init;
        in_range("model.log_std_init", "[log_std_min, log_std_max]", init, (low..=high).contains(&init))?;
        let rho = model.noise_correlation;
        in_range("model.noise_correlation", "[0, 1)", rho, (0.0..1.0).contains(&rho))?;
        positive("model.temperature", model.temperature)?;
        if model.layout == Layout::Shared && model.hidden.is_empty() {
            return Err(ConfigError::NothingShared);
        }
        normalize.obs_clip.map_or(Ok(()), |clip| positive("normalize.obs_clip", clip))?;
        normalize.reward_clip.map_or(Ok(()), |clip| positive("normalize.reward_clip", clip))?;
        let timeout = task.step_timeout_s.unwrap_or(1.0);
        in_range("task.step_timeout_s", "[0.1, 1e6]", timeout, (0.1..=1e6).contains(&timeout))?;
        counted("eval.episodes", eval.episodes as f64)?;
        counted("checkpoint.every_updates", checkpoint.every_updates as f64)?;
        counted("checkpoint.keep", checkpoint.keep as f64)?;
        match &self.algo {
            AlgoConfig::Ppo(ppo) => ppo.validate(task.envs)?,
            AlgoConfig::Trpo(trpo) | AlgoConfig::Npg(trpo) => trpo.validate(task.envs)?,
            AlgoConfig::A2c(a2c) => a2c.validate()?,
            AlgoConfig::Reinforce(reinforce) => reinforce.validate()?,
            AlgoConfig::Dqn(dqn) => dqn.validate()?,
            AlgoConfig::RlhfPpo(ppo) => ppo.validate()?,
            AlgoConfig::Rloo(rloo) => rloo.validate()?,
            AlgoConfig::Grpo(grpo) => grpo.validate()?,
            AlgoConfig::RewardModel(settings) => settings.validate()?,
            AlgoConfig::Dpo(dpo) => dpo.validate(self.data.as_ref().map_or(1, |data| data.batch))?,
            AlgoConfig::Sft(sft) => sft.validate()?,
        }
        self.start.as_ref().map_or(Ok(()), StartConfig::validate)?;
        self.algo.fit(model, normalize)?;
        self.match_task()?;
        if self.updates() == 0 {
            if let AlgoConfig::Sft(sft) = &self.algo {
                let what = format!("{} is less than one update of {} rows", self.total_steps, sft.batch);
                return Err(ConfigError::Value { key: "total_steps".into(), what });
            }
            let (envs, steps) = (task.envs, self.algo.rollout_steps());
            let (total, rollout) = (self.total_steps, self.rollout());
            return Err(ConfigError::TooShort { total, rollout, envs, steps });
        }
        Ok(())
    }

    /// What an RLHF run is watched for.
    pub fn guards(&self) -> GuardConfig {
        self.guards.clone().unwrap_or_default()
    }

    /// Environment steps per update: of whole episodes the fewest, of RLHF responses, of preferences pairs.
    pub fn rollout(&self) -> u64 {
        if let AlgoConfig::Sft(sft) = &self.algo {
            return sft.batch as u64;
        }
        match (self.algo.rlhf_rollout(), &self.data) {
            (Some(rollout), _) => rollout.responses() as u64,
            (None, Some(data)) => data.batch as u64,
            (None, None) => (self.task.envs * self.algo.rollout_steps()) as u64,
        }
    }

    /// Updates of the whole run; of whole episodes, the most.
    pub fn updates(&self) -> u64 {
        self.total_steps / self.rollout()
    }

    /// Whether no further update fits after `step` environment steps.
    pub fn is_over(&self, step: u64) -> bool {
        step + self.rollout() > self.total_steps
    }

    /// The run file that gives exactly this config.
    pub fn resolved(&self) -> String {
        let tree = serde_json::to_value(self).expect("a config is plain data");
        toml::to_string(&without_null(tree)).expect("a config is plain data")
    }
}

pub(crate) fn in_range(
    key: &'static str,
    range: &'static str,
    got: f64,
    ok: bool,
) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError::OutOfRange { key, range, got }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolved_file_of_every_shipped_config_gives_the_same_config() {
        for (name, text) in shipped::CONFIGS {
            let config =
                RunConfig::from_tree(text.parse().unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let again = RunConfig::from_tree(config.resolved().parse().unwrap()).unwrap();
            assert_eq!(config, again, "{name}");
        }
    }

    #[test]
    fn what_is_switched_off_stays_off_in_the_resolved_file() {
        let text = "total_steps = 1000\n[task]\nkind = \"cart_pole\"\nenvs = 1\n[algo]\nkind = \"ppo\"\nclip = \"off\"\n";
        let config = RunConfig::from_tree(text.parse().unwrap()).unwrap();
        let again = RunConfig::from_tree(config.resolved().parse().unwrap()).unwrap();
        let AlgoConfig::Ppo(ppo) = again.algo else { panic!("the file says ppo") };
        assert_eq!(ppo.clip, None);
    }
}

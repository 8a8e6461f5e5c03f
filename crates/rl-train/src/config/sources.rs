//! Which algorithm, task and tables go together, and whether the files that they name are there.

use rl_algos::GuardConfig;

use super::error::ConfigError;
use super::{AlgoConfig, RunConfig, in_range};
use crate::lm::config::{CorpusConfig, StartConfig};
use crate::paths;
use crate::preference::config::DataSection;
use crate::world::{TaskKind, World};

impl RunConfig {
    /// RLHF algorithms write responses in a token world, others learn from pairs of texts; the rest act in environments.
    ///
    /// # Errors
    /// Names the first two that do not go together.
    pub(super) fn match_task(&self) -> Result<(), ConfigError> {
        let (algo, task) = (self.algo.name(), self.task.kind.name());
        let rlhf = self.algo.rlhf_rollout().is_some();
        let pairs = matches!(self.algo, AlgoConfig::RewardModel(_) | AlgoConfig::Dpo(_));
        let imitates = matches!(self.algo, AlgoConfig::Sft(_));
        let cure = match (rlhf, pairs, self.task.kind) {
            (_, _, TaskKind::Corpus) if !imitates => "a corpus is learnt by `sft`",
            (_, _, kind) if imitates && kind != TaskKind::Corpus => {
                "it imitates texts: set `task.kind = \"corpus\"`"
            }
            _ if !imitates && (self.start.is_some() || self.corpus.is_some()) => {
                "take the tables [start] and [corpus] out"
            }
            (true, _, TaskKind::Text) | (_, true, TaskKind::Text) => return self.match_texts(),
            (_, true, _) => "it learns from pairs of texts: set `task.kind = \"text\"`",
            (_, _, TaskKind::Text) => {
                "texts are learnt from by `reward_model` and `dpo`, or by `rlhf_ppo`, `rloo` and `grpo`"
            }
            (true, _, kind) if kind != TaskKind::TokenWorld => {
                "it writes responses: set `task.kind = \"token_world\"` or `\"text\"`, or use `ppo`"
            }
            (false, _, TaskKind::TokenWorld) => "responses are learnt by `rlhf_ppo`, `rloo` or `grpo`",
            _ if self.lm.is_some() || self.data.is_some() => "take the tables [lm] and [data] out",
            _ if matches!(
                (&self.algo, self.task.kind.world()),
                (AlgoConfig::Dqn(_), World::Continuous(_))
            ) =>
            {
                "it compares numbered actions: take a discrete task, or use `ppo`"
            }
            _ if self.model.noise_correlation > 0.0
                && !matches!(self.task.kind.world(), World::Continuous(_)) =>
            {
                "its actions have no noise to correlate: set `model.noise_correlation = 0`"
            }
            _ if !rlhf && self.token_world.is_some() => "take the table [token_world] out",
            _ if !rlhf && self.guards_responses() => {
                "take the table [guards] out: guards watch responses (`guards.on_alarm` alone may stay)"
            }
            _ => {
                self.guards().validate()?;
                let [pairs, members] =
                    self.token_world.as_ref().map_or([1, 1], |world| [world.pairs, world.members]);
                in_range("token_world.pairs", "[1, ∞)", pairs as f64, pairs >= 1)?;
                return in_range("token_world.members", "[1, ∞)", members as f64, members >= 1);
            }
        };
        Err(ConfigError::Mismatch { algo, task, cure })
    }

    /// Whether `[guards]` says more than what bad numbers lead to.
    fn guards_responses(&self) -> bool {
        let plain =
            |guards: &GuardConfig| GuardConfig { on_alarm: guards.on_alarm, ..GuardConfig::default() };
        self.guards.as_ref().is_some_and(|guards| *guards != plain(guards))
    }

    /// A run on texts has a model and data.
    fn match_texts(&self) -> Result<(), ConfigError> {
        let missing = |table, cure| ConfigError::NoTable { task: self.task.kind.name(), table, cure };
        if self.lm.is_none() {
            return Err(missing("lm", "`model` is the folder of a language model"));
        }
        if self.algo.rlhf_rollout().is_some() {
            self.guards().validate()?;
        }
        match &self.data {
            None => Err(missing("data", "`train` is a file of preferences")),
            Some(data) => data.validate(),
        }
    }

    /// Checks that every file and folder that the run names is there.
    ///
    /// # Errors
    /// Names the first that is not, or the variable of the environment that is not set.
    pub fn check_paths(&self) -> Result<(), ConfigError> {
        if let Some(lm) = &self.lm {
            paths::existing("lm.model", &lm.model)?;
        }
        self.start.as_ref().map_or(Ok(()), StartConfig::check_paths)?;
        self.corpus.as_ref().map_or(Ok(()), CorpusConfig::check_paths)?;
        self.data.as_ref().map_or(Ok(()), DataSection::check_paths)
    }
}

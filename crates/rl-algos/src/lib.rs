//! Reinforcement learning and preference-learning algorithms, one file each.
//!
//! Two seams are all they share: a [`Rollout`] (what was sampled) and an [`Update`] (what one step
//! does with it). A collector makes rollouts ([`collect_env`]); an algorithm consumes them
//! ([`reinforce`], [`a2c`], [`ppo`], [`trpo`]); [`run`] is the loop between the two.

pub mod a2c;
pub mod adam;
pub mod checkpoint;
pub mod collect_env;
pub mod collect_episodes;
pub mod collect_lm;
pub mod collector;
pub mod dpo;
pub mod dqn;
pub mod epsilon_greedy;
pub mod error;
pub mod evaluate;
pub mod fisher;
pub mod grpo;
pub mod guard;
pub mod normalize;
pub mod pairs;
pub mod policy_steps;
pub mod ppo;
pub mod reference_cache;
pub mod reinforce;
pub mod replay;
pub mod responses;
pub mod reward_model;
pub mod rlhf_ppo;
pub mod rloo;
pub mod rollout;
pub mod run;
mod scalars;
mod score_function;
pub mod sft;
pub mod streams;
pub mod team;
pub mod trpo;
pub mod update;

pub use a2c::{A2c, A2cConfig, A2cReport};
pub use adam::{Adam, AdamConfig};
pub use collect_env::{EnvCollector, Episodes};
pub use collect_episodes::Credit;
pub use collect_lm::{LmCollector, LmRolloutConfig, MissingEos, ScoreNorm};
pub use collector::Collector;
pub use dpo::{Dpo, DpoConfig, DpoReport, PreferenceLoss};
pub use dqn::{Dqn, DqnConfig, DqnReport};
pub use epsilon_greedy::{EpsilonGreedy, Experience};
pub use error::{AlgoError, CollectError, UpdateError};
pub use evaluate::{Evaluation, evaluate};
pub use fisher::Fisher;
pub use grpo::{Grpo, GrpoConfig};
pub use guard::{GuardConfig, Guards, OnAlarm, Vitals};
pub use pairs::{PairBatch, TokenPair};
pub use policy_steps::{PolicyStepsConfig, PolicyStepsReport};
pub use ppo::{Ppo, PpoConfig, PpoReport};
pub use reference_cache::{Origin, ReferenceCache, ReferenceLogProbs};
pub use reinforce::{Baseline, Reinforce, ReinforceConfig, ReinforceReport};
pub use replay::{Replay, Transitions};
pub use responses::{KlPlace, Likelihoods, Responses, RewardNorm, likelihoods};
pub use reward_model::{RewardModelConfig, RewardModelReport, RewardModelling};
pub use rlhf_ppo::{RlhfPpo, RlhfPpoConfig};
pub use rloo::{Rloo, RlooConfig};
pub use rollout::{AdvantageNorm, Rollout};
pub use sft::{Fit, Sft, SftConfig, SftReport};
pub use team::{Link, Team};
pub use trpo::{Trpo, TrpoConfig, TrpoReport};
pub use update::{MetricSink, Persist, Report, Update};

//! RLHF runs: a language model in a token world, where every claim can be computed.
//!
//! The same run folder, metrics and checkpoints as other runs, another loop: responses instead of environment steps,
//! guards after every rollout, and exact numbers where the others evaluate.

pub mod config;
pub mod session;
pub mod train;

use std::sync::Arc;

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{Grpo, LmCollector, Persist, Responses, RlhfPpo, Rloo, Update};
use rl_core::dist::Categorical;
use rl_envs::TokenWorld;
use rl_models::{
    ActorCritic, Contexts, Policy, Response, Sampler, Sampling, Separate, TablePolicy, TableValue, Tempered,
    Tokens,
};

use crate::config::{AlgoConfig, RunConfig};
use crate::device::ChosenDevice;
use config::TokenWorldConfig;

/// The run's generators are streams of its seed, as in [`crate::assemble`].
const ACTIONS_STREAM: u64 = u64::MAX - 1;
/// Draws the proxy's comparisons and first weights.
const PROXY_STREAM: u64 = u64::MAX - 2;

/// A world, what is optimised in it, and where the policy starts.
#[derive(Clone)]
pub struct TokenTask {
    /// The world.
    pub world: Arc<TokenWorld>,
    /// The score of every sentence.
    pub reward: Arc<[f64]>,
    contexts: Contexts,
    device: Device,
}

impl TokenTask {
    /// The task of a config.
    pub fn new(config: &TokenWorldConfig, seed: u64, device: &Device) -> anyhow::Result<Self> {
        let world = config.world.enumerate();
        let reward = config.reward.scores(&world, config.pairs, &mut stream(seed, PROXY_STREAM))?;
        let (v, l) = (world.vocabulary(), world.length());
        let contexts = config.policy.contexts(v, l);
        Ok(Self { world: Arc::new(world), reward: reward.into(), contexts, device: device.clone() })
    }

    /// The reference as a table.
    pub fn reference(&self) -> TablePolicy {
        TablePolicy::new(self.contexts, &self.device, |past| {
            let past: Vec<usize> = past.iter().map(|&token| token as usize).collect();
            self.world.next_log_probs(&past).iter().map(|&l| l as f32).collect()
        })
    }

    fn sentence(&self, y: &Response) -> usize {
        self.world.index(&y.tokens.iter().map(|&token| token as usize).collect::<Vec<_>>())
    }

    /// The score of each response.
    pub fn score(&self, written: &[Response]) -> Vec<f64> {
        written.iter().map(|y| self.reward[self.sentence(y)]).collect()
    }

    /// The gold reward of each response.
    pub fn gold(&self, written: &[Response]) -> Vec<f64> {
        written.iter().map(|y| self.world.gold()[self.sentence(y)]).collect()
    }
}

/// What an RLHF run is made of, before its first update.
pub struct RlhfParts<M, U> {
    /// The policy, with or without a critic.
    pub model: M,
    /// Its laws.
    pub laws: fn(&M, &Tokens) -> Categorical,
    /// Its table.
    pub table: fn(&M) -> &TablePolicy,
    /// π_ref, at the run's temperature.
    pub reference: Tempered<TablePolicy>,
    /// What learns.
    pub algorithm: U,
    /// What samples.
    pub collector: LmCollector,
    /// What it is about.
    pub task: TokenTask,
    /// Draws sentences and minibatches.
    pub rng: ChaCha8Rng,
    /// Where tensors live.
    pub device: ChosenDevice,
}

/// Something to do with an RLHF run, whatever its types are.
pub trait RlhfJob {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<M, U>(self, parts: RlhfParts<M, U>) -> Self::Output
    where
        M: Sampler + burn::module::Module,
        U: Update<M, Data = Responses> + Persist;
}

/// Calls `job` with what `config` asks for; `None` if it is no RLHF run.
///
/// # Errors
/// If the reward model learns nothing from its comparisons.
pub fn assemble<J: RlhfJob>(
    config: &RunConfig,
    device: ChosenDevice,
    job: J,
) -> anyhow::Result<Option<J::Output>> {
    let Some(world) = &config.token_world else { return Ok(None) };
    let Some(rollout) = config.algo.rlhf_rollout() else { return Ok(None) };
    let task = TokenTask::new(world, config.seed, &device.device)?;
    let how = Sampling { temperature: 1.0, max_tokens: task.world.length(), stop: vec![] };
    let collector = LmCollector::new(rollout.clone(), vec![vec![]], how, 0, &device.device);
    let reference = Tempered::new(task.reference(), rollout.temperature);
    let (updates, rng) = (config.updates(), stream(config.seed, ACTIONS_STREAM));
    let max_tokens = task.world.length();
    let alone: Parts<Tempered<TablePolicy>> = Parts {
        model: reference.clone(),
        laws: |model, tokens| Policy::policy(model, tokens),
        table: |model| &model.model,
    };
    Ok(match &config.algo {
        AlgoConfig::RlhfPpo(ppo) => {
            let value = TableValue::new(task.contexts, &device.device);
            let parts: Parts<Tempered<Separate<TablePolicy, TableValue>>> = Parts {
                model: Tempered::new(Separate { policy: task.reference(), value }, rollout.temperature),
                laws: |model, tokens| ActorCritic::policy(model, tokens),
                table: |model| &model.model.policy,
            };
            let algorithm = RlhfPpo::new(ppo, updates);
            Some(job.run(parts.with(reference, algorithm, collector, task, rng, device)))
        }
        AlgoConfig::Rloo(rloo) => {
            let algorithm = Rloo::new(rloo, updates);
            Some(job.run(alone.with(reference, algorithm, collector, task, rng, device)))
        }
        AlgoConfig::Grpo(grpo) => {
            let algorithm = Grpo::new(grpo, max_tokens, updates);
            Some(job.run(alone.with(reference, algorithm, collector, task, rng, device)))
        }
        _ => None,
    })
}

/// A model and how to look into it.
struct Parts<M> {
    model: M,
    laws: fn(&M, &Tokens) -> Categorical,
    table: fn(&M) -> &TablePolicy,
}

impl<M> Parts<M> {
    fn with<U>(
        self,
        reference: Tempered<TablePolicy>,
        algorithm: U,
        collector: LmCollector,
        task: TokenTask,
        rng: ChaCha8Rng,
        device: ChosenDevice,
    ) -> RlhfParts<M, U> {
        let Self { model, laws, table } = self;
        RlhfParts { model, laws, table, reference, algorithm, collector, task, rng, device }
    }
}

fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

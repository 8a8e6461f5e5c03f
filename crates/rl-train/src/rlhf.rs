//! RLHF runs: a language model in a token world, where every claim can be computed.
//!
//! Responses instead of environment steps, guards after every rollout, and exact numbers where others evaluate.

pub mod config;
pub mod session;

use std::sync::Arc;

use anyhow::Context;
use burn::module::Module;
use burn::tensor::Device;
use rl_algos::{Grpo, LmCollector, Persist, Responses, RlhfPpo, Rloo, Update, streams};
use rl_core::dist::Categorical;
use rl_envs::TokenWorld;
use rl_models::{
    ActorCritic, Contexts, Policy, Response, Sampler, Sampling, Separate, TablePolicy, TableValue, Tempered,
    Tokens,
};

use crate::assemble::Job;
use crate::config::{AlgoConfig, RunConfig};
use crate::device::ChosenDevice;
use crate::learner::Learner;
use config::TokenWorldConfig;
use session::RlhfSession;

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
        let mut rng = streams::judge(seed);
        let judge = |_| config.reward.scores(&world, config.pairs, &mut rng);
        let members = (0..config.members).map(judge).collect::<anyhow::Result<Vec<_>>>()?;
        let reward = match &members[..] {
            [one] => one.clone(),
            several => world
                .standardised(&config.combine.scores(several))
                .context("the reward models together have one score for all sentences")?,
        };
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
    /// The policy, with or without a critic, and what teaches it.
    pub learner: Learner<M, U>,
    /// The policy's laws.
    pub laws: fn(&M, &Tokens) -> Categorical,
    /// Its table.
    pub table: fn(&M) -> &TablePolicy,
    /// π_ref, at the run's temperature.
    pub reference: Tempered<TablePolicy>,
    /// What samples.
    pub collector: LmCollector,
    /// What it is about.
    pub task: TokenTask,
}

/// Calls `job` with what `config` asks for.
///
/// # Errors
/// If the reward model learns nothing from its comparisons.
pub fn assemble<J: Job>(config: &RunConfig, device: ChosenDevice, job: J) -> anyhow::Result<J::Output> {
    let rollout =
        config.algo.rlhf_rollout().context("responses are learnt by `rlhf_ppo`, `rloo` or `grpo`")?;
    let world = config.token_world.clone().unwrap_or_default();
    let task = TokenTask::new(&world, config.seed, &device.device)?;
    let max_tokens = task.world.length();
    let how = Sampling { temperature: 1.0, max_tokens, stop: vec![] };
    let collector = LmCollector::new(rollout.clone(), vec![vec![]], how, 0, &device.device);
    let reference = Tempered::new(task.reference(), rollout.temperature);
    let seat = Seat { config, reference, collector, task, device };
    let table: Look<Tempered<TablePolicy>> =
        Look { laws: |model, tokens| Policy::policy(model, tokens), table: |model| &model.model };
    let updates = config.updates();
    Ok(match &config.algo {
        AlgoConfig::Rloo(rloo) => {
            let model = seat.reference.clone();
            seat.run(model, table, Rloo::new(rloo, updates), job)
        }
        AlgoConfig::Grpo(grpo) => {
            let model = seat.reference.clone();
            seat.run(model, table, Grpo::new(grpo, max_tokens, updates), job)
        }
        AlgoConfig::RlhfPpo(ppo) => {
            let value = TableValue::new(seat.task.contexts, &seat.device.device);
            let policy = seat.task.reference();
            let model = Tempered::new(Separate { policy, value }, rollout.temperature);
            let look = Look {
                laws: |model: &Tempered<Separate<_, _>>, tokens: &Tokens| ActorCritic::policy(model, tokens),
                table: |model| &model.model.policy,
            };
            seat.run(model, look, RlhfPpo::new(ppo, updates), job)
        }
        _ => unreachable!("only RLHF algorithms say how they sample"),
    })
}

/// How to look into a model.
struct Look<M> {
    laws: fn(&M, &Tokens) -> Categorical,
    table: fn(&M) -> &TablePolicy,
}

/// What a run has before its model and its algorithm.
struct Seat<'a> {
    config: &'a RunConfig,
    reference: Tempered<TablePolicy>,
    collector: LmCollector,
    task: TokenTask,
    device: ChosenDevice,
}

impl Seat<'_> {
    fn run<J, M, U>(self, model: M, look: Look<M>, algorithm: U, job: J) -> J::Output
    where
        J: Job,
        M: Sampler + Module,
        U: Update<M, Data = Responses> + Persist,
    {
        let Self { config, reference, collector, task, device } = self;
        let Look { laws, table } = look;
        let learner = Learner::new(model, algorithm, streams::actions(config.seed), device);
        let parts = RlhfParts { learner, laws, table, reference, collector, task };
        job.run(RlhfSession::new(parts, config.guards()))
    }
}

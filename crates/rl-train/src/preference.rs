//! Runs on preference data: reward models, and DPO on a language model of a folder.

pub mod answer_session;
pub mod config;
pub mod data;
pub mod dpo_session;
pub mod exam;
pub mod folder;
pub mod judge;
pub mod reward_session;

use std::cell::OnceCell;

use std::path::PathBuf;

use anyhow::{Context, Result};
use rl_algos::{Dpo, Grpo, LmCollector, RewardModelling, RlhfPpo, Rloo, streams};
use rl_core::dist::Categorical;
use rl_models::lm::{LmActorCritic, RewardModel, Transformer};
use rl_models::{ActorCritic, Policy, Sampling, Tempered, Tokens};

use crate::assemble::Job;
use crate::config::{AlgoConfig, RunConfig};
use crate::device::ChosenDevice;
use crate::learner::Learner;
use crate::pairs::Encoder;
use crate::paths;
use crate::score::Reading;
use answer_session::{AnswerParts, AnswerSession};
use config::Gold;
use data::PairData;
use dpo_session::DpoSession;
use exam::{Exam, LastSitting, filler};
use judge::AnswerJudge;
use reward_session::RewardSession;

/// Answers on which a reward model's scores are normalised.
const NORMAL: usize = 256;

/// Calls `job` with what `config` asks for.
///
/// # Errors
/// If the model or the data cannot be read.
pub fn assemble<J: Job>(config: &RunConfig, device: ChosenDevice, job: J) -> Result<J::Output> {
    let lm = config.lm.as_ref().context("a run on texts has a table [lm]")?;
    let section = config.data.as_ref().context("a run on texts has a table [data]")?;
    let origin = paths::existing("lm.model", &lm.model)?;
    let in_folder = || format!("no model in `{}`", origin.display());
    let model = Transformer::load(&origin, &device.device).with_context(in_folder)?;
    let shape = model.config().clone();
    let limits = section.limits(shape.max_positions)?;
    let encoder =
        Encoder::of_model(&origin, &shape, section.ending).with_context(in_folder)?.with_limits(limits);
    let data = PairData::load(section, &encoder, config.seed)?;
    let exam = |prompts: Vec<(String, Vec<u32>)>, gold: Option<Gold>, seed: u64| {
        Exam::new(prompts, &encoder, gold, &shape.eos, seed, &device.device)
    };
    let asked = data.prompts.iter().take(config.eval.episodes).cloned().collect::<Vec<_>>();
    let asked = (!asked.is_empty()).then(|| exam(asked, section.gold, config.eval.seed));
    let (updates, rng) = (config.updates(), streams::actions(config.seed));
    match &config.algo {
        AlgoConfig::Dpo(dpo) => {
            let learner = Learner::new(
                model.clone(),
                Dpo::new(dpo.clone(), updates).with_team(device.team.clone()),
                rng,
                device.clone(),
            );
            Ok(job.run(DpoSession {
                learner,
                reference: model,
                data,
                exam: asked,
                beta: dpo.beta,
                cache: paths::resolve("data.cache", &section.cache)?,
                origin,
                seen: None,
                before: OnceCell::new(),
                last: LastSitting::default(),
                on_alarm: config.guards().on_alarm,
            }))
        }
        AlgoConfig::RewardModel(settings) => {
            let normal = exam(data.train_prompts.iter().take(NORMAL).cloned().collect(), None, config.seed);
            let algorithm = RewardModelling::new(settings.clone(), updates).with_team(device.team.clone());
            let scorer = RewardModel::with_random_head(model.clone(), &mut streams::weights(config.seed));
            let learner = Learner::new(scorer, algorithm, rng, device.clone());
            let reading = Reading {
                ending: section.ending,
                max_prompt_tokens: limits.prompt,
                max_answer_tokens: limits.answer,
            };
            let fresh = OnceCell::new();
            Ok(job.run(RewardSession {
                learner,
                writer: model,
                data,
                exam: asked,
                reading,
                origin,
                fresh,
                normal,
                on_alarm: config.guards().on_alarm,
            }))
        }
        AlgoConfig::RlhfPpo(_) | AlgoConfig::Rloo(_) | AlgoConfig::Grpo(_) => {
            let prompts = data.train_prompts.into_iter().map(|(_, tokens)| tokens).collect();
            answers(config, model, Asked { prompts, encoder, exam: asked, origin }, device, job)
        }
        _ => unreachable!("refused by `RunConfig::validate`"),
    }
}

/// What an RLHF run on texts asks, and of whom.
struct Asked {
    prompts: Vec<Vec<u32>>,
    encoder: Encoder,
    exam: Option<Exam>,
    origin: PathBuf,
}

/// RLHF on a language model: the algorithms of the token world, on texts.
fn answers<J: Job>(
    config: &RunConfig,
    model: Transformer,
    asked: Asked,
    device: ChosenDevice,
    job: J,
) -> Result<J::Output> {
    let section = config.data.as_ref().context("a run on texts has a table [data]")?;
    let rollout =
        config.algo.rlhf_rollout().context("responses are learnt by `rlhf_ppo`, `rloo` or `grpo`")?;
    let shape = model.config().clone();
    let max_tokens = asked.encoder.limits().answer;
    let how = Sampling { temperature: 1.0, max_tokens, stop: shape.eos.clone() };
    let pad = filler(&shape.eos);
    let collector = LmCollector::new(rollout.clone(), asked.prompts, how, pad, &device.device);
    let reward = section.reward.clone().unwrap_or_default();
    let judge = AnswerJudge::new(&reward, &model, &asked.origin, &device.device)?;
    let (updates, rng, temperature) = (config.updates(), streams::actions(config.seed), rollout.temperature);
    let reference = Tempered::new(model.clone(), temperature);
    let Asked { encoder, exam, origin, .. } = asked;
    let gold = section.gold;
    let seat = Seat { reference, collector, judge, gold, encoder, exam, origin };
    let alone: Look<Tempered<Transformer>> =
        Look { laws: |model, tokens| Policy::policy(model, tokens), writer: |model| &model.model };
    let guards = config.guards();
    Ok(match &config.algo {
        AlgoConfig::Rloo(rloo) => {
            let learner = Learner::new(seat.reference.clone(), Rloo::new(rloo, updates), rng, device);
            job.run(AnswerSession::new(seat.with(learner, alone), guards))
        }
        AlgoConfig::Grpo(grpo) => {
            let algorithm = Grpo::new(grpo, max_tokens, updates);
            let learner = Learner::new(seat.reference.clone(), algorithm, rng, device);
            job.run(AnswerSession::new(seat.with(learner, alone), guards))
        }
        AlgoConfig::RlhfPpo(ppo) => {
            let look: Look<Tempered<LmActorCritic>> = Look {
                laws: |model, tokens| ActorCritic::policy(model, tokens),
                writer: |model| &model.model.policy,
            };
            let model = Tempered::new(LmActorCritic::new(model), temperature);
            let learner = Learner::new(model, RlhfPpo::new(ppo, updates), rng, device);
            job.run(AnswerSession::new(seat.with(learner, look), guards))
        }
        _ => unreachable!("only RLHF algorithms say how they sample"),
    })
}

/// How to look into a model.
struct Look<M> {
    laws: fn(&M, &Tokens) -> Categorical,
    writer: fn(&M) -> &Transformer,
}

/// What a run has before its model and its algorithm.
struct Seat {
    reference: Tempered<Transformer>,
    collector: LmCollector,
    judge: AnswerJudge,
    gold: Option<Gold>,
    encoder: Encoder,
    exam: Option<Exam>,
    origin: PathBuf,
}

impl Seat {
    fn with<M, U>(self, learner: Learner<M, U>, look: Look<M>) -> AnswerParts<M, U> {
        let Self { reference, collector, judge, gold, encoder, exam, origin } = self;
        let Look { laws, writer } = look;
        AnswerParts { learner, laws, writer, reference, collector, judge, gold, encoder, exam, origin }
    }
}

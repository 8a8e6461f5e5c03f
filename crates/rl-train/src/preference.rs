//! Runs on preference data: reward models, and DPO on a language model of a folder.

pub mod config;
pub mod data;
pub mod dpo_session;
pub mod exam;
pub mod folder;
pub mod reward_session;

use std::cell::OnceCell;

use anyhow::{Context, Result};
use rl_algos::{Dpo, RewardModelling, streams};
use rl_models::lm::{RewardModel, Transformer};

use crate::assemble::Job;
use crate::config::{AlgoConfig, RunConfig};
use crate::device::ChosenDevice;
use crate::learner::Learner;
use crate::pairs::Encoder;
use crate::paths;
use crate::score::Reading;
use config::Gold;
use data::PairData;
use dpo_session::DpoSession;
use exam::Exam;
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
            let learner = Learner::new(model.clone(), Dpo::new(dpo.clone(), updates), rng, device.clone());
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
            }))
        }
        AlgoConfig::RewardModel(settings) => {
            let normal = exam(data.train_prompts.iter().take(NORMAL).cloned().collect(), None, config.seed);
            let algorithm = RewardModelling::new(settings.clone(), updates);
            let learner = Learner::new(RewardModel::new(model.clone()), algorithm, rng, device.clone());
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
            }))
        }
        _ => unreachable!("only these learn from pairs"),
    }
}

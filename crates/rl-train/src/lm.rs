//! Runs on language models: where a model comes from, what examples it learns, what it leaves behind.

pub mod config;
pub mod data;
pub mod dataset_run;
pub mod model;
pub mod sft_run;

use anyhow::Result;
use rl_algos::{Sft, streams};
use rl_models::lm::LoraTransformer;

use crate::assemble::Job;
use crate::config::{AlgoConfig, RunConfig};
use crate::device::ChosenDevice;
use crate::learner::Learner;
use data::Examples;
use dataset_run::DatasetSession;
use sft_run::SftRows;

/// Calls `job` with what `config` asks for.
///
/// # Errors
/// If model or examples cannot be read.
pub fn assemble<J: Job>(config: &RunConfig, device: ChosenDevice, job: J) -> Result<J::Output> {
    let start = config.start.clone().unwrap_or_default();
    let corpus = config.corpus.clone().unwrap_or_default();
    let (weights, rng) = (&mut streams::weights(config.seed), streams::actions(config.seed));
    let (place, on_alarm) = (device.device.clone(), config.guards().on_alarm);
    Ok(match &config.algo {
        AlgoConfig::Sft(sft) => {
            let examples = Examples::read(&corpus)?;
            let (model, vocabulary) = model::begin(&start, examples.texts(), weights, &place)?;
            let rows = SftRows::new(&examples, config, sft, &model, vocabulary, &place)?;
            let (algorithm, batch, seed) = (Sft::new(sft, config.updates()), sft.batch, config.seed);
            match &start.lora {
                None => {
                    let learner = Learner::new(model, algorithm, rng, device);
                    job.run(DatasetSession::new(learner, rows, batch, seed).with_on_alarm(on_alarm))
                }
                Some(lora) => {
                    let model = LoraTransformer::new(model, lora.clone(), weights);
                    let learner = Learner::new(model, algorithm, rng, device);
                    job.run(DatasetSession::new(learner, rows, batch, seed).with_on_alarm(on_alarm))
                }
            }
        }
        _ => unreachable!("only dataset algorithms learn from examples"),
    })
}

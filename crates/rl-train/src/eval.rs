//! `rl-train eval`: what a run's last model has come to.

use std::path::PathBuf;

use anyhow::Result;
use rl_algos::checkpoint::Checkpoint;

use crate::assemble::{Job, assemble};
use crate::cli::EvalArgs;
use crate::drive::{Findings, Session};
use crate::recorder::restore;
use crate::run_folder::RunFolder;
use crate::{Outcome, device};

/// Evaluates the last checkpoint, or the best. With the run's own episodes and seed this gives its summary's numbers.
///
/// # Errors
/// If there is no such run, or its last checkpoint does not load.
pub fn eval(args: &EvalArgs) -> Result<Outcome> {
    let (folder, mut config, text) = RunFolder::open(&args.run)?;
    let device = device::choose(args.device.as_deref().unwrap_or(&config.device))?;
    let (checkpoint, path) = if args.best { folder.best_checkpoint()? } else { folder.last_checkpoint()? };
    if let Some(episodes) = args.episodes {
        config.eval.episodes = episodes as usize;
    }
    if let Some(seed) = args.seed {
        config.eval.seed = seed;
    }
    assemble(&config, device, Eval { checkpoint, path, algorithm: config.algo.name(), text })?
}

struct Eval {
    checkpoint: Checkpoint,
    path: PathBuf,
    algorithm: &'static str,
    /// Of the run's `config.toml`.
    text: String,
}

impl Job for Eval {
    type Output = Result<Outcome>;

    fn run<S: Session>(self, session: S) -> Result<Outcome> {
        let (session, _) = restore(session, &self.checkpoint, &self.path, self.algorithm, &self.text)?;
        say!("after update {} ({} {})", session.update(), session.step(), S::STEPS);
        say!("{}", session.evaluate()?.whole());
        Ok(Outcome::Done)
    }
}

//! `rl-train train`: a new run, or an old one that goes on.

use std::path::Path;

use anyhow::{Context, Result};

use crate::assemble::assemble;
use crate::cli::TrainArgs;
use crate::config::error::ConfigError;
use crate::config::{RunConfig, shipped};
use crate::drive::Drive;
use crate::live::serve::Server;
use crate::run_folder::RunFolder;
use crate::run_lock::RunLock;
use crate::{Outcome, device, interrupt};

/// Trains, evaluates, and says what came of it.
///
/// # Errors
/// [`ConfigError`] before anything was written; otherwise what stopped the run.
pub fn train(args: &TrainArgs) -> Result<Outcome> {
    args.outlets().check()?;
    interrupt::listen();
    match &args.resume {
        Some(run) => resumed(run, args),
        None => new_run(args),
    }
}

fn new_run(args: &TrainArgs) -> Result<Outcome> {
    let source = shipped::find(args.config.as_deref())?;
    let config = source
        .tree()
        .and_then(|mut tree| {
            args.changes.apply(&mut tree)?;
            let config = RunConfig::from_tree(tree)?;
            config.check_paths()?;
            Ok(config)
        })
        .with_context(|| source.name.clone())?;
    let device = device::choose(&config.device)?;
    let (folder, lock) = RunFolder::create(args.out.as_deref(), &source.name, &config)?;
    show(args, &folder)?;
    let text = config.resolved();
    let outlets = args.outlets();
    assemble(&config, device, Drive { folder, lock, config: &config, text, from: None, outlets })?
}

fn resumed(run: &Path, args: &TrainArgs) -> Result<Outcome> {
    let changes = [("CONFIG", args.config.is_some()), ("--out", args.out.is_some())];
    let given = changes.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = args.changes.given().or(given) {
        return Err(ConfigError::ResumeChangesNothing { option }.into());
    }
    let (folder, config, text) = RunFolder::open(run)?;
    let lock = RunLock::take(&folder.path)?;
    show(args, &folder)?;
    let from = Some(folder.last_checkpoint()?);
    let device = device::choose(&config.device)?;
    let outlets = args.outlets();
    assemble(&config, device, Drive { folder, lock, config: &config, text, from, outlets })?
}

/// Serves the report of the run where that was asked for.
fn show(args: &TrainArgs, folder: &RunFolder) -> Result<()> {
    if args.serve {
        let server = Server::open(vec![folder.path.clone()])?;
        say!("the report, while the run goes on: {}", server.address()?);
        server.beside();
    }
    Ok(())
}

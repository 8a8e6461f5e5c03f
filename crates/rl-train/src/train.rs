//! `rl-train train`: a new run, or an old one that goes on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rl_algos::Team;
use rl_algos::checkpoint::Checkpoint;

use crate::assemble::assemble;
use crate::cli::TrainArgs;
use crate::config::error::ConfigError;
use crate::config::{RunConfig, shipped};
use crate::drive::Drive;
use crate::live::serve::Server;
use crate::replicas::{Devices, Order};
use crate::run_folder::RunFolder;
use crate::run_lock::RunLock;
use crate::{Outcome, device, interrupt, pipeline};

/// Trains, evaluates, and says what came of it.
///
/// # Errors
/// [`ConfigError`] before anything was written; otherwise what stopped the run.
pub fn train(args: &TrainArgs) -> Result<Outcome> {
    interrupt::listen();
    match (&args.resume, pipeline::named(args.config.as_deref())) {
        (Some(run), None) if pipeline::is_one(run) => {
            refuse_changes(args)?;
            pipeline::resumed(run, args)
        }
        (Some(run), _) => resumed(run, args),
        (None, Some(size)) => pipeline::new(size, args),
        (None, None) => new_run(args),
    }
}

fn new_run(args: &TrainArgs) -> Result<Outcome> {
    args.outlets().check()?;
    let devices = devices(args)?;
    let source = shipped::find(args.config.as_deref())?;
    let config = source
        .tree()
        .and_then(|mut tree| {
            args.changes.apply(&mut tree)?;
            if let Some(devices) = &devices {
                tree.insert("device".into(), devices.first().into());
            }
            let config = RunConfig::from_tree(tree)?;
            config.check_paths()?;
            Ok(config)
        })
        .with_context(|| source.name.clone())?;
    devices.iter().try_for_each(|devices| devices.check(&config))?;
    let device = device::choose(&config.device)?;
    let (folder, lock) = RunFolder::create(args.out.as_deref(), &source.name, &config)?;
    show(args, &folder)?;
    let text = config.resolved();
    let team = muster(devices, &text, None)?;
    let (outlets, device) = (args.outlets(), device.in_team(team.clone()));
    assemble(&config, device, Drive { folder, lock, team, config: &config, text, from: None, outlets })?
}

/// A run that goes on is the run that it was.
fn refuse_changes(args: &TrainArgs) -> Result<(), ConfigError> {
    let changes = [("CONFIG", args.config.is_some()), ("--out", args.out.is_some())];
    let given = changes.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = args.changes.given().or(given) {
        return Err(ConfigError::ResumeChangesNothing { option });
    }
    Ok(())
}

fn resumed(run: &Path, args: &TrainArgs) -> Result<Outcome> {
    args.outlets().check()?;
    refuse_changes(args)?;
    let (folder, config, text) = RunFolder::open(run)?;
    let devices = devices(args)?;
    devices.iter().try_for_each(|devices| devices.check(&config))?;
    let lock = RunLock::take(&folder.path)?;
    show(args, &folder)?;
    let from = Some(folder.last_checkpoint()?);
    let device = device::choose(devices.as_ref().map_or(&config.device, Devices::first))?;
    let team = muster(devices, &text, from.as_ref())?;
    let (outlets, device) = (args.outlets(), device.in_team(team.clone()));
    assemble(&config, device, Drive { folder, lock, team, config: &config, text, from, outlets })?
}

fn devices(args: &TrainArgs) -> Result<Option<Devices>, ConfigError> {
    args.devices.as_deref().map(Devices::parse).transpose()
}

/// The team of a run that may be alone.
fn muster(devices: Option<Devices>, text: &str, from: Option<&(Checkpoint, PathBuf)>) -> Result<Team> {
    let Some(devices) = devices else { return Ok(Team::default()) };
    devices.muster(&Order { text: text.to_owned(), from: from.cloned() })
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

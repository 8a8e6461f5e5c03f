//! `rl-train sweep`: many runs of one config, as many at once as cores and memory allow; stopped, it goes on where it was.
//!
//! Each run is a process of its own (`rl-train train …`) on one thread, so that a run that fails takes no other with it.
//! A run whose folder has a summary is done; one with a checkpoint goes on; the others begin.

mod plan;
mod pool;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::comparison::score;
use crate::recording::Recording;
use crate::report::{self, Verdict, number};
use crate::{Outcome, interrupt};
use plan::{SweepFile, Trial};
use pool::{Budget, Ended, work_off};

/// `rl-train sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The sweep: a TOML file with `config`, and tables `[set]`, `[grid]` and `[random]` (docs/reports.md)
    #[arg(value_name = "SWEEP.toml")]
    pub file: PathBuf,
    /// The sweep's folder [default: runs/sweep-NAME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Say what would run, and run nothing
    #[arg(long)]
    pub list: bool,
}

/// Runs what has not run yet, and reports on all.
///
/// # Errors
/// [`ConfigError`](crate::config::error::ConfigError) if the file cannot work; otherwise if a folder cannot be written.
pub fn sweep(args: &SweepArgs) -> Result<Outcome> {
    let file = SweepFile::read(&args.file)?;
    let trials = file.trials().with_context(|| args.file.display().to_string())?;
    let folder = match &args.out {
        Some(out) => out.clone(),
        None => Path::new("runs").join(format!("sweep-{}", file.name(&args.file))),
    };
    if args.list {
        for trial in &trials {
            say!("{}  {}", trial.name, trial.words());
        }
        say!("{} runs", trials.len());
        return Ok(Outcome::Done);
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    interrupt::listen();
    let budget = Budget::new(file.cores, file.memory_mb);
    let open: Vec<&Trial> =
        trials.iter().filter(|trial| !folder.join(&trial.name).join("summary.json").is_file()).collect();
    say!("{} runs, {} to do, {} at once, in {}", trials.len(), open.len(), budget.cores, folder.display());
    let ended = work_off(&open, &folder, &budget)?;
    for (name, ended) in &ended {
        if let Ended::Failed(words) = ended {
            say!("{name} failed: {words}");
        }
    }
    if interrupt::requested() {
        say!(
            "interrupted; go on with: {} sweep {} --out {}",
            crate::called(),
            args.file.display(),
            folder.display()
        );
        return Ok(Outcome::Interrupted);
    }
    conclude(&trials, &folder)?;
    let failed = ended.iter().filter(|(_, ended)| matches!(ended, Ended::Failed(_))).count();
    anyhow::ensure!(
        failed == 0,
        "{failed} of {} runs failed; the same command tries them again",
        trials.len()
    );
    Ok(Outcome::Done)
}

/// The report on all runs, and `sweep.csv`: a row per run, the best first.
fn conclude(trials: &[Trial], folder: &Path) -> Result<()> {
    let mut rows = vec![];
    let mut runs = vec![];
    for trial in trials {
        let Ok(run) = Recording::read(&folder.join(&trial.name)) else { continue };
        let (what, value) = score(&run, None).unwrap_or_else(|| ("no score".into(), f64::NAN));
        rows.push((value, what, trial, Verdict::of(&run).title));
        runs.push(run);
    }
    if runs.is_empty() {
        return Ok(());
    }
    // What has no score is last.
    let key = |value: f64| if value.is_nan() { f64::NEG_INFINITY } else { value };
    rows.sort_by(|a, b| key(b.0).total_cmp(&key(a.0)).then(a.2.name.cmp(&b.2.name)));
    let mut text = "run,score,value,verdict,settings\n".to_owned();
    for (value, what, trial, verdict) in &rows {
        text +=
            &format!("{},{what},{value},{verdict},\"{}\"\n", trial.name, trial.words().replace('"', "\"\""));
    }
    let place = folder.join("sweep.csv");
    fs::write(&place, text).with_context(|| format!("cannot write `{}`", place.display()))?;
    for (value, what, trial, verdict) in rows.iter().take(5) {
        say!("{:<28} {what} {}  {verdict}  {}", trial.name, number(*value), trial.words());
    }
    let page = folder.join("report.html");
    report::write(&runs, &page)?;
    say!("report: {}; all runs: {}", page.display(), place.display());
    Ok(())
}

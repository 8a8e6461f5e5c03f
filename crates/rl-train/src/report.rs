//! `rl-train report`: whether runs are well, in words, and the pictures behind them; one file that opens anywhere.

mod figures;
mod group;
mod html;
mod page;
mod plot;
mod samples;
pub mod verdict;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::live::serve::Server;
use crate::recording::Recording;
use crate::{Outcome, interrupt};
pub use group::groups;
pub use html::escaped;
pub use page::{page as page_of, result};
pub use verdict::Verdict;
pub use verdict::number;

/// `rl-train report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folders of runs, or their names in runs/
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// The file to write [default: report.html in the run's folder; of several runs, here]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Show it to browsers on this machine until Ctrl-C, made anew each time, instead of writing it
    #[arg(long, conflicts_with = "out")]
    pub serve: bool,
}

/// Writes the report and says the verdict.
///
/// # Errors
/// If a folder holds no run, or the file cannot be written.
pub fn report(args: &ReportArgs) -> Result<Outcome> {
    let runs: Vec<Recording> = args.runs.iter().map(|path| Recording::read(path)).collect::<Result<_>>()?;
    let place = match (&args.out, runs.as_slice()) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.path.join("report.html"),
        (None, _) => "report.html".into(),
    };
    for run in &runs {
        tell(run, &Verdict::of(run));
    }
    if args.serve {
        let server = Server::open(runs.into_iter().map(|run| run.path).collect())?;
        interrupt::listen();
        say!("the report is at {}", server.address()?);
        server.until_interrupted();
        return Ok(Outcome::Done);
    }
    write(&runs, &place)?;
    say!("report: {}", place.display());
    Ok(Outcome::Done)
}

/// The report of a run that has just ended, in its folder. A report that cannot be written is no reason to fail a run.
pub fn at_end(run: &Path) {
    let place = run.join("report.html");
    let done = Recording::read(run).and_then(|run| {
        let runs = [run];
        write(&runs, &place)?;
        Ok(Verdict::of(&runs[0]))
    });
    match done {
        Ok(verdict) => say!("verdict: {}; report: {}", verdict.title, place.display()),
        Err(error) => say!("no report: {error:#}"),
    }
}

/// Writes the report on these runs to `place`, whole or not at all.
///
/// # Errors
/// If a picture cannot be drawn or the file cannot be written.
pub fn write(runs: &[Recording], place: &Path) -> Result<()> {
    let partial = place.with_extension("html.partial");
    let written = fs::write(&partial, page::page(runs)?).and_then(|()| fs::rename(&partial, place));
    written.with_context(|| format!("cannot write `{}`", place.display()))
}

/// The verdict on a terminal.
fn tell(run: &Recording, verdict: &Verdict) {
    say!("{}: {}. {}", run.name, verdict.title, verdict.course);
    for finding in &verdict.findings {
        say!("  {}: {}", finding.fault.title(), finding.evidence);
        say!("    Try: {}", finding.cure);
    }
}

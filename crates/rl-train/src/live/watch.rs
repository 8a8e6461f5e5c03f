//! `rl-train watch`: the dashboard of a run that goes on elsewhere. It only reads.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::dashboard::Dashboard;
use super::screen::{Key, Screen};
use crate::recording::{Recording, last_timing};
use crate::report::verdict::Facts;
use crate::{Outcome, interrupt};

/// `rl-train watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The run's folder, or its name in runs/
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
}

/// Follows a run until it is finished or the reader has seen enough.
///
/// # Errors
/// If the folder holds no run, or there is no terminal.
pub fn watch(args: &WatchArgs) -> Result<Outcome> {
    let run = Recording::read(&args.run)?;
    let mut screen = Screen::open()?;
    interrupt::listen();
    let mut dashboard = Dashboard::new(&run.path.display().to_string(), Facts::of(&run));
    let mut finished = false;
    loop {
        if dashboard.catch_up(&run.path) {
            dashboard.time(last_timing(&run.path.join("timing.jsonl")));
        }
        if !finished && run.path.join("summary.json").is_file() {
            finished = true;
            dashboard.note("the run is finished; q leaves".into());
        }
        screen.draw(&mut dashboard)?;
        if screen.key(200)? == Some(Key::Stop) || interrupt::requested() {
            break;
        }
    }
    drop(screen);
    Ok(Outcome::Done)
}

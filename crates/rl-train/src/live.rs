//! How a run shows itself while it goes on: lines, one living line, or a dashboard with keys.

pub mod dashboard;
pub mod screen;
pub mod serve;
pub mod watch;

use anyhow::Result;

use crate::config::RunConfig;
use crate::config::error::ConfigError;
use crate::export::Format;
use crate::metrics::{Row, Timing};
use crate::progress::Progress;
use crate::run_folder::RunFolder;
use crate::{interrupt, report};
use dashboard::Dashboard;
use screen::{Key, Screen};

/// What the reader wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// One living line on a terminal, a line per twentieth elsewhere.
    #[default]
    Lines,
    /// A dashboard that fills the terminal.
    Dashboard,
}

/// Where a run shows itself beside its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outlets {
    /// What the reader sees.
    pub view: View,
    /// A second format for its metrics.
    pub log: Option<Format>,
}

impl Outlets {
    /// Before anything is written.
    ///
    /// # Errors
    /// [`ConfigError`] if a dashboard is wanted and there is no terminal.
    pub fn check(self) -> Result<(), ConfigError> {
        match self.view {
            View::Dashboard => screen::require(),
            View::Lines => Ok(()),
        }
    }
}

/// The chosen view of a run.
pub enum Display {
    /// Lines.
    Lines(Progress),
    /// The dashboard and its screen.
    Dashboard(Box<(Dashboard, Screen)>),
}

impl Display {
    /// The view of a run in `folder` that has made `step` steps.
    ///
    /// # Errors
    /// If a dashboard is wanted and there is no terminal.
    pub fn new(view: View, folder: &RunFolder, config: &RunConfig, step: u64) -> Result<Self> {
        Ok(match view {
            View::Lines => Self::Lines(Progress::new(config.total_steps, step)),
            View::Dashboard => {
                let table = config.resolved().parse()?;
                let mut dashboard = Dashboard::new(
                    &folder.path.display().to_string(),
                    report::verdict::Facts::intended(&table),
                );
                // A run that goes on shows what was before.
                dashboard.catch_up(&folder.path);
                Self::Dashboard(Box::new((dashboard, Screen::open()?)))
            }
        })
    }

    /// Shows an update, waits while paused, and says whether a checkpoint is wanted now.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(
        &mut self,
        row: &Row,
        timing: &Timing,
        headline: Option<(&'static str, f64)>,
    ) -> Result<bool> {
        let (dashboard, screen) = match self {
            Self::Lines(progress) => {
                progress.show(row, headline);
                return Ok(false);
            }
            Self::Dashboard(both) => (&mut both.0, &mut both.1),
        };
        dashboard.feed(row.json().as_bytes(), Some(*timing));
        let mut wanted = false;
        loop {
            screen.draw(dashboard)?;
            let wait = if dashboard.paused { 100 } else { 0 };
            match screen.key(wait)? {
                Some(Key::Pause) => dashboard.paused = !dashboard.paused,
                Some(Key::Checkpoint) => {
                    dashboard.note("a checkpoint was asked for".into());
                    wanted = true;
                }
                Some(Key::Stop) => {
                    dashboard.note("stopping after this update".into());
                    interrupt::request();
                }
                None => {}
            }
            if !dashboard.paused || interrupt::requested() {
                return Ok(wanted);
            }
        }
    }

    /// Says something that is not a metric.
    pub fn note(&mut self, text: String) {
        match self {
            Self::Lines(_) => say!("{text}"),
            Self::Dashboard(both) => both.0.note(text),
        }
    }

    /// Gives the terminal back, with everything that was said.
    pub fn finish(self) {
        match self {
            Self::Lines(progress) => progress.finish(),
            Self::Dashboard(both) => {
                let (dashboard, screen) = *both;
                drop(screen);
                dashboard.said().for_each(|text| say!("{text}"));
            }
        }
    }
}

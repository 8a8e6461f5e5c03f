//! The terminal while a dashboard has it, and its way back: at the end, after a panic, after a signal.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::dashboard::Dashboard;
use crate::config::error::ConfigError;

/// Between two pictures: as many as eyes follow, whatever the run's speed.
const BETWEEN: Duration = Duration::from_millis(100);

/// Whether a dashboard has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back if a dashboard has it. May be called at any time, also by a signal's handler.
pub fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        ratatui::restore();
    }
}

/// Whether a dashboard has the terminal.
pub fn taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Whether there is a terminal to take.
///
/// # Errors
/// [`ConfigError::NoTerminal`].
pub fn require() -> Result<(), ConfigError> {
    if stdout().is_terminal() && stdin().is_terminal() { Ok(()) } else { Err(ConfigError::NoTerminal) }
}

/// What a reader asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Stand still, or go on.
    Pause,
    /// Save now.
    Checkpoint,
    /// Save and stop.
    Stop,
}

/// A terminal that a dashboard has.
pub struct Screen {
    terminal: DefaultTerminal,
    drawn: Option<Instant>,
}

impl Screen {
    /// Takes the terminal. A panic gives it back before it speaks.
    ///
    /// # Errors
    /// [`ConfigError`] if there is none.
    pub fn open() -> Result<Self> {
        require()?;
        let terminal = ratatui::try_init().context("the terminal cannot show a dashboard")?;
        TAKEN.store(true, Ordering::SeqCst);
        Ok(Self { terminal, drawn: None })
    }

    /// Draws, unless it has just been drawn; a paused dashboard always.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn draw(&mut self, dashboard: &mut Dashboard) -> Result<()> {
        if !dashboard.paused && self.drawn.is_some_and(|drawn| drawn.elapsed() < BETWEEN) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        dashboard.judge();
        self.terminal.draw(|frame| dashboard.draw(frame)).context("the terminal is gone")?;
        Ok(())
    }

    /// The next key that means something, waiting so many milliseconds for it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn key(&mut self, wait_ms: u64) -> Result<Option<Key>> {
        if !event::poll(Duration::from_millis(wait_ms))? {
            return Ok(None);
        }
        let Event::Key(key) = event::read()? else {
            self.drawn = None; // The window has another size now.
            return Ok(None);
        };
        if key.kind == KeyEventKind::Release {
            return Ok(None);
        }
        Ok(match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('p' | ' '), false) => Some(Key::Pause),
            (KeyCode::Char('c'), false) => Some(Key::Checkpoint),
            (KeyCode::Char('q' | 's'), false) | (KeyCode::Esc, _) | (KeyCode::Char('c'), true) => {
                Some(Key::Stop)
            }
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

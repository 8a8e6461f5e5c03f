//! What an environment did that it must not: which one, in which step of which episode.
//!
//! Environments are other people's code. One that panics, answers with NaN or does not answer must not take the run with
//! it unnamed: [`VecEnv`](crate::VecEnv) reports the first as an [`EnvFault`], and a [`Pulse`] lets another thread see
//! the last.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An environment that cannot be learnt from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("environment {env} ({name}), episode {episode}, step {step}: {what}")]
pub struct EnvFault {
    /// Its number in the vector, from 0.
    pub env: usize,
    /// Its name.
    pub name: String,
    /// The episode, counted from 1 over the whole run.
    pub episode: u64,
    /// The step of that episode, counted from 1; 0 while it was reset.
    pub step: usize,
    /// What it did.
    pub what: Misdeed,
}

/// What an environment did.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Misdeed {
    /// It panicked; an observation of the wrong shape does.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// Its reward is infinite or not a number.
    #[error("its reward is {0}")]
    Reward(f32),
    /// An observation is infinite or not a number.
    #[error("entry {entry} of its observation is {value}")]
    Observation {
        /// Which entry, from 0.
        entry: usize,
        /// Its value.
        value: f32,
    },
}

impl Misdeed {
    /// What a panic said.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Self::Panicked(text.unwrap_or_else(|| "without words".into()))
    }

    /// The first entry that is no number, if there is one.
    pub(crate) fn in_observation(obs: &[f32]) -> Result<(), Self> {
        match obs.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(entry) => Err(Self::Observation { entry, value: obs[entry] }),
        }
    }
}

/// Where an environment is at the moment, for threads that look on: two relaxed stores per step.
#[derive(Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

/// Another environment has another pulse.
impl Clone for Pulse {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Pulse {
    /// The same pulse, to look at.
    pub fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Episode and step of the environment's code that runs now, both modulo 2³² and counted from 1; `None` outside of it.
    pub fn beat(&self) -> Option<(u32, u32)> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            at => Some(((at >> 32) as u32, at as u32)),
        }
    }

    /// Whether everybody else has let go of it.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn enter(&self, episode: u64, step: usize) {
        self.0.store(episode << 32 | (step as u64 & 0xffff_ffff), Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

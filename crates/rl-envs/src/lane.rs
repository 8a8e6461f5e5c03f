//! One environment of a vector, with its generator and the account of its running episode; and the guard around them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::env::{Env, EnvRng, StepEnd};
use crate::episode::Episode;
use crate::fault::{EnvFault, Misdeed, Pulse};

/// One environment with its generator and the account of its running episode.
#[derive(Clone, Debug)]
pub(crate) struct Lane<E> {
    pub env: E,
    pub rng: EnvRng,
    pub return_sum: f64,
    pub length: usize,
    /// The running episode, counted from 1.
    pub episode: u64,
    pub pulse: Pulse,
    /// The episode that ended last and the observation it ended in; read only right after an end.
    pub last_episode: Episode,
    pub final_obs: Vec<f32>,
}

impl<E: Env> Lane<E> {
    /// Steps, and on an end keeps the last observation and starts the next episode.
    pub fn step(
        &mut self,
        index: usize,
        action: &E::Action,
        obs: &mut [f32],
    ) -> Result<(f32, StepEnd), Misdeed> {
        self.length += 1;
        self.pulse.enter(self.episode, self.length);
        let step = self.env.step(action, &mut self.rng, obs);
        self.pulse.leave();
        if !step.reward.is_finite() {
            return Err(Misdeed::Reward(step.reward));
        }
        Misdeed::in_observation(obs)?;
        self.return_sum += f64::from(step.reward);
        if step.end.is_over() {
            self.final_obs.clear();
            self.final_obs.extend_from_slice(obs);
            self.last_episode = Episode { env: index, return_sum: self.return_sum, length: self.length };
            self.reset(obs);
            Misdeed::in_observation(obs)?;
        }
        Ok((step.reward, step.end))
    }

    pub fn reset(&mut self, obs: &mut [f32]) {
        (self.return_sum, self.length) = (0.0, 0);
        self.episode += 1;
        self.pulse.enter(self.episode, 0);
        self.env.reset(&mut self.rng, obs);
        self.pulse.leave();
    }

    fn fault(&self, env: usize, what: Misdeed) -> EnvFault {
        self.pulse.leave();
        let (name, episode, step) = (self.env.name().to_owned(), self.episode, self.length);
        EnvFault { env, name, episode, step, what }
    }
}

/// `step` for each environment of `numbers`, the first of `lanes` being number `first`; ends at the first fault.
pub(crate) fn guarded<E: Env>(
    numbers: impl Iterator<Item = usize>,
    lanes: &mut [Lane<E>],
    first: usize,
    mut step: impl FnMut(usize, &mut [Lane<E>]) -> Result<(), Misdeed>,
) -> Result<(), EnvFault> {
    let mut at = first;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for number in numbers {
            at = number;
            step(number, lanes)?;
        }
        Ok(())
    }));
    let what = match outcome {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(what)) => what,
        Err(panic) => Misdeed::of_panic(&*panic),
    };
    Err(lanes[at - first].fault(at, what))
}

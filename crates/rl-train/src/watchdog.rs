//! Notices an environment that does not answer: nothing else can, for the thread that waits for it is the run's own.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rl_envs::Pulse;

/// An environment that does not answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "environment {env} ({name}), episode {episode}, step {step}: it has not answered for {} s \
     (`task.step_timeout_s`); the last checkpoint is intact",
    limit.as_secs_f64()
)]
pub struct Hang {
    /// Its number, from 0.
    pub env: usize,
    /// The task.
    pub name: String,
    /// Counted from 1.
    pub episode: u32,
    /// Of that episode, from 1; 0 while it is reset.
    pub step: u32,
    /// How long it was waited for.
    pub limit: Duration,
}

/// Looks at `pulses` from a thread of its own until they are gone; calls `then` once if one of them stands in the same
/// step for `limit`. What counts is how long it was looked at: a process that was stopped meanwhile is no hang.
///
/// # Errors
/// If there is no thread to be had.
pub fn watch(
    pulses: Vec<Pulse>,
    name: String,
    limit: Duration,
    then: impl FnOnce(Hang) + Send + 'static,
) -> Result<()> {
    const LOOKS: u32 = 20;
    let pause = (limit / LOOKS).max(Duration::from_millis(1));
    let look = move || {
        let mut seen = vec![(None, 0); pulses.len()];
        while pulses.iter().any(|pulse| !pulse.is_alone()) {
            thread::sleep(pause);
            for (env, (pulse, (last, times))) in pulses.iter().zip(&mut seen).enumerate() {
                let beat = pulse.beat();
                *times = if beat.is_some() && beat == *last { *times + 1 } else { 0 };
                *last = beat;
                if let (Some((episode, step)), true) = (beat, *times >= LOOKS) {
                    return then(Hang { env, name, episode, step, limit });
                }
            }
        }
    };
    thread::Builder::new().name("watchdog".into()).spawn(look).context("no thread for the watchdog")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use rl_envs::flaky::{Failure, Flaky};
    use rl_envs::{CartPole, TimeLimit, VecEnv};

    use super::*;

    fn envs(failure: Failure) -> VecEnv<Flaky<TimeLimit<CartPole>>> {
        let env = |i| Flaky::new(CartPole::v1(), failure, if i == 1 { 4 } else { 0 });
        VecEnv::new((0..3).map(env).collect(), 1)
    }

    #[test]
    fn an_environment_that_hangs_is_named_while_it_does() {
        let mut envs = envs(Failure::Hang(Duration::from_millis(1500)));
        let (send, receive) = mpsc::channel();
        let limit = Duration::from_millis(300);
        watch(envs.pulses(), "cart_pole".into(), limit, move |hang| send.send(hang).unwrap()).unwrap();
        for _ in 0..3 {
            envs.step(|_| &1);
        }
        assert!(receive.try_recv().is_err());
        envs.step(|_| &1);
        let hang = receive.try_recv().expect("it was noticed while the step went on");
        assert_eq!((hang.env, hang.episode, hang.step), (1, 1, 4));
        let words = "environment 1 (cart_pole), episode 1, step 4: it has not answered for 0.3 s";
        assert!(hang.to_string().starts_with(words), "{hang}");
    }

    #[test]
    fn environments_that_answer_are_left_alone_and_the_watchdog_goes_with_them() {
        let mut envs = envs(Failure::Hang(Duration::ZERO));
        let (send, receive) = mpsc::channel();
        let limit = Duration::from_millis(40);
        watch(envs.pulses(), "cart_pole".into(), limit, move |hang| send.send(hang).unwrap()).unwrap();
        for _ in 0..20 {
            envs.step(|_| &1);
            thread::sleep(Duration::from_millis(5));
        }
        drop(envs);
        // The sender is dropped with the thread.
        assert_eq!(receive.recv_timeout(Duration::from_secs(20)), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}

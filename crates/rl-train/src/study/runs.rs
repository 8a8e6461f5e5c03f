//! The runs of a study: shipped configs with changes, trained in memory, several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use indicatif::ProgressBar;
use rl_algos::Report;
use rl_algos::guard::OnAlarm;

use crate::assemble::{Job, assemble};
use crate::config::assignment::assign;
use crate::config::{RunConfig, shipped};
use crate::device::ChosenDevice;
use crate::drive::{Advanced, Session};
use crate::metrics::Row;

/// What a run went through.
pub struct Trace {
    /// The metrics of every update; before them, the evaluation of the untrained model.
    pub rows: Vec<Row>,
    /// Why it ended before its last update: an alarm, or a number that was not finite.
    pub broke: Option<String>,
}

impl Trace {
    /// The metric `name` of every row that has it.
    pub fn column(&self, name: &str) -> Vec<f64> {
        self.rows.iter().filter_map(|row| row.get(name)).collect()
    }

    /// The last value of the metric `name`; NaN if it never had one.
    pub fn last(&self, name: &str) -> f64 {
        self.rows.iter().rev().find_map(|row| row.get(name)).unwrap_or(f64::NAN)
    }

    /// The largest value of the metric `name`.
    pub fn most(&self, name: &str) -> f64 {
        self.column(name).into_iter().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// A shipped config with changes, each a `key.key=value`.
///
/// # Errors
/// If it cannot work.
pub fn config<S: AsRef<str>>(name: &str, changes: &[S]) -> Result<RunConfig> {
    let mut tree = shipped::find(Some(name))?.tree()?;
    for change in changes {
        assign(&mut tree, change.as_ref())?;
    }
    Ok(RunConfig::from_tree(tree)?)
}

/// Trains as `config` says, and keeps everything in memory.
///
/// # Errors
/// If the run cannot begin, or its model cannot be evaluated.
pub fn trace(config: &RunConfig, device: &ChosenDevice) -> Result<Trace> {
    assemble(config, device.clone(), Watch { config })?
}

/// The loop of [`crate::drive`] without a folder: no checkpoints, no words, and thus no rollback.
struct Watch<'a> {
    config: &'a RunConfig,
}

impl Job for Watch<'_> {
    type Output = Result<Trace>;

    fn run<S: Session>(self, mut session: S) -> Result<Trace> {
        let config = self.config;
        session.start()?;
        let mut trace = Trace { rows: vec![Row::new(0, 0)], broke: None };
        let measure = |session: &S, row: &mut Row| -> Result<()> {
            session.evaluate()?.each(&mut |name, value| row.push(name, value));
            Ok(())
        };
        measure(&session, &mut trace.rows[0])?;
        while !config.is_over(session.step()) && trace.broke.is_none() {
            let (before, stops) = (session.step(), session.on_alarm() == OnAlarm::Stop);
            let advanced = match session.advance() {
                Ok(advanced) => advanced,
                Err(error) => {
                    trace.broke = Some(format!("{error:#}"));
                    break;
                }
            };
            let Advanced { mut row, alarms } = advanced;
            let alarm = alarms.iter().find(|alarm| alarm.symptom.is_final() || stops);
            trace.broke = alarm.map(|alarm| alarm.symptom.name().to_owned());
            let last = config.is_over(session.step()) || trace.broke.is_some();
            if last || config.eval.is_due(before, session.step()) {
                measure(&session, &mut row)?;
            }
            trace.rows.push(row);
        }
        Ok(trace)
    }
}

/// `f` of every job, as many at a time as there are cores, in the order of the jobs.
///
/// # Errors
/// The first error; what has begun is finished first.
pub fn parallel<T: Sync, R: Send>(jobs: &[T], f: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let (next, bar) = (AtomicUsize::new(0), ProgressBar::new(jobs.len() as u64));
    let done: Mutex<Vec<Option<Result<R>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { break };
                    let result = f(job);
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(result);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    // Jobs without a result were not begun, because of an error that is among the others.
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_side_by_side_and_answer_in_order() {
        let jobs: Vec<u64> = (0..40).collect();
        assert_eq!(parallel(&jobs, |n| Ok(n * n)).unwrap(), jobs.iter().map(|n| n * n).collect::<Vec<_>>());
        let failed = parallel(&jobs, |n| if *n == 7 { anyhow::bail!("seven") } else { Ok(()) });
        assert_eq!(failed.unwrap_err().to_string(), "seven");
    }

    #[test]
    fn a_change_that_cannot_work_is_refused_like_one_of_the_command_line() {
        let error = config("ppo-cart-pole", &["algo.gama=0.9"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `gamma`?"), "{error}");
    }
}

//! The one loop of every run: advance, measure, write, save, and stop when told to.
//!
//! A [`Session`] says what one kind of run does between two updates; the loop knows nothing of environments, responses
//! or datasets. Whatever the clock says stays out of metrics and checkpoints.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rl_algos::checkpoint::Checkpoint;
use rl_algos::guard::{Alarm, OnAlarm, Symptom};
use rl_algos::{CollectError, Report, Team, UpdateError};
use serde::Serialize;
use serde_json::Value;

use crate::assemble::Job;
use crate::config::RunConfig;
use crate::export::EventLog;
use crate::learner::Tensors;
use crate::live::{Display, Outlets};
use crate::metrics::Row;
use crate::progress::grouped;
use crate::recorder::{Past, Recorder, restore};
use crate::run_folder::{BestCheckpoint, RunFolder, Summary, file_of};
use crate::run_lock::RunLock;
use crate::{Outcome, interrupt, report};

/// A run between two updates.
pub trait Session: Sized {
    /// What its evaluation finds.
    type Findings: Findings;

    /// What its steps are called.
    const STEPS: &'static str = "steps";

    /// Updates made.
    fn update(&self) -> u64;

    /// Steps made.
    fn step(&self) -> u64;

    /// Before the first update, of a new run and of one that goes on: whatever is checked or prepared once.
    ///
    /// # Errors
    /// If the run cannot work.
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    /// New data, one update, and their metrics.
    ///
    /// # Errors
    /// If a number is not finite or an environment fails: go on with [`roll_back`](Self::roll_back), or not at all.
    fn advance(&mut self) -> Result<Advanced>;

    /// What the model has come to. Nothing of the run moves.
    ///
    /// # Errors
    /// If it cannot be measured.
    fn evaluate(&self) -> Result<Self::Findings>;

    /// Adds its tensors to a checkpoint's, and returns the rest.
    ///
    /// # Errors
    /// If its state does not become JSON.
    fn save(&self, tensors: &mut Tensors) -> Result<Value>;

    /// The run that [`save`](Self::save) saw.
    ///
    /// # Errors
    /// If a piece is missing or does not fit.
    fn load(self, state: Value, tensors: &Tensors) -> Result<Self>;

    /// The number that the progress line begins with.
    fn headline(&self, row: &Row) -> Option<(&'static str, f64)>;

    /// What an alarm leads to.
    fn on_alarm(&self) -> OnAlarm {
        OnAlarm::Warn
    }

    /// Whether no alarm is standing.
    fn healthy(&self) -> bool {
        true
    }

    /// The weights of a healthy checkpoint under a dearer β, and what was done, in words; time goes on.
    ///
    /// # Errors
    /// If a piece is missing, or this kind of run has nothing to make dearer.
    fn roll_back(self, _state: Value, _tensors: &Tensors) -> Result<(Self, String)> {
        bail!("this kind of run has no rollback")
    }

    /// After the last update: whatever else the run leaves in its folder.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(&self, _folder: &RunFolder) -> Result<()> {
        Ok(())
    }
}

/// What an evaluation finds: metrics of its row, fields of `summary.json`, and words.
pub trait Findings: Report + Serialize {
    /// In a few lines.
    fn brief(&self) -> String;

    /// What evaluations are compared by: its name, a minus in front where less is better, and its value; more is better.
    fn score(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// With every number.
    fn whole(&self) -> String {
        self.brief()
    }
}

/// One update, measured.
pub struct Advanced {
    /// Its metrics.
    pub row: Row,
    /// What the guards say.
    pub alarms: Vec<Alarm>,
}

/// A run to be made, or to be gone on with.
pub struct Drive<'a> {
    /// Where it is written.
    pub folder: RunFolder,
    /// What keeps other processes away from it.
    pub lock: RunLock,
    /// The other replicas.
    pub team: Team,
    /// Its settings.
    pub config: &'a RunConfig,
    /// The text of `config.toml`.
    pub text: String,
    /// Where it goes on.
    pub from: Option<(Checkpoint, PathBuf)>,
    /// Where it shows itself.
    pub outlets: Outlets,
}

impl Job for Drive<'_> {
    type Output = Result<Outcome>;

    fn run<S: Session>(self, mut session: S) -> Result<Outcome> {
        let Self { folder, lock, team, config, text, from, outlets } = self;
        let mut past = Past::default();
        if let Some((checkpoint, path)) = &from {
            (session, past) = restore(session, checkpoint, path, config.algo.name(), &text)?;
            if config.is_over(session.step()) && folder.file("summary.json").is_file() {
                say!("`{}` is finished: {} updates", folder.path.display(), session.update());
                return Ok(Outcome::Done);
            }
        }
        session.start()?;
        team.meet(session.update())?;
        let mut recorder = Recorder::open(&folder, config, &text, past, session.update())?;
        let mut healthy = match from {
            Some(from) => from,
            None => recorder.save(&session)?,
        };
        // A checkpoint is healthy once an update has come of it.
        let mut unproven = None;
        announce(&folder, config, &session);

        let mut log = EventLog::open(outlets.log, &folder)?;
        let mut display = Display::new(outlets.view, &folder, config, session.step())?;
        let (mut findings, mut stopped_by, mut rolled) = (None, None, 0);
        let mut saved = session.update();
        while !config.is_over(session.step()) && stopped_by.is_none() {
            let (started, before) = (Instant::now(), session.step());
            let advanced = match session.advance() {
                Ok(advanced) => advanced,
                Err(error) if rolls_back(&session, &error) && rolled < MOST_ROLLBACKS => {
                    rolled += 1;
                    let done;
                    (session, done) = recorder.roll_back(session, &healthy.0)?;
                    unproven = None;
                    display.note(format!("guard: {error:#}"));
                    display.note(format!("guard: back to the last healthy checkpoint, {done}"));
                    continue;
                }
                Err(error) => {
                    display.finish();
                    return Err(error.context(stopped(&healthy.1)));
                }
            };
            if let Some(proven) = unproven.take() {
                (healthy, rolled) = (proven, 0);
            }
            let Advanced { mut row, alarms } = advanced;
            let last = config.is_over(session.step());
            findings = None;
            if last || config.eval.is_due(before, session.step()) {
                let found = session.evaluate()?;
                found.each(&mut |name, value| row.push(name, value));
                findings = Some(found);
            }
            let rate = (session.step() - before) as f64 / started.elapsed().as_secs_f64();
            let timing = recorder.write(&row, rate)?;
            log.write(&row)?;
            if let Some((_, score)) = findings.as_ref().and_then(Findings::score) {
                recorder.rank(&session, score)?;
            }
            let wanted = display.show(&row, &timing, session.headline(&row))?;

            for alarm in &alarms {
                display.note(format!("guard: {alarm}"));
            }
            let rolls = session.on_alarm() == OnAlarm::Rollback;
            let fatal = alarms
                .iter()
                .find(|alarm| alarm.symptom.is_final() && !(rolls && alarm.symptom == Symptom::NonFinite));
            match (fatal, alarms.first(), session.on_alarm()) {
                (Some(alarm), ..) | (None, Some(alarm), OnAlarm::Stop) => stopped_by = Some(alarm.symptom),
                (None, Some(_), OnAlarm::Rollback) => {
                    let done;
                    (session, done) = recorder.roll_back(session, &healthy.0)?;
                    display.note(format!("guard: back to the last healthy checkpoint, {done}"));
                    findings = None;
                }
                _ => {}
            }
            let interrupted = interrupt::requested() && !last;
            let due = session.update().is_multiple_of(config.checkpoint.every_updates);
            if interrupted || last || due || wanted || stopped_by.is_some() {
                let (checkpoint, path) = recorder.save(&session)?;
                saved = session.update();
                if session.healthy() {
                    unproven = Some((checkpoint, path.clone()));
                }
                if interrupted {
                    display.finish();
                    let (update, total) = (session.update(), config.updates());
                    say!("interrupted after update {update} of {total}; saved {}", path.display());
                    say!("go on with: {} train --resume {}", crate::called(), folder.path.display());
                    return Ok(Outcome::Interrupted);
                }
            }
        }
        if saved != session.update() {
            // The last update was rolled back.
            recorder.save(&session)?;
        }
        display.finish();
        let findings = findings.map_or_else(|| session.evaluate(), Ok)?;
        session.finish(&folder)?;
        log.finish()?;
        finish(&folder, config, &session, &findings, stopped_by, &recorder)?;
        drop(lock);
        Ok(Outcome::Done)
    }
}

/// Rollbacks without a healthy checkpoint between them; whatever fails again after so many fails every time.
const MOST_ROLLBACKS: u32 = 3;

/// Whether `error` is of a kind that other data and older weights may cure, and the run wants that.
fn rolls_back<S: Session>(session: &S, error: &anyhow::Error) -> bool {
    let of_update = error.downcast_ref::<UpdateError>();
    let of_numbers =
        of_update.is_some_and(|it| !matches!(it, UpdateError::Team { .. })) || error.is::<CollectError>();
    of_numbers && session.on_alarm() == OnAlarm::Rollback
}

fn announce<S: Session>(folder: &RunFolder, config: &RunConfig, session: &S) {
    let (algorithm, task, total) = (config.algo.name(), config.task.kind.name(), config.updates());
    let steps = grouped(total * config.rollout());
    say!(
        "{algorithm} on {task}, seed {}, {steps} {} in {total} updates on {}",
        config.seed,
        S::STEPS,
        config.device
    );
    if session.update() > 0 {
        say!("goes on after update {}", session.update());
    }
    say!("run folder: {}", folder.path.display());
}

fn stopped(healthy: &Path) -> String {
    let path = healthy.display();
    format!(
        "the run stopped; its last healthy checkpoint is `{path}` (to go on from it, remove those after it)"
    )
}

fn finish<S: Session>(
    folder: &RunFolder,
    config: &RunConfig,
    session: &S,
    findings: &S::Findings,
    stopped_by: Option<Symptom>,
    recorder: &Recorder,
) -> Result<()> {
    let (steps, wall_s) = (session.step(), recorder.elapsed_s());
    let best = findings.score().zip(recorder.best()).map(|((metric, _), best)| BestCheckpoint {
        metric,
        score: best.score,
        update: best.update,
        checkpoint: format!("best/{}", file_of(best.update)),
    });
    let summary = Summary {
        findings: serde_json::to_value(findings).context("findings are plain data")?,
        best,
        stopped_by: stopped_by.map(Symptom::name),
        steps,
        updates: session.update(),
        seed: config.seed,
        wall_s,
        cpu_s: recorder.cpu_s(),
        steps_per_s: steps as f64 / wall_s,
        peak_rss_mb: crate::process::peak_rss_mb(),
    };
    folder.write("summary.json", &(serde_json::to_string_pretty(&summary)? + "\n"))?;
    say!("{}", findings.brief());
    let (unit, rate) = (S::STEPS, grouped(summary.steps_per_s as u64));
    say!("{} {unit} in {wall_s:.1} s, {rate} {unit}/s", grouped(steps));
    say!("evaluate again with: {} eval {}", crate::called(), folder.path.display());
    report::at_end(&folder.path);
    Ok(())
}

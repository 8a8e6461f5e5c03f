//! Training, resuming and evaluating RLHF runs.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use rl_algos::checkpoint::Checkpoint;
use rl_algos::guard::self_check::{Start, self_check};
use rl_algos::guard::{OnAlarm, Symptom};
use rl_algos::{Persist, Report, Responses, Update};
use rl_models::{Policy, Sampler};
use serde::Serialize;

use super::session::{Exact, RlhfSession};
use super::{RlhfJob, RlhfParts};
use crate::config::RunConfig;
use crate::metrics::{MetricFiles, Timing};
use crate::progress::{Progress, grouped};
use crate::run_folder::RunFolder;
use crate::{Outcome, interrupt, process};

/// A run to be made, or to be gone on with.
pub struct TrainRlhf<'a> {
    /// Where it is written.
    pub folder: RunFolder,
    /// Its settings.
    pub config: &'a RunConfig,
    /// The text of `config.toml`.
    pub text: String,
    /// Where it goes on.
    pub from: Option<(Checkpoint, PathBuf)>,
}

/// What `summary.json` says.
#[derive(Serialize)]
struct RlhfSummary {
    updates: u64,
    responses: u64,
    seed: u64,
    beta: f64,
    stopped_by: Option<&'static str>,
    #[serde(flatten)]
    exact: Exact,
    wall_s: f64,
    cpu_s: Option<f64>,
    peak_rss_mb: Option<f64>,
}

impl RlhfJob for TrainRlhf<'_> {
    type Output = Result<Outcome>;

    fn run<M, U>(self, parts: RlhfParts<M, U>) -> Result<Outcome>
    where
        M: Sampler + Module,
        U: Update<M, Data = Responses> + Persist,
    {
        let Self { folder, config, text, from } = self;
        let (algorithm, total) = (config.algo.name(), config.updates());
        let mut session = RlhfSession::new(parts, config.guards());
        let mut bytes = 0;
        if let Some((checkpoint, path)) = &from {
            (session, bytes) = session.restore(checkpoint, path, algorithm, &text)?;
        }
        check(&mut session)?;
        let metrics = folder.file("metrics.jsonl");
        let (mut files, before) =
            MetricFiles::open(&metrics, bytes, &folder.file("timing.jsonl"), session.update)
                .with_context(|| format!("cannot go on with `{}`", metrics.display()))?;
        let save = |session: &RlhfSession<M, U>, files: &mut MetricFiles| -> Result<(Checkpoint, PathBuf)> {
            let bytes = files.sync().with_context(|| format!("cannot write `{}`", metrics.display()))?;
            let checkpoint = session.checkpoint(algorithm, &text, bytes)?;
            let path = folder.save(&checkpoint, session.update, config.checkpoint.keep)?;
            Ok((checkpoint, path))
        };
        let mut healthy = save(&session, &mut files)?.0;
        say!("{algorithm} on token_world, seed {}: {total} updates", config.seed);
        say!("run folder: {}", folder.path.display());

        let (started, cpu, progress) =
            (Instant::now(), process::cpu_seconds(), Progress::new(config.total_steps, session.step));
        let mut stopped_by = None;
        while session.update < total && stopped_by.is_none() {
            let last_step = session.step;
            let advanced;
            (session, advanced) = session.advance().with_context(|| {
                format!("the run stopped; its last checkpoint is in `{}/checkpoint`", folder.path.display())
            })?;
            let mut row = advanced.row;
            let done = session.update == total;
            if due(config.eval.every_steps, last_step, session.step) || done {
                session.exact().each(&mut |name, value| row.push(name, value));
            }
            let elapsed_s = before.elapsed_s + started.elapsed().as_secs_f64();
            let spent = process::cpu_seconds().zip(cpu).map(|(now, then)| now - then);
            let cpu_s = spent.map(|spent| before.cpu_s.unwrap_or(0.0) + spent);
            let steps_per_s = session.step as f64 / elapsed_s.max(1e-9);
            let timing = Timing { step: row.step, update: row.update, steps_per_s, elapsed_s, cpu_s };
            files.write(&row, &timing).with_context(|| format!("cannot write `{}`", metrics.display()))?;
            progress.show(&row, row.get("objective/rlhf_reward"));

            for alarm in &advanced.alarms {
                say!("guard: {alarm}");
            }
            let finals = advanced.alarms.iter().find(|alarm| alarm.symptom.is_final());
            match (finals, advanced.alarms.first(), config.guards().on_alarm) {
                (Some(alarm), ..) | (None, Some(alarm), OnAlarm::Stop) => stopped_by = Some(alarm.symptom),
                (None, Some(_), OnAlarm::Rollback) => {
                    session = session.roll_back(&healthy)?;
                    say!("guard: back to the last healthy checkpoint, with β = {:.4}", beta(&session));
                }
                _ => {}
            }
            let interrupted = interrupt::requested() && !done;
            if interrupted || done || session.update.is_multiple_of(config.checkpoint.every_updates) {
                let (checkpoint, path) = save(&session, &mut files)?;
                if session.guards.healthy() {
                    healthy = checkpoint;
                }
                if interrupted {
                    progress.finish();
                    say!("interrupted after update {} of {total}; saved {}", session.update, path.display());
                    say!("go on with: rl-train train --resume {}", folder.path.display());
                    return Ok(Outcome::Interrupted);
                }
            }
        }
        progress.finish();
        if stopped_by.is_some() {
            save(&session, &mut files)?;
        }
        let exact = session.exact();
        let summary = RlhfSummary {
            updates: session.update,
            responses: session.step,
            seed: config.seed,
            beta: beta(&session),
            stopped_by: stopped_by.map(Symptom::name),
            exact,
            wall_s: before.elapsed_s + started.elapsed().as_secs_f64(),
            cpu_s: process::cpu_seconds().zip(cpu).map(|(now, then)| now - then),
            peak_rss_mb: process::peak_rss_mb(),
        };
        folder.write("summary.json", &(serde_json::to_string_pretty(&summary)? + "\n"))?;
        tell(&exact, beta(&session));
        say!("{} responses in {:.1} s", grouped(session.step), summary.wall_s);
        Ok(Outcome::Done)
    }
}

fn beta<M, U>(session: &RlhfSession<M, U>) -> f64 {
    session.parts.collector.state().controller.beta()
}

/// Whether an evaluation lies in `(before, after]`.
fn due(every: u64, before: u64, after: u64) -> bool {
    every > 0 && after / every > before / every
}

/// What a policy has come to, in words.
pub fn tell(exact: &Exact, beta: f64) {
    let Exact { score, gold, kl, entropy, frontier, objective, .. } = exact;
    say!("exact: score {score:.3}, gold {gold:.3}, KL {kl:.3} nats, entropy {entropy:.2} nats, β {beta:.4}");
    say!("the highest gold that any policy has at this KL is {frontier:.3}");
    if let (Some(optimum), Some(distance)) = (exact.optimum, exact.kl_to_optimum) {
        let share = 100.0 * objective / optimum;
        say!(
            "score − β·KL = {objective:.4}, {share:.1}% of the best there is; KL(π ‖ π*) = {distance:.4} nats"
        );
    }
}

/// The startup self-check.
fn check<M, U>(session: &mut RlhfSession<M, U>) -> Result<()>
where
    M: Sampler + Module,
    U: Update<M, Data = Responses> + Persist,
{
    let start = if session.update == 0 { Start::AtReference } else { Start::Elsewhere };
    let responses = session.probe();
    let RlhfParts { model, laws, reference, task, .. } = &session.parts;
    let found = self_check(
        &responses,
        |tokens| laws(model, tokens),
        |tokens| Policy::policy(reference, tokens),
        |written| task.score(written),
        start,
    );
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    ensure!(found.is_empty(), "{}", texts.join("\n"));
    Ok(())
}

/// The last checkpoint of a run, evaluated.
pub struct EvalRlhf<'a> {
    /// The run's settings.
    pub config: &'a RunConfig,
    /// The text of its `config.toml`.
    pub text: String,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Its place.
    pub path: PathBuf,
}

impl RlhfJob for EvalRlhf<'_> {
    type Output = Result<Outcome>;

    fn run<M, U>(self, parts: RlhfParts<M, U>) -> Result<Outcome>
    where
        M: Sampler + Module,
        U: Update<M, Data = Responses> + Persist,
    {
        let session = RlhfSession::new(parts, self.config.guards());
        let (session, _) =
            session.restore(&self.checkpoint, &self.path, self.config.algo.name(), &self.text)?;
        say!("after update {} ({} responses)", session.update, session.step);
        tell(&session.exact(), beta(&session));
        Ok(Outcome::Done)
    }
}

//! `rl-train train`: a new run, or an old one that goes on.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::Tensor;
use rl_algos::checkpoint::Checkpoint;
use rl_algos::collect_env::ActionOf;
use rl_algos::{Evaluation, Persist, Rollout, Update};
use rl_core::dist::Distribution;
use rl_envs::Env;
use rl_models::ActorCritic;

use crate::assemble::{Job, Parts, assemble};
use crate::cli::TrainArgs;
use crate::config::error::ConfigError;
use crate::config::{RunConfig, shipped};
use crate::device::ChosenDevice;
use crate::metrics::{MetricFiles, Row, Timing};
use crate::progress::{Progress, grouped};
use crate::rlhf::train::TrainRlhf;
use crate::run_folder::{RunFolder, Summary};
use crate::session::Session;
use crate::{Outcome, device, interrupt, process, rlhf};

/// Trains, evaluates, and says what came of it.
///
/// # Errors
/// [`ConfigError`] before anything was written; otherwise what stopped the run.
pub fn train(args: &TrainArgs) -> Result<Outcome> {
    interrupt::listen();
    match &args.resume {
        Some(run) => resumed(run, args),
        None => new_run(args),
    }
}

fn new_run(args: &TrainArgs) -> Result<Outcome> {
    let source = shipped::find(args.config.as_deref())?;
    let config = source
        .tree()
        .and_then(|mut tree| {
            args.changes.apply(&mut tree)?;
            RunConfig::from_tree(tree)
        })
        .with_context(|| source.name.clone())?;
    let device = device::choose(&config.device)?;
    let folder = RunFolder::create(args.out.as_deref(), &source.name, &config)?;
    start(&config, device, folder, config.resolved(), None)
}

fn resumed(run: &Path, args: &TrainArgs) -> Result<Outcome> {
    let changes = [("CONFIG", args.config.is_some()), ("--out", args.out.is_some())];
    let given = changes.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = args.changes.given().or(given) {
        return Err(ConfigError::ResumeChangesNothing { option }.into());
    }
    let (folder, config, text) = RunFolder::open(run)?;
    let from = Some(folder.last_checkpoint()?);
    let device = device::choose(&config.device)?;
    start(&config, device, folder, text, from)
}

/// An RLHF run or a run in environments.
fn start(
    config: &RunConfig,
    device: ChosenDevice,
    folder: RunFolder,
    text: String,
    from: Option<(Checkpoint, PathBuf)>,
) -> Result<Outcome> {
    if config.algo.rlhf_rollout().is_some() {
        let job = TrainRlhf { folder, config, text, from };
        return rlhf::assemble(config, device, job)?.context("an RLHF run has a token world")?;
    }
    assemble(config, device, Train { folder, config, text, from })
}

struct Train<'a> {
    folder: RunFolder,
    config: &'a RunConfig,
    text: String,
    from: Option<(Checkpoint, PathBuf)>,
}

impl Job for Train<'_> {
    type Output = Result<Outcome>;

    fn run<E, M, U>(self, parts: Parts<E, M, U>) -> Result<Outcome>
    where
        E: Env,
        M: ActorCritic<Obs = Tensor<2>>,
        <M::Dist as Distribution>::Elem: ActionOf<E::Action>,
        U: Update<M, Data = Rollout<Tensor<2>, M::Dist>> + Persist,
    {
        let Self { folder, config, text, from } = self;
        let (algorithm, total) = (config.algo.name(), config.updates());
        let mut session = Session::new(parts);
        let mut bytes = 0;
        if let Some((checkpoint, path)) = &from {
            (session, bytes) = session.restore(checkpoint, path, algorithm, &text)?;
            if config.is_over(session.step) && folder.file("summary.json").is_file() {
                say!("`{}` is finished: {} updates", folder.path.display(), session.update);
                return Ok(Outcome::Done);
            }
        }
        let metrics = folder.file("metrics.jsonl");
        let (mut files, before) =
            MetricFiles::open(&metrics, bytes, &folder.file("timing.jsonl"), session.update)
                .with_context(|| format!("cannot go on with `{}`", metrics.display()))?;
        let clock = Clock::after(before);
        let save = |session: &Session<E, M, U>, files: &mut MetricFiles| {
            let bytes = files.sync().with_context(|| format!("cannot write `{}`", metrics.display()))?;
            let checkpoint = session.checkpoint(algorithm, &text, bytes)?;
            folder.save(&checkpoint, session.update, config.checkpoint.keep)
        };
        if from.is_none() {
            save(&session, &mut files)?;
        }
        announce(&folder, config, session.update);

        let progress = Progress::new(config.total_steps, session.step);
        let mut evaluation = None;
        while !config.is_over(session.step) {
            let started = Instant::now();
            let last_step = session.step;
            let row;
            (session, row) = session.advance().with_context(|| stopped(&folder))?;
            let last = config.is_over(session.step);
            let row = {
                evaluation = due(config, last_step, session.step, last)
                    .then(|| session.evaluate(config.eval.episodes, config.eval.seed));
                with_evaluation(row, evaluation.as_ref())
            };
            let steps = (session.step - last_step) as f64;
            let timing = clock.now(&row, steps / started.elapsed().as_secs_f64().max(1e-9));
            files.write(&row, &timing).with_context(|| format!("cannot write `{}`", metrics.display()))?;
            progress.show(&row, session.episodes.mean_return());

            let interrupted = interrupt::requested() && !last;
            if interrupted || last || session.update.is_multiple_of(config.checkpoint.every_updates) {
                let path = save(&session, &mut files)?;
                if interrupted {
                    progress.finish();
                    return Ok(say_interrupted(&folder, &session.update, total, &path));
                }
            }
        }
        progress.finish();
        let (episodes, seed) = (config.eval.episodes, config.eval.seed);
        let evaluation = evaluation.unwrap_or_else(|| session.evaluate(episodes, seed));
        finish(&folder, config, session.step, session.update, &evaluation, &clock)?;
        Ok(Outcome::Done)
    }
}

/// Whether an evaluation lies in `(before, after]`, or the run ends.
fn due(config: &RunConfig, before: u64, after: u64, last: bool) -> bool {
    let every = config.eval.every_steps;
    last || (every > 0 && after / every > before / every)
}

fn with_evaluation(mut row: Row, evaluation: Option<&Evaluation>) -> Row {
    if let Some(evaluation) = evaluation {
        let mut f = |name, value| row.push(name, value);
        f("eval/return_mean", evaluation.mean());
        f("eval/return_std", evaluation.std());
    }
    row
}

/// Wall and CPU time of a run over all its sittings.
struct Clock {
    before: Timing,
    started: Instant,
    cpu: Option<f64>,
}

impl Clock {
    fn after(before: Timing) -> Self {
        Self { before, started: Instant::now(), cpu: process::cpu_seconds() }
    }

    fn elapsed_s(&self) -> f64 {
        self.before.elapsed_s + self.started.elapsed().as_secs_f64()
    }

    fn cpu_s(&self) -> Option<f64> {
        Some(self.before.cpu_s.unwrap_or(0.0) + process::cpu_seconds()? - self.cpu?)
    }

    fn now(&self, row: &Row, steps_per_s: f64) -> Timing {
        let (elapsed_s, cpu_s) = (self.elapsed_s(), self.cpu_s());
        Timing { step: row.step, update: row.update, steps_per_s, elapsed_s, cpu_s }
    }
}

fn announce(folder: &RunFolder, config: &RunConfig, update: u64) {
    let (algorithm, task, total) = (config.algo.name(), config.task.kind.name(), config.updates());
    let steps = grouped(total * config.rollout());
    say!(
        "{algorithm} on {task}, seed {}, {steps} steps in {total} updates on {}",
        config.seed,
        config.device
    );
    if update > 0 {
        say!("goes on after update {update}");
    }
    say!("run folder: {}", folder.path.display());
}

fn stopped(folder: &RunFolder) -> String {
    let path = folder.path.display();
    format!("the run stopped; its last checkpoint is in `{path}/checkpoint`")
}

fn say_interrupted(folder: &RunFolder, update: &u64, total: u64, checkpoint: &Path) -> Outcome {
    say!("interrupted after update {update} of {total}; saved {}", checkpoint.display());
    say!("go on with: rl-train train --resume {}", folder.path.display());
    Outcome::Interrupted
}

fn finish(
    folder: &RunFolder,
    config: &RunConfig,
    steps: u64,
    updates: u64,
    evaluation: &Evaluation,
    clock: &Clock,
) -> Result<()> {
    let wall_s = clock.elapsed_s();
    let summary = Summary {
        eval_return_mean: evaluation.mean(),
        eval_return_std: evaluation.std(),
        eval_episodes: evaluation.returns.len(),
        steps,
        updates,
        seed: config.seed,
        wall_s,
        cpu_s: clock.cpu_s(),
        steps_per_s: steps as f64 / wall_s,
        peak_rss_mb: process::peak_rss_mb(),
    };
    folder.write("summary.json", &(serde_json::to_string_pretty(&summary)? + "\n"))?;
    let (mean, std, n) = (summary.eval_return_mean, summary.eval_return_std, summary.eval_episodes);
    say!("evaluation: return {mean:.1} ± {std:.1} over {n} greedy episodes");
    let rate = grouped(summary.steps_per_s as u64);
    say!("{} steps in {wall_s:.1} s, {rate} steps/s", grouped(steps));
    let path = folder.path.display();
    say!("evaluate again with: rl-train eval {path}");
    Ok(())
}

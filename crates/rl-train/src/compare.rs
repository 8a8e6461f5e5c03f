//! `rl-train compare`: experiments against each other, with intervals.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;
use rl_core::bootstrap::Interval;

use crate::Outcome;
use crate::comparison::{Contender, compare, score};
use crate::recording::Recording;
use crate::report::{groups, number};

/// `rl-train compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Folders of runs, or their names in runs/; those that differ in their seed alone are one experiment
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,
    /// Compare the last quarter of this metric [default: the final evaluation]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Call runs one experiment that agree in this setting, such as `algo.kind`, and average over their tasks
    #[arg(long, value_name = "KEY")]
    pub by: Option<String>,
}

/// Prints the comparison.
///
/// # Errors
/// If a folder holds no run, or a run has no score.
pub fn run(args: &CompareArgs) -> Result<Outcome> {
    let runs: Vec<Recording> = args.runs.iter().map(|path| Recording::read(path)).collect::<Result<_>>()?;
    let (contenders, tasks, what) = contenders(&runs, args)?;
    ensure!(
        contenders.len() > 1,
        "the runs do not differ in any setting but the seed: there is nothing to compare"
    );
    let found = compare(&contenders, &tasks);
    say!("score: {what}; mean and interquartile mean with 95 % bootstrap intervals");
    let width = contenders.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    for (name, task, runs, mean, middle) in &found.scores {
        say!("{name:<width$}  {task}  {runs} runs  mean {}  IQM {}", interval(mean), interval(middle));
    }
    for improvement in &found.improvements {
        let first = &contenders[0].name;
        say!(
            "P({} beats {first}) = {}: {}",
            improvement.name,
            interval(&improvement.probability),
            improvement.verdict(first)
        );
    }
    Ok(Outcome::Done)
}

fn interval(of: &Interval) -> String {
    format!("{} [{}, {}]", number(of.estimate), number(of.low), number(of.high))
}

/// The experiments, their tasks, and what their scores are.
fn contenders(runs: &[Recording], args: &CompareArgs) -> Result<(Vec<Contender>, Vec<String>, String)> {
    let task_of = |run: &Recording| match run.setting("task.kind").and_then(toml::Value::as_str) {
        Some(task) => task.to_owned(),
        None => "no task".to_owned(),
    };
    let mut tasks: Vec<String> = vec![];
    for run in runs {
        let task = task_of(run);
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let all: Vec<&Recording> = runs.iter().collect();
    let parts: Vec<(String, Vec<&Recording>)> = match &args.by {
        None => groups(&all).into_iter().map(|group| (group.name, group.runs)).collect(),
        Some(key) => {
            let mut found: Vec<(String, Vec<&Recording>)> = vec![];
            for run in all {
                let Some(value) = run.setting(key) else {
                    bail!("`{}` has no setting `{key}`", run.path.display());
                };
                let name = value.as_str().map_or_else(|| format!("{key} = {value}"), str::to_owned);
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, runs)) => runs.push(run),
                    None => found.push((name, vec![run])),
                }
            }
            found
        }
    };
    let mut what: Option<String> = None;
    let mut contenders = vec![];
    for (name, runs) in parts {
        let mut scores = vec![vec![]; tasks.len()];
        for run in runs {
            let Some((this, value)) = score(run, args.metric.as_deref()) else {
                let wanted = args.metric.as_deref().unwrap_or("evaluation and no return");
                bail!(
                    "`{}` has no {wanted}: let it finish, or choose another `--metric`",
                    run.path.display()
                );
            };
            let what = what.get_or_insert(this.clone());
            ensure!(
                *what == this,
                "`{}` is scored by {this}, others by {what}: choose a `--metric` of both",
                run.path.display()
            );
            let task = task_of(run);
            let place = tasks.iter().position(|known| *known == task).expect("every task is listed");
            scores[place].push(value);
        }
        contenders.push(Contender { name, scores });
    }
    Ok((contenders, tasks, what.unwrap_or_default()))
}

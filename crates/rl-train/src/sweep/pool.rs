//! Runs as processes: as many at once as cores and memory allow.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use anyhow::{Context, Result};

use super::plan::Trial;
use crate::interrupt;

/// How often to look after the runs.
const LOOK: Duration = Duration::from_millis(50);

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Runs at once.
    pub cores: usize,
    /// Memory of all together, MB.
    pub memory_mb: f64,
}

impl Budget {
    /// All cores and no bound on memory, unless set.
    pub fn new(cores: Option<usize>, memory_mb: Option<f64>) -> Self {
        let all = available_parallelism().map_or(1, usize::from);
        Self { cores: cores.unwrap_or(all).clamp(1, all), memory_mb: memory_mb.unwrap_or(f64::INFINITY) }
    }

    /// Whether one more may start beside runs that take `now` MB each, when one has taken at most `most`.
    ///
    /// The first starts always; how much a run takes is known only once one runs.
    fn admits(&self, now: &[f64], most: f64) -> bool {
        let expected: f64 = now.iter().map(|mb| mb.max(most)).sum::<f64>() + most;
        now.is_empty() || (now.len() < self.cores && expected <= self.memory_mb)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With its summary.
    Well,
    /// With its last words.
    Failed(String),
}

/// A run that goes on.
struct Running<'a> {
    trial: &'a Trial,
    child: Child,
}

/// Starts every trial in `folder` as the budget allows, and waits for all. After an interruption no run starts, and those
/// that go on are told to save and stop.
///
/// # Errors
/// If a run cannot be started.
pub fn work_off(trials: &[&Trial], folder: &Path, budget: &Budget) -> Result<Vec<(String, Ended)>> {
    let mut waiting: VecDeque<&Trial> = trials.iter().copied().collect();
    let (mut running, mut ended, mut told, mut most): (Vec<Running>, Vec<_>, _, f64) =
        (vec![], vec![], false, 0.0);
    while !running.is_empty() || (!waiting.is_empty() && !interrupt::requested()) {
        let memory: Vec<f64> = running.iter().map(|run| peak_mb(run.child.id()).unwrap_or(0.0)).collect();
        most = memory.iter().copied().fold(most, f64::max);
        // A run that has just started has not taken its memory yet.
        let settled = memory.iter().all(|mb| *mb >= 0.5 * most) || budget.memory_mb.is_infinite();
        if !interrupt::requested()
            && settled
            && budget.admits(&memory, most)
            && let Some(trial) = waiting.pop_front()
        {
            running.push(Running { trial, child: start(trial, folder)? });
        }
        if interrupt::requested() && !told {
            told = true;
            running.iter().for_each(|run| stop(run.child.id()));
        }
        let mut still = vec![];
        for mut run in running {
            match run.child.try_wait().with_context(|| format!("cannot wait for {}", run.trial.name))? {
                None => still.push(run),
                Some(status) if status.success() => {
                    say!("{} done ({} of {})", run.trial.name, ended.len() + 1, trials.len());
                    ended.push((run.trial.name.clone(), Ended::Well));
                }
                Some(_) if told => {}
                Some(_) => {
                    let log = fs::read_to_string(log(folder, run.trial)).unwrap_or_default();
                    let words = log
                        .lines()
                        .rev()
                        .find(|line| !line.trim().is_empty())
                        .unwrap_or("no words")
                        .to_owned();
                    ended.push((run.trial.name.clone(), Ended::Failed(words)));
                }
            }
        }
        running = still;
        sleep(LOOK);
    }
    Ok(ended)
}

fn log(folder: &Path, trial: &Trial) -> std::path::PathBuf {
    folder.join(format!("{}.log", trial.name))
}

/// Starts a run, or goes on with it.
fn start(trial: &Trial, folder: &Path) -> Result<Child> {
    let program = std::env::current_exe().context("this program does not know where it lies")?;
    let (out, log) = (folder.join(&trial.name), log(folder, trial));
    let file = File::create(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
    let mut command = Command::new(program);
    command.arg("train");
    let saved = fs::read_dir(out.join("checkpoint")).is_ok_and(|mut files| files.next().is_some());
    if saved {
        command.arg("--resume").arg(&out);
    } else {
        // What a run left that died before its first checkpoint is worth nothing.
        let _ = fs::remove_dir_all(&out);
        command.arg(&trial.config).args(trial.set.iter().flat_map(|set| ["--set", set]));
        command.arg("--seed").arg(trial.seed.to_string()).arg("--out").arg(&out);
    }
    command.env("RAYON_NUM_THREADS", "1").stdin(Stdio::null());
    // Ctrl-C in a terminal reaches the whole foreground group; the runs are told once, by us.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdout(file.try_clone()?).stderr(file);
    command.spawn().with_context(|| format!("cannot start {}", trial.name))
}

/// Asks a run to save and stop.
fn stop(process: u32) {
    let _ = Command::new("kill").args(["-TERM", &process.to_string()]).status();
}

/// The most memory a process has had, MB.
fn peak_mb(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_admits_what_cores_and_memory_allow_and_always_the_first() {
        let budget = Budget { cores: 3, memory_mb: 250.0 };
        assert!(budget.admits(&[], 1000.0), "one run must go on even if it is too large");
        assert!(budget.admits(&[100.0], 100.0));
        assert!(!budget.admits(&[100.0, 100.0], 100.0), "a third would need 300 MB");
        assert!(
            !budget.admits(&[10.0], 130.0),
            "a run that has just started will take as much as the largest"
        );
        let roomy = Budget { cores: 2, memory_mb: f64::INFINITY };
        assert!(roomy.admits(&[100.0], 100.0) && !roomy.admits(&[1.0, 1.0], 1.0));
        assert_eq!(Budget::new(Some(0), None).cores, 1);
    }
}

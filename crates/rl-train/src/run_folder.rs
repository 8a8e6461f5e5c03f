//! A run's folder: where everything about a run is, and how it is found again.
//!
//! ```text
//! config.toml      the resolved config: this file alone gives the run again
//! run.json         seed, versions, git revision, device, command line
//! metrics.jsonl    one object per update; the same bytes for the same seed
//! timing.jsonl     what the clock said at each update
//! checkpoint/      00000123.safetensors: everything after update 123; the last few
//! best/            the same, of the best evaluations, where `checkpoint.keep_best` asks for them
//! run.lock         held by the process that writes the run
//! summary.json     the evaluation and what the run cost, once it is finished
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rl_algos::checkpoint::Checkpoint;
use serde::Serialize;

use crate::config::RunConfig;
use crate::config::error::ConfigError;
use crate::process;
use crate::recorder::Best;
use crate::run_lock::{self, RunLock};

/// A folder that holds a run, or is about to.
#[derive(Debug, Clone)]
pub struct RunFolder {
    /// Its place.
    pub path: PathBuf,
}

/// What `summary.json` says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the final evaluation found.
    #[serde(flatten)]
    pub findings: serde_json::Value,
    /// The best evaluation, and where its checkpoint is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<BestCheckpoint>,
    /// The guard that ended the run, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<&'static str>,
    /// Steps trained: environment steps, responses, or rows of a dataset.
    pub steps: u64,
    /// Updates made.
    pub updates: u64,
    /// The run's seed.
    pub seed: u64,
    /// Seconds of training, interruptions left out.
    pub wall_s: f64,
    /// CPU seconds of training.
    pub cpu_s: Option<f64>,
    /// Steps per second of training.
    pub steps_per_s: f64,
    /// The most memory the process has had, MB.
    pub peak_rss_mb: Option<f64>,
}

/// A checkpoint that was kept because its evaluation was the best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestCheckpoint {
    /// What evaluations are compared by; a minus where less is better.
    pub metric: &'static str,
    /// Its value.
    pub score: f64,
    /// After which update.
    pub update: u64,
    /// In the run's folder.
    pub checkpoint: String,
}

/// What `run.json` says.
#[derive(Serialize)]
struct RunRecord {
    seed: u64,
    device: String,
    version: &'static str,
    rustc: &'static str,
    git_revision: Option<String>,
    command_line: Vec<String>,
}

impl RunFolder {
    /// A new folder at `out`, or at its default place, with the config and the record in it, and its lock.
    ///
    /// # Errors
    /// If `out` holds something already, is another process's, or cannot be written.
    pub fn create(out: Option<&Path>, name: &str, config: &RunConfig) -> Result<(Self, RunLock)> {
        let path = match out {
            Some(out) => out.to_owned(),
            None => free(&format!("runs/{name}-seed{}-{}", config.seed, process::timestamp())),
        };
        let folder = Self { path };
        folder.require_empty_but(&[])?;
        fs::create_dir_all(folder.checkpoints())
            .with_context(|| format!("cannot create the run's folder `{}`", folder.path.display()))?;
        let lock = RunLock::take(&folder.path)?;
        // Another process may have been here between the first look and the lock.
        folder.require_empty_but(&["checkpoint"])?;
        folder.write("config.toml", &config.resolved())?;
        let record = RunRecord {
            seed: config.seed,
            device: config.device.clone(),
            version: env!("CARGO_PKG_VERSION"),
            rustc: env!("RL_RUSTC_VERSION"),
            git_revision: process::git_revision(),
            command_line: std::env::args().collect(),
        };
        folder.write("run.json", &(serde_json::to_string_pretty(&record)? + "\n"))?;
        Ok((folder, lock))
    }

    /// Requires that the folder holds nothing but what a run begins with.
    fn require_empty_but(&self, known: &[&str]) -> Result<(), ConfigError> {
        let known = |entry: fs::DirEntry| {
            known.iter().chain(&[run_lock::FILE]).any(|name| entry.file_name() == *name)
        };
        let what = if self.path.is_file() {
            "is a file; choose a folder for `--out`".to_owned()
        } else if fs::read_dir(&self.path).map_or(true, |entries| entries.flatten().all(known)) {
            return Ok(());
        } else if self.path.join("config.toml").is_file() && self.checkpoints().is_dir() {
            let path = self.path.display();
            format!(
                "holds a run; go on with it by `rl-train train --resume {path}`, or choose another `--out`"
            )
        } else {
            "is not empty and holds no run; choose another folder for `--out`, or empty it".to_owned()
        };
        Err(ConfigError::OutNotEmpty { path: self.path.clone(), what })
    }

    /// The run at `path`, or called so in `runs/`, with its config and the config's text.
    ///
    /// # Errors
    /// If there is no such folder, or it holds no run.
    pub fn open(path: &Path) -> Result<(Self, RunConfig, String)> {
        let named = Path::new("runs").join(path);
        let path = if !path.exists() && named.is_dir() { named } else { path.to_owned() };
        let no_run = |what: &str| ConfigError::NoRun { path: path.clone(), what: what.to_owned() };
        if !path.is_dir() {
            return Err(no_run("there is no such folder").into());
        }
        let file = path.join("config.toml");
        let text = fs::read_to_string(&file).map_err(|_| no_run("it has no `config.toml`"))?;
        let tree = text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax(e.to_string()));
        let config = tree
            .and_then(RunConfig::from_tree)
            .with_context(|| format!("`{}` has been changed or damaged", file.display()))?;
        Ok((Self { path }, config, text))
    }

    /// Where checkpoints are.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoint")
    }

    /// Where the checkpoints of the best evaluations are.
    pub fn best(&self) -> PathBuf {
        self.path.join("best")
    }

    /// A file of the run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a small file, whole or not at all.
    ///
    /// # Errors
    /// What the operating system says, with the file's name.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let (path, partial) = (self.file(name), self.file(&format!("{name}.partial")));
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        written.with_context(|| format!("cannot write `{}`", path.display()))
    }

    /// Checkpoints of a folder, the oldest first, by update.
    fn updates(folder: &Path) -> Vec<(u64, PathBuf)> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<(u64, PathBuf)> = entries
            .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
            .filter_map(|path| Some((path.file_stem()?.to_str()?.parse().ok()?, path)))
            .collect();
        found.sort();
        found
    }

    /// Writes the checkpoint of `update`, and removes all but the last `keep`.
    ///
    /// # Errors
    /// If it cannot be written; the others are then still there.
    pub fn save(&self, checkpoint: &Checkpoint, update: u64, keep: usize) -> Result<PathBuf> {
        let path = self.checkpoints().join(file_of(update));
        checkpoint.save(&path)?;
        let found = Self::updates(&self.checkpoints());
        found[..found.len().saturating_sub(keep)].iter().try_for_each(|(_, old)| remove(old))?;
        Ok(path)
    }

    /// Writes the checkpoint of the first of `best`, and removes the others' that are no longer among them.
    ///
    /// # Errors
    /// If it cannot be written; the others are then still there.
    pub fn save_best(&self, checkpoint: &Checkpoint, update: u64, best: &[Best]) -> Result<()> {
        checkpoint.save(&self.best().join(file_of(update)))?;
        let found = Self::updates(&self.best());
        let mut beaten = found.iter().filter(|(update, _)| best.iter().all(|one| one.update != *update));
        beaten.try_for_each(|(_, old)| remove(old))
    }

    /// The best checkpoint, as the last one ranks them, and its file.
    ///
    /// # Errors
    /// If none was kept, or it is damaged.
    pub fn best_checkpoint(&self) -> Result<(Checkpoint, PathBuf)> {
        let (last, _) = self.last_checkpoint()?;
        let Some(best) = Best::of(&last)?.into_iter().next() else {
            let what =
                "it keeps no best checkpoint: it needs `checkpoint.keep_best` and an evaluation".to_owned();
            return Err(ConfigError::NoRun { path: self.path.clone(), what }.into());
        };
        let path = self.best().join(file_of(best.update));
        Ok((Checkpoint::load(&path)?, path))
    }

    /// The last checkpoint and its file. A damaged one is an error and not skipped: whoever wants the
    /// one before must remove it.
    ///
    /// # Errors
    /// If there is none, or the last is damaged.
    pub fn last_checkpoint(&self) -> Result<(Checkpoint, PathBuf)> {
        let found = Self::updates(&self.checkpoints());
        let Some((_, path)) = found.last() else {
            let what = "it has no checkpoint".to_owned();
            return Err(ConfigError::NoRun { path: self.path.clone(), what }.into());
        };
        let checkpoint = Checkpoint::load(path).with_context(|| match found.len() {
            0 | 1 => "the run cannot go on".to_owned(),
            _ => {
                let before = &found[found.len() - 2].1;
                format!("the run cannot go on (remove the file to go on from `{}`)", before.display())
            }
        })?;
        Ok((checkpoint, path.clone()))
    }
}

/// A checkpoint's file name.
pub fn file_of(update: u64) -> String {
    format!("{update:08}.safetensors")
}

fn remove(old: &Path) -> Result<()> {
    fs::remove_file(old).with_context(|| format!("cannot remove the old checkpoint `{}`", old.display()))
}

/// `name`, or `name-2`, `name-3`, …: the first that does not exist.
fn free(name: &str) -> PathBuf {
    let names = (1..).map(|i| if i == 1 { name.to_owned() } else { format!("{name}-{i}") });
    names.map(PathBuf::from).find(|path| !path.exists()).expect("some number is free")
}

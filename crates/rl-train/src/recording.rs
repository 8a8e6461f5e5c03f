//! A run, read back from its folder: what every report, comparison and live view looks at.
//!
//! Nothing here needs the run to be finished, to be of this version, or to be undamaged: whatever can be read is read, and
//! the rest is named in [`Recording::damage`].

pub mod columns;
pub mod trend;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use crate::config::error::ConfigError;
use crate::metrics::Timing;
pub use columns::{Column, Columns};
pub use trend::{Point, Trend};

/// What a run has written.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its folder.
    pub path: PathBuf,
    /// The folder's name.
    pub name: String,
    /// The resolved config.
    pub config: Table,
    /// What `run.json` says: versions, device, command line.
    pub record: Map<String, Json>,
    /// What `summary.json` says, once the run is finished.
    pub summary: Option<Map<String, Json>>,
    /// Its metrics.
    pub columns: Columns,
    /// Its last timing.
    pub timing: Option<Timing>,
    /// What could not be read.
    pub damage: Vec<String>,
}

impl Recording {
    /// Reads the run at `path`, or called so in `runs/`.
    ///
    /// # Errors
    /// If there is no such folder, or it holds no run.
    pub fn read(path: &Path) -> Result<Self> {
        let path = find(path)?;
        let mut damage = vec![];
        let text = fs::read_to_string(path.join("config.toml")).context("`config.toml` cannot be read")?;
        let config = text.parse().unwrap_or_else(|error: toml::de::Error| {
            damage.push(format!("config.toml is not TOML: {}", error.message()));
            Table::new()
        });
        let mut object = |name: &str| -> Option<Map<String, Json>> {
            let text = fs::read_to_string(path.join(name)).ok()?;
            let read = serde_json::from_str(&text);
            read.map_err(|error| damage.push(format!("{name}: {error}"))).ok()
        };
        let (record, summary) = (object("run.json").unwrap_or_default(), object("summary.json"));
        let (columns, bad) = match File::open(path.join("metrics.jsonl")) {
            Ok(file) => Columns::read(BufReader::with_capacity(1 << 20, file))
                .with_context(|| format!("cannot read `{}`", path.join("metrics.jsonl").display()))?,
            Err(_) => Default::default(),
        };
        if let Some(first) = bad.first() {
            damage.push(format!("metrics.jsonl: {} damaged lines, the first is line {first}", bad.len()));
        }
        let timing = last_timing(&path.join("timing.jsonl"));
        let name = path.canonicalize().unwrap_or(path.clone());
        let name = name.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
        Ok(Self { path, name, config, record, summary, columns, timing, damage })
    }

    /// The setting at `key`, such as `algo.rollout.kl.target`.
    pub fn setting(&self, key: &str) -> Option<&Value> {
        setting(&self.config, key)
    }

    /// Every setting but the seed, as `key = value`: runs that agree in all are seeds of one experiment.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut found = vec![];
        flatten("", &self.config, &mut found);
        found
    }

    /// Its seed.
    pub fn seed(&self) -> Option<i64> {
        self.config.get("seed")?.as_integer()
    }

    /// A number of the summary.
    pub fn result(&self, key: &str) -> Option<f64> {
        self.summary.as_ref()?.get(key)?.as_f64()
    }
}

/// The setting at `key` of a resolved config.
pub fn setting<'a>(config: &'a Table, key: &str) -> Option<&'a Value> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let value = config.get(first)?;
    rest.map_or(Some(value), |rest| setting(value.as_table()?, rest))
}

fn flatten(above: &str, table: &Table, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let key = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            Value::Table(table) => flatten(&key, table, found),
            value => found.push((key, value.to_string())),
        }
    }
}

/// The folder of the run at `path`, or called so in `runs/`.
///
/// # Errors
/// If there is no such folder, or it holds no run.
pub fn find(path: &Path) -> Result<PathBuf, ConfigError> {
    let named = Path::new("runs").join(path);
    let path = if !path.exists() && named.is_dir() { named } else { path.to_owned() };
    let no_run = |what: &str| ConfigError::NoRun { path: path.clone(), what: what.to_owned() };
    if !path.is_dir() {
        return Err(no_run("there is no such folder"));
    }
    if !path.join("config.toml").is_file() {
        return Err(no_run("it has no `config.toml`"));
    }
    Ok(path)
}

/// The last whole line of `timing.jsonl`.
pub fn last_timing(path: &Path) -> Option<Timing> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096))).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
}

//! What can be wrong with a run file or a command line. All of it exits with code 2.

use std::path::PathBuf;

use rl_algos::AlgoError;
use toml::Value;

use super::nearest::nearest;
use super::reader::{Misread, Mistake};

/// A run file or a command line that cannot work. Each text names the key, the value and the cure.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A key that its table does not have.
    #[error("unknown key `{key}` in {table}{hint} Known keys: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Its table, as the file writes it.
        table: String,
        /// The nearest known key, if one is near.
        hint: String,
        /// All known keys.
        known: String,
    },
    /// A name that is none of the choices.
    #[error("`{key}` = {got} is unknown{hint} Known: {known}")]
    UnknownChoice {
        /// The key.
        key: String,
        /// Its value.
        got: String,
        /// The nearest choice, if one is near.
        hint: String,
        /// All choices.
        known: String,
    },
    /// A table without a key it must have.
    #[error("{table} needs the key `{key}`")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// Its table, as the file writes it.
        table: String,
    },
    /// A value of another type.
    #[error("`{key}` = {got} does not do: it must be {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// Its value, as the file writes it.
        got: String,
        /// What would do.
        expected: String,
    },
    /// Another mistake in a value.
    #[error("`{key}`: {what}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// A number outside its range.
    #[error("`{key}` must be in {range}, but is {got}")]
    OutOfRange {
        /// The key with its table.
        key: &'static str,
        /// The range as mathematics writes it.
        range: &'static str,
        /// The number.
        got: f64,
    },
    /// A setting of the algorithm.
    #[error("[algo] {0}")]
    Algo(#[from] AlgoError),
    /// A shared network without a trunk.
    #[error(
        "`model.layout` = \"shared\" needs a hidden layer to share, but `model.hidden` is empty; \
         add one, or use \"separate\""
    )]
    NothingShared,
    /// An algorithm on a task of another kind.
    #[error("`algo.kind` = \"{algo}\" cannot learn `task.kind` = \"{task}\": {cure}")]
    Mismatch {
        /// The algorithm.
        algo: &'static str,
        /// The task.
        task: String,
        /// What would do.
        cure: &'static str,
    },
    /// A path with a variable that is not set.
    #[error(
        "`{key}` = \"{path}\": the variable {name} is not set; `export {name}=FOLDER` with the folder that holds the \
         rest of this path, or write the path out: `--set {key}=…`"
    )]
    NoVariable {
        /// The key.
        key: &'static str,
        /// The path as the file writes it.
        path: String,
        /// The variable.
        name: String,
    },
    /// A path at which there is nothing.
    #[error("`{key}` = \"{text}\": there is no `{}`", path.display())]
    NoSuchPath {
        /// The key.
        key: &'static str,
        /// The path as the file writes it.
        text: String,
        /// What it means.
        path: PathBuf,
    },
    /// A run without a table that its task needs.
    #[error("`task.kind` = \"{task}\" needs the table [{table}]: {cure}")]
    NoTable {
        /// The task.
        task: String,
        /// The table.
        table: &'static str,
        /// What belongs in it.
        cure: &'static str,
    },
    /// A setting that the algorithm cannot work with.
    #[error("`{key}` = {got} does not go with `algo.kind` = \"{algo}\": {why}")]
    NotWithAlgo {
        /// The key with its table.
        key: &'static str,
        /// Its value, as the file writes it.
        got: String,
        /// The algorithm.
        algo: &'static str,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// Less than one update.
    #[error(
        "`total_steps` = {total} is less than one rollout of {rollout} steps ({envs} envs × {steps} steps); \
         use at least {rollout}"
    )]
    TooShort {
        /// Steps asked for.
        total: u64,
        /// Steps of one rollout.
        rollout: u64,
        /// Environments side by side.
        envs: usize,
        /// Steps of each environment per rollout.
        steps: usize,
    },
    /// A run file that is no TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// A run file that cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// Neither a file nor a shipped config.
    #[error("no file `{name}`, and no config of that name{hint} Known configs: {known}")]
    NoSuchConfig {
        /// What was asked for.
        name: String,
        /// The nearest name, if one is near.
        hint: String,
        /// All names.
        known: String,
    },
    /// No study of that name.
    #[error("no study `{name}`{hint} Known studies: {known}")]
    NoSuchStudy {
        /// What was asked for.
        name: String,
        /// The nearest name, if one is near.
        hint: String,
        /// All names.
        known: String,
    },
    /// A `--set` that is no assignment.
    #[error("`--set {text}`: write `--set key=value`, such as `--set algo.gamma=0.98`")]
    NoAssignment {
        /// What was given.
        text: String,
    },
    /// A `--set` below something that is no table.
    #[error("`--set {text}`: `{key}` is {got}, not a table with keys; set `{key}` itself")]
    NotATable {
        /// What was given.
        text: String,
        /// The key above.
        key: String,
        /// Its value.
        got: String,
    },
    /// A device that no build has.
    #[error("unknown device `{name}`{hint} Known devices: {known}")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// The nearest device, if one is near.
        hint: String,
        /// All devices.
        known: String,
    },
    /// A device that this build has not.
    #[error(
        "this rl-train was built without `{name}`; build it in with \
         `cargo run --release -p rl-train --features {name} -- …`, or choose a device of this build: {built}"
    )]
    DeviceNotBuilt {
        /// The device, which is also the cargo feature.
        name: String,
        /// The devices built in.
        built: String,
    },
    /// The output folder holds something.
    #[error("`{}` {what}", path.display())]
    OutNotEmpty {
        /// The folder.
        path: PathBuf,
        /// What it holds and what to do.
        what: String,
    },
    /// A folder that is no run.
    #[error("`{}` is no run: {what}; a run is a folder that `rl-train train` has written", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// What it lacks.
        what: String,
    },
    /// A dashboard without a terminal.
    #[error("a dashboard needs a terminal: run it in one, or leave `--tui` out")]
    NoTerminal,
    /// Options that change a run that goes on.
    #[error(
        "`{option}` cannot change a run that goes on: its schedules depend on its config, and a resumed run must \
         equal an undisturbed one. Resume without `{option}`, or start a new run with it"
    )]
    ResumeChangesNothing {
        /// The option.
        option: &'static str,
    },
}

/// How a sentence about something unknown ends: with the nearest known name, if one is near.
pub fn hint<S: AsRef<str>>(got: &str, known: &[S]) -> String {
    nearest(got, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_else(|| ".".into())
}

/// `a, b, c`.
pub fn listed<S: AsRef<str>>(known: &[S]) -> String {
    known.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

impl ConfigError {
    /// What was misread in `root`, whose own place in the run file is `place`.
    pub fn misread(error: Misread, root: &Value, place: &[&str]) -> Self {
        let value = error.path.iter().try_fold(root, |value, key| match key.parse::<usize>() {
            Ok(index) if value.is_array() => value.get(index),
            _ => value.get(key),
        });
        let got = value.map(written).unwrap_or_default();
        let path: Vec<&str> = place.iter().copied().chain(error.path.iter().map(String::as_str)).collect();
        let key = path.join(".");
        let table = if path.is_empty() { "the run file".to_owned() } else { format!("[{key}]") };
        match error.mistake {
            Mistake::UnknownKey { key, known } => {
                Self::UnknownKey { hint: hint(&key, known), known: listed(known), key, table }
            }
            Mistake::UnknownChoice { known } => {
                // The name of a table's kind is in the table.
                let (key, got) = match value.and_then(|value| value.get("kind")) {
                    Some(kind) => (format!("{key}.kind"), written(kind)),
                    None => (key, got),
                };
                Self::UnknownChoice {
                    hint: hint(got.trim_matches('"'), known),
                    known: listed(known),
                    key,
                    got,
                }
            }
            Mistake::MissingKey(key) => Self::MissingKey { key, table },
            Mistake::WrongType { expected } => Self::WrongType { key, got, expected },
            Mistake::Other(what) => Self::Value { key, what },
        }
    }
}

/// A value as a run file writes it, shortened.
pub fn written(value: &Value) -> String {
    let text = match value {
        Value::Table(_) => "a table".to_owned(),
        other => other.to_string(),
    };
    if text.chars().count() > 60 { text.chars().take(60).chain(['…']).collect() } else { text }
}

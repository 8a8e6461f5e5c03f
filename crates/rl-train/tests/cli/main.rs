//! The command line from outside: exit codes, texts, files.

mod bars;
mod browser;
mod data_check;
mod errors;
mod generate;
mod live;
mod lm;
mod pipeline;
mod preference;
mod report;
mod resume;
mod rlhf;
mod runs;
mod score;
mod serve;
mod settings;
mod story_bars;
mod study;
mod sweep;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Twenty updates of a small network, in a few milliseconds each.
const TINY: &str = r#"# a run small enough for a test
total_steps = 640
[task]
kind = "cart_pole"
envs = 2
[model]
hidden = [8]
[algo]
kind = "ppo"
rollout_steps = 16
epochs = 2
minibatch_rows = 16
[algo.optimizer]
learning_rate = 1e-2
[eval]
episodes = 3
[checkpoint]
every_updates = 3
"#;

/// A folder with a run file in it.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self::with(TINY)
    }

    fn with(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tiny.toml"), config).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `rl-train` with the words of `line` as its arguments.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rl-train"));
        command.current_dir(self.dir.path()).args(line.split_whitespace());
        command
    }

    #[track_caller]
    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command that must succeed, and returns what it printed.
    #[track_caller]
    fn succeeds(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "`{line}`: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command that must fail with `code`, and returns what it said.
    #[track_caller]
    fn fails(&self, line: &str, code: i32) -> String {
        let output = self.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "`{line}`: {said}");
        assert!(!said.contains("panicked"), "`{line}`: {said}");
        said
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The checkpoints of a run, the oldest first.
fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(run.join("checkpoint")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

//! `cargo xtask check`: the gate before a commit, cheapest stage first; the first failure ends it.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::{book, cargo, succeeds, tidy};

/// One stage: its name and what runs it.
type Stage = (&'static str, fn() -> Result<bool>);

const STAGES: [Stage; 5] =
    [("fmt", fmt), ("tidy", tidy::passes), ("book", book::passes), ("clippy", clippy), ("rustdoc", rustdoc)];

/// Runs the stages and says which passed, which failed and which were not reached.
pub fn run() -> Result<ExitCode> {
    for (i, (name, stage)) in STAGES.iter().enumerate() {
        let start = Instant::now();
        let passed = stage()?;
        eprintln!(
            "check: {name} {} ({:.1} s)",
            if passed { "passed" } else { "FAILED" },
            start.elapsed().as_secs_f64()
        );
        if !passed {
            let unreached: Vec<&str> = STAGES[i + 1..].iter().map(|(name, _)| *name).collect();
            if !unreached.is_empty() {
                eprintln!("check: not run: {}", unreached.join(", "));
            }
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn fmt() -> Result<bool> {
    succeeds(cargo("fmt").args(["--all", "--check"]))
}

/// Release profile, as everywhere: build scripts and macros are shared with the build that runs.
fn clippy() -> Result<bool> {
    succeeds(cargo("clippy").args(["--release", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
}

fn rustdoc() -> Result<bool> {
    succeeds(
        cargo("doc").args(["--release", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

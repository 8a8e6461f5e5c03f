//! `cargo xtask alone`: each crate without the rest of the workspace, with its features and without them. Slow (each
//! set of features is one more build of what lies below), so no part of `check`.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::{cargo, succeeds};

/// Libraries: built, documented and tested.
const LIBRARIES: [&[&str]; 6] = [
    &["rl-core"],
    &["rl-envs"],
    &["rl-envs", "--all-features"],
    &["rl-models"],
    &["rl-models", "--all-features"],
    &["rl-algos"],
];

/// The binary: built and documented with any devices or none; its tests want the default ones (`cargo xtask test`).
const BINARIES: [&[&str]; 4] = [
    &["rl-train", "--no-default-features"],
    &["rl-train", "--no-default-features", "--features", "flex"],
    &["rl-train", "--no-default-features", "--features", "ndarray"],
    &["rl-train"],
];

/// Runs every step of every crate, and says at the end which failed.
pub fn run() -> Result<ExitCode> {
    let mut failed = Vec::new();
    for package in LIBRARIES.iter().chain(&BINARIES) {
        let mut steps: Vec<(&str, &[&str])> = vec![("check", &["--all-targets"]), ("doc", &["--no-deps"])];
        if LIBRARIES.contains(package) {
            steps.push(("test", &[]));
        }
        for (subcommand, more) in steps {
            let start = Instant::now();
            let mut command = cargo(subcommand);
            command.args(["--release", "--locked", "--quiet", "--package"]).args(*package).args(more);
            let passed = succeeds(command.env("RUSTDOCFLAGS", "--deny warnings"))?;
            let step = format!("{subcommand} {}", package.join(" "));
            let verdict = if passed { "passed" } else { "FAILED" };
            eprintln!("alone: {step} {verdict} ({:.0} s)", start.elapsed().as_secs_f64());
            if !passed {
                failed.push(step);
            }
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("alone: failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

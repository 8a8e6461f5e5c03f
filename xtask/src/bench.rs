//! `cargo xtask bench`: the benches of the crates, then `rl-train bench`; `cargo xtask bench lm` the language models.

mod lm;

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use anyhow::Result;

use crate::{cargo, root, succeeds, train};

/// `lm [TASK]` goes to [`lm`]. Otherwise runs every bench target, if there is one, and becomes `rl-train bench ARGS`.
pub fn run(args: &[OsString]) -> Result<ExitCode> {
    if args.first().is_some_and(|word| word == "lm") {
        return lm::run(args.get(1).and_then(|task| task.to_str()));
    }
    let crates = fs::read_dir(root().join("crates"))?;
    let has_benches = crates.flatten().any(|entry| entry.path().join("benches").is_dir());
    if has_benches && !succeeds(cargo("bench").args(["--workspace", "--bench", "*"]))? {
        return Ok(ExitCode::FAILURE);
    }
    train::run("bench", args)
}

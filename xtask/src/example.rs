//! `cargo xtask example NAME ARGS`: builds one of examples/ with the features of training, so that burn is not compiled again,
//! and becomes it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{become_command, cargo, root, succeeds};

/// Builds the example that `name` begins, and becomes it.
pub fn run(name: &str, args: &[OsString]) -> Result<ExitCode> {
    let all = names(&root())?;
    let found: Vec<&String> = all.iter().filter(|known| known.starts_with(name)).collect();
    let [name] = found.as_slice() else {
        bail!("no example is called `{name}`; there are {}", all.join(", "));
    };
    let program = name.ends_with("serve_a_policy");
    let (package, kind, target) =
        if program { ("rl-serve", "--bin", "rl-serve") } else { ("rl-examples", "--example", name.as_str()) };
    let mut build = cargo("build");
    // A second package in the selection: cargo joins the features of all that are selected.
    build.args(["--release", "--package", "rl-train", "--package", package, kind, target]);
    if !succeeds(&mut build)? {
        return Ok(ExitCode::FAILURE);
    }
    let folder = release()?;
    let place = if program { folder.join(target) } else { folder.join("examples").join(target) };
    let mut command = Command::new(place);
    command.args(args);
    become_command(command)
}

/// The examples, in order: files and folders that begin with a number.
fn names(root: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(root.join("examples"))?.flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    found.sort();
    Ok(found)
}

/// Where cargo puts what it builds.
fn release() -> Result<PathBuf> {
    let output = cargo("metadata").args(["--no-deps", "--format-version=1"]).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Path::new(metadata["target_directory"].as_str().unwrap_or("target")).join("release"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_numbered_without_a_gap() {
        let names = names(&root()).unwrap();
        let numbers: Vec<usize> = names.iter().map(|name| name[..2].parse().unwrap()).collect();
        assert_eq!(numbers, (1..=names.len()).collect::<Vec<_>>(), "{names:?}");
        assert!(names.len() >= 9);
    }
}

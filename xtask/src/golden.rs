//! `cargo xtask golden`: tests/golden against its source, ../shared/vectors, and against the schema.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::flags::Golden;
use crate::test::workspace_tests;
use crate::{become_command, root};

const FILE_KEYS: [&str; 4] = ["function", "source", "doc", "cases"];
const CASE_KEYS: [&str; 7] = ["name", "inputs", "expected", "rtol", "atol", "atol_f32", "f32_representable"];

/// Copies the vectors, or checks them and becomes the golden tests.
pub fn run(flags: &Golden) -> Result<ExitCode> {
    let (ours, source) = (root().join("tests/golden"), root().join("../shared/vectors"));
    let mut findings = Vec::new();
    if !source.is_dir() {
        println!("golden: comparison skipped, {} does not exist", source.display());
    } else if flags.check {
        findings = differences(&ours, &source)?;
    } else {
        copy(&source, &ours)?;
    }
    for path in files(&ours)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let text = fs::read_to_string(ours.join(&path))?;
        findings.extend(schema(&path, &text).map(|what| format!("{}: {what}", path.display())));
    }
    findings.iter().for_each(|finding| println!("golden: {finding}"));
    if !findings.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    println!("golden: every vector follows the schema");
    if !flags.check {
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = workspace_tests(None);
    command.args(["--test", "golden"]);
    become_command(command)
}

/// Files that differ byte for byte, or exist on one side only.
fn differences(ours: &Path, source: &Path) -> Result<Vec<String>> {
    let (here, there) = (files(ours)?, files(source)?);
    let mut found = Vec::new();
    for path in here.union(&there) {
        let what = match (here.contains(path), there.contains(path)) {
            (true, false) => "is not in ../shared/vectors",
            (false, true) => "is missing; `cargo xtask golden` copies it",
            _ if fs::read(ours.join(path))? != fs::read(source.join(path))? => {
                "differs from ../shared/vectors"
            }
            _ => continue,
        };
        found.push(format!("{} {what}", path.display()));
    }
    Ok(found)
}

/// What a vector file lacks. Traces, the token world and the models of hf/ have their own form (see the README there).
fn schema(path: &Path, text: &str) -> Option<String> {
    let file: Value = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => return Some(format!("is not JSON: {error}")),
    };
    let name = path.to_str().unwrap_or_default();
    if path.components().count() > 1 {
        return None;
    }
    if let Some(key) = FILE_KEYS.into_iter().find(|key| file.get(key).is_none()) {
        return Some(format!("has no key `{key}`"));
    }
    let Some(cases) = file["cases"].as_array().filter(|cases| !cases.is_empty()) else {
        return Some("`cases` is not a list with at least one case".to_owned());
    };
    if name.starts_with("env_") || name == "token_world.json" {
        return None;
    }
    let lacking = |(i, case): (usize, &Value)| {
        let key = CASE_KEYS.into_iter().find(|key| case.get(key).is_none())?;
        Some(format!("case {i} has no key `{key}`"))
    };
    cases.iter().enumerate().find_map(lacking)
}

/// Every file under `folder`, relative to it.
fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("could not read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder)?.to_path_buf());
            }
        }
    }
    Ok(found)
}

fn copy(source: &Path, ours: &Path) -> Result<()> {
    for path in files(source)? {
        let target = ours.join(&path);
        fs::create_dir_all(target.parent().context("a file lies in a folder")?)?;
        fs::write(&target, fs::read(source.join(&path))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_missing_and_an_extra_vector_are_named() {
        let folder = std::env::temp_dir().join(format!("xtask-golden-{}", std::process::id()));
        let (ours, source) = (folder.join("ours"), folder.join("source"));
        for (side, name, text) in
            [(&ours, "a", "1"), (&source, "a", "2"), (&source, "hf/b", "1"), (&ours, "c", "1")]
        {
            let path = side.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = differences(&ours, &source).unwrap();
        copy(&source, &ours).unwrap();
        let after = differences(&ours, &source).unwrap();
        fs::remove_dir_all(folder).unwrap();
        assert!(
            found[0].starts_with("a differs")
                && found[1].starts_with("c is not")
                && found[2].starts_with("hf/b is missing")
        );
        assert_eq!(after, ["c is not in ../shared/vectors"]);
    }

    #[test]
    fn a_vector_without_a_schema_key_is_named() {
        let check = |text| schema(Path::new("gae.json"), text);
        assert!(check("{").unwrap().starts_with("is not JSON"));
        assert_eq!(check(r#"{"function": 1, "source": 1, "cases": []}"#).unwrap(), "has no key `doc`");
        let case = r#"{"function": 1, "source": 1, "doc": 1, "cases": [{"name": 1, "inputs": 1}]}"#;
        assert_eq!(check(case).unwrap(), "case 0 has no key `expected`");
        assert_eq!(schema(Path::new("env_Pendulum-v1.json"), case), None);
    }
}

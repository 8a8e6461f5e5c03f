//! `cargo xtask tidy`: the rules of the tree that no compiler checks. Each has a failing example in the tests below.

mod supply;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::{cargo, root};

/// Who may depend on whom (docs/architecture.md). A new arrow is an ADR and a change of this table.
const ARROWS: [(&str, &[&str]); 9] = [
    ("rl-core", &[]),
    ("rl-envs", &[]),
    ("rl-models", &["rl-core"]),
    ("rl-algos", &["rl-core", "rl-models", "rl-envs"]),
    ("rl-train", &["rl-core", "rl-models", "rl-envs", "rl-algos"]),
    ("rl-tests", &["rl-core", "rl-models", "rl-envs", "rl-algos"]),
    ("rl-examples", &["rl-core", "rl-models", "rl-envs", "rl-algos"]),
    // Serves what was trained: rl-envs in its tests alone, rl-algos never.
    ("rl-serve", &["rl-core", "rl-models", "rl-envs"]),
    ("xtask", &[]),
];
/// The crates that link everything and therefore choose the backends.
const LEAVES: [&str; 4] = ["rl-train", "rl-tests", "rl-examples", "rl-serve"];
const BACKENDS: [&str; 11] =
    ["flex", "ndarray", "wgpu", "webgpu", "vulkan", "metal", "cuda", "rocm", "cpu", "tch", "remote"];
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "manager", "managers"];
const MOST_LINES: usize = 400;
const MOST_BYTES: u64 = 1 << 20;
/// The folders whose `f("name", value)` calls are metrics.
const METRIC_SOURCES: [&str; 2] = ["crates/rl-algos/src/", "crates/rl-train/src/"];

/// Prints every finding.
pub fn run() -> Result<ExitCode> {
    Ok(if passes()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints every finding and says whether there was none.
pub fn passes() -> Result<bool> {
    let root = root();
    let mut found = Vec::new();

    let metadata: Value =
        serde_json::from_str(&output(cargo("metadata").args(["--no-deps", "--format-version=1"]))?)?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        found.extend(arrows(package));
        found.extend(backends(package));
        found.extend(lints(&fs::read_to_string(text(&package["manifest_path"]))?));
    }
    found.extend(forbids_unsafe(&fs::read_to_string(root.join("Cargo.toml"))?));
    found.extend(links_burn(&tree(&["--package", "rl-envs"])?));
    let train = tree(&["--package", "rl-train", "--edges", "normal,build"])?;
    found.extend(built_twice(&train, &tree(&["--workspace", "--edges", "normal,build,dev"])?));

    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let all: Value =
        serde_json::from_str(&output(cargo("metadata").args(["--locked", "--format-version=1"]))?)?;
    let every =
        ["--workspace", "--prefix", "none", "--features", "rl-train/vulkan,rl-train/cuda", "--format"];
    let linked = output(cargo("tree").args(every).arg("{p}"))?.replace(" (proc-macro)", "");
    found.extend(supply::foreign(&all, &linked, &read("deny.toml").unwrap_or_default()));
    let (manifest, page) = (read("Cargo.toml"), read("docs/dependencies.md"));
    found.extend(supply::unexplained(&manifest.unwrap_or_default(), &page.unwrap_or_default()));
    found.extend(supply::unbacked(&read("docs/survives.md").unwrap_or_default(), read));

    let files = files(&root)?;
    found.extend(lock_file(&files));
    let documented = fs::read_to_string(root.join("docs/metrics.md")).unwrap_or_default();
    for path in &files {
        found.extend(size(path, fs::metadata(root.join(path))?.len()));
        if path.ends_with(".rs") {
            let source = fs::read_to_string(root.join(path))?;
            let rules = [opening, name, length, unfinished, ignored];
            found.extend(
                rules.iter().filter_map(|rule| rule(path, &source)).map(|what| format!("{path}: {what}")),
            );
            if METRIC_SOURCES.iter().any(|folder| path.starts_with(folder)) {
                let unknown = undocumented(&source, &documented);
                found.extend(
                    unknown.map(|name| format!("{path}: metric `{name}` has no row in docs/metrics.md")),
                );
            }
        }
    }
    found.iter().for_each(|finding| println!("tidy: {finding}"));
    Ok(found.is_empty())
}

/// The output of a command that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// `cargo tree` as lines `name version features`.
fn tree(selection: &[&str]) -> Result<String> {
    output(cargo("tree").args(["--prefix", "none", "--format", "{p} {f}"]).args(selection))
}

/// The files that git tracks or would track; without git, all but build output, runs and hidden folders.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root);
    let listed = output(&mut git).or_else(|_| {
        output(Command::new("find").current_dir(root).args([
            ".", "(", "-name", ".?*", "-o", "-name", "target", "-o", "-name", "runs", ")", "-prune", "-o",
            "-type", "f", "-print",
        ]))
    })?;
    let paths = listed.lines().map(|line| line.trim_start_matches("./").to_owned());
    Ok(paths.filter(|path| root.join(path).is_file()).collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Arrows point down.
fn arrows(package: &Value) -> Vec<String> {
    let name = text(&package["name"]);
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![format!("{name}: has no row in the table ARROWS of xtask/src/tidy.rs")];
    };
    let ours = package["dependencies"].as_array().into_iter().flatten().filter(|to| to["path"].is_string());
    let wrong = ours.map(|to| text(&to["name"])).filter(|to| !allowed.contains(to));
    wrong
        .map(|to| format!("{name}: must not depend on {to}; arrows point down (docs/architecture.md)"))
        .collect()
}

/// Libraries name no backend outside their tests, and nobody takes burn's default features.
fn backends(package: &Value) -> Vec<String> {
    let name = text(&package["name"]);
    let mut found = Vec::new();
    let is_backend = |feature: &str| BACKENDS.contains(&feature);
    for burn in package["dependencies"].as_array().into_iter().flatten().filter(|to| to["name"] == "burn") {
        if burn["uses_default_features"] == true {
            found.push(format!("{name}: burn needs `default-features = false`"));
        }
        let features = burn["features"].as_array().into_iter().flatten().map(text);
        for feature in
            features.filter(|it| burn["kind"] != "dev" && !LEAVES.contains(&name) && is_backend(it))
        {
            found.push(format!("{name}: names the backend `{feature}`; only rl-train does"));
        }
    }
    for (feature, turns_on) in package["features"].as_object().into_iter().flatten() {
        let on = turns_on.as_array().into_iter().flatten().map(text);
        let mut backend =
            on.filter_map(|it| it.strip_prefix("burn")?.trim_start_matches('?').strip_prefix('/'));
        if !LEAVES.contains(&name) && backend.any(is_backend) {
            found.push(format!("{name}: feature `{feature}` names a backend; only rl-train does"));
        }
    }
    found
}

/// Every crate takes the lints of the workspace.
fn lints(manifest: &str) -> Option<String> {
    let table: toml::Table = manifest.parse().ok()?;
    let inherits = table.get("lints").and_then(|it| it.get("workspace")).and_then(toml::Value::as_bool);
    let name =
        table.get("package").and_then(|it| it.get("name")).and_then(toml::Value::as_str).unwrap_or("?");
    (inherits != Some(true)).then(|| format!("{name}: its Cargo.toml needs `[lints] workspace = true`"))
}

/// The lints of the workspace forbid unsafe code.
fn forbids_unsafe(manifest: &str) -> Option<String> {
    let table: toml::Table = manifest.parse().ok()?;
    let rust = table.get("workspace").and_then(|it| it.get("lints")).and_then(|it| it.get("rust"));
    let level = rust.and_then(|it| it.get("unsafe_code")).and_then(toml::Value::as_str);
    (level != Some("forbid"))
        .then(|| "Cargo.toml: [workspace.lints.rust] needs `unsafe_code = \"forbid\"`".to_owned())
}

/// rl-envs never links burn, not even through another crate.
fn links_burn(tree: &str) -> Option<String> {
    let burn = tree.lines().find(|line| line.starts_with("burn ") || line.starts_with("burn-"))?;
    Some(format!("rl-envs: links {burn}; environments know no tensors"))
}

/// Training and testing share one burn: a feature that only a test or xtask turns on would build it again.
fn built_twice(train: &str, test: &str) -> Vec<String> {
    let packages =
        |tree: &str| tree.lines().map(|line| line.trim_end_matches(" (*)").trim().to_owned()).collect();
    let (train, test): (BTreeSet<String>, BTreeSet<String>) = (packages(train), packages(test));
    let say = |it: &String| {
        format!("`{it}` has other features in `test --workspace` than in `-p rl-train`: it builds twice")
    };
    train.difference(&test).map(say).collect()
}

fn lock_file(files: &[String]) -> Option<String> {
    (!files.iter().any(|path| path == "Cargo.lock"))
        .then(|| "Cargo.lock: is missing or ignored by git".to_owned())
}

fn size(path: &str, bytes: u64) -> Option<String> {
    (bytes > MOST_BYTES).then(|| format!("{path}: {bytes} bytes; files in git have at most {MOST_BYTES}"))
}

fn opening(_: &str, source: &str) -> Option<String> {
    (!source.starts_with("//!")).then(|| "must open with a `//!` line that says what it is for".to_owned())
}

fn name(path: &str, _: &str) -> Option<String> {
    let empty = path.trim_end_matches(".rs").split('/').find(|part| EMPTY_NAMES.contains(part))?;
    Some(format!("the name `{empty}` says nothing; name the idea"))
}

fn length(path: &str, source: &str) -> Option<String> {
    let (lines, is_test) =
        (source.lines().count(), path.split('/').any(|part| matches!(part, "tests" | "tests.rs")));
    (lines > MOST_LINES && !is_test).then(|| format!("has {lines} lines; split by idea at {MOST_LINES}"))
}

fn unfinished(_: &str, source: &str) -> Option<String> {
    let marker =
        ["todo", "unimplemented", "dbg"].into_iter().find(|it| source.contains(&format!("{it}!(")))?;
    Some(format!("`{marker}!` is unfinished work"))
}

fn ignored(_: &str, source: &str) -> Option<String> {
    source
        .lines()
        .any(|line| line.trim() == "#[ignore]")
        .then(|| "`#[ignore]` needs a reason: `#[ignore = \"…\"]`".into())
}

/// The metrics that `f("name", …)` calls report and that open no row of the table in docs/metrics.md.
fn undocumented<'a>(source: &'a str, metrics: &str) -> impl Iterator<Item = &'a str> {
    let cells = metrics.lines().filter_map(|line| line.trim().strip_prefix('|')?.split('|').next());
    let rows: BTreeSet<String> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    let calls = source.match_indices("f(").filter(|(at, _)| {
        !source[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '.')
    });
    let names = calls
        .filter_map(|(at, call)| source[at + call.len()..].trim_start().strip_prefix('"')?.split('"').next());
    names.filter(move |name| !rows.contains(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependency: Value, features: Value) -> Value {
        json!({"name": name, "dependencies": [dependency], "features": features})
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let on = |to: &str| json!({"name": to, "path": format!("/crates/{to}")});
        assert_eq!(arrows(&package("rl-core", on("rl-envs"), json!({}))).len(), 1);
        assert_eq!(arrows(&package("xtask", on("rl-core"), json!({}))).len(), 1);
        assert_eq!(arrows(&package("rl-new", on("rl-core"), json!({}))).len(), 1);
        assert!(arrows(&package("rl-models", on("rl-core"), json!({}))).is_empty());
    }

    #[test]
    fn a_library_that_names_a_backend_or_takes_burns_defaults_is_found() {
        let burn = |kind, defaults, feature: &str| json!({"name": "burn", "kind": kind, "uses_default_features": defaults, "features": ["std", feature]});
        assert_eq!(backends(&package("rl-core", burn(Value::Null, false, "flex"), json!({}))).len(), 1);
        assert_eq!(backends(&package("rl-core", burn(json!("dev"), true, "flex"), json!({}))).len(), 1);
        let gpu = json!({"gpu": ["burn?/wgpu"]});
        assert_eq!(backends(&package("rl-core", burn(json!("dev"), false, "flex"), gpu.clone())).len(), 1);
        assert!(backends(&package("rl-train", burn(Value::Null, false, "flex"), gpu)).is_empty());
    }

    #[test]
    fn a_crate_without_the_lints_of_the_workspace_is_found() {
        assert!(lints("[package]\nname = \"rl-core\"\n").unwrap().starts_with("rl-core"));
        assert_eq!(lints("[lints]\nworkspace = true\n"), None);
        assert!(forbids_unsafe("[workspace.lints.rust]\nunsafe_code = \"warn\"\n").is_some());
        assert_eq!(forbids_unsafe("[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"), None);
    }

    #[test]
    fn burn_below_the_environments_is_found() {
        assert!(links_burn("rl-envs v0.1.0 \nsome v1.0.0 \nburn-tensor v0.22.1 std\n").is_some());
        assert_eq!(links_burn("rl-envs v0.1.0 \nburner v1.0.0 \n"), None);
    }

    #[test]
    fn a_feature_that_only_tests_turn_on_is_found() {
        assert_eq!(
            built_twice("serde v1 derive\nregex v1 \n", "serde v1 derive (*)\nregex v1 std\n").len(),
            1
        );
        assert!(built_twice("serde v1 derive (*)\n", "serde v1 derive\nproptest v1 \n").is_empty());
    }

    #[test]
    fn an_untracked_lock_file_and_a_large_file_are_found() {
        assert!(lock_file(&["Cargo.toml".to_owned()]).is_some());
        assert!(size("a.bin", MOST_BYTES + 1).is_some() && size("a.bin", MOST_BYTES).is_none());
    }

    #[test]
    fn a_source_file_that_breaks_a_rule_is_found() {
        assert!(opening("a.rs", "use std::fs;\n").is_some() && opening("a.rs", "//! Reads.\n").is_none());
        assert!(name("crates/x/src/utils.rs", "").is_some() && name("x/common/a.rs", "").is_some());
        assert!(name("x/manager_of_beta.rs", "").is_none());
        let long = "\n".repeat(MOST_LINES + 1);
        assert!(length("x/src/a.rs", &long).is_some() && length("tests/laws/a.rs", &long).is_none());
        assert!(
            unfinished("a.rs", &["to", "do!()"].concat()).is_some() && unfinished("a.rs", "todo").is_none()
        );
        assert!(
            ignored("a.rs", "  #[ignore]\n").is_some() && ignored("a.rs", "#[ignore = \"slow\"]\n").is_none()
        );
    }

    #[test]
    fn a_metric_without_a_row_is_found() {
        let source = "f(\"loss/policy\", 1.0); f(\n  \"kl/k3\", x); printf(\"no\"); self.f(\"no\")";
        let rows = "| `loss/policy` | see `kl/k3` |\n";
        assert_eq!(undocumented(source, rows).collect::<Vec<_>>(), ["kl/k3"]);
    }
}

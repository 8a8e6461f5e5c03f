//! What is linked: licences that nobody need ask about, one registry, and a reason for each dependency of ours.

use std::collections::BTreeSet;

use serde_json::Value;

/// Crates of `cargo metadata` from elsewhere than crates.io; and those among `linked`, lines `name version` of `cargo tree`,
/// whose licence `deny.toml` does not allow.
pub fn foreign(metadata: &Value, linked: &str, deny: &str) -> Vec<String> {
    const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
    let table: toml::Table = deny.parse().unwrap_or_default();
    let allowed = table.get("licenses").and_then(|it| it.get("allow")).and_then(toml::Value::as_array);
    let allowed: BTreeSet<&str> = allowed.into_iter().flatten().filter_map(toml::Value::as_str).collect();
    let linked: BTreeSet<&str> = linked.lines().map(|line| line.trim_end_matches(" (*)").trim()).collect();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or("?");
        let Some(source) = package["source"].as_str() else { continue };
        if source != REGISTRY {
            found.push(format!("{name}: comes from {source}; everything comes from crates.io"));
        }
        let licence = package["license"].as_str().unwrap_or("");
        let line = format!("{name} v{}", package["version"].as_str().unwrap_or("?"));
        if linked.contains(line.as_str()) && !allows(&allowed, licence) {
            found.push(format!("{name}: its licence `{licence}` is not in deny.toml"));
        }
    }
    found
}

/// Whether an SPDX expression without nested parentheses can be met: one of its alternatives, all of its parts.
fn allows(allowed: &BTreeSet<&str>, licence: &str) -> bool {
    let met = |one: &str| {
        let one = one.trim();
        let inner = one.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(one);
        inner.replace(" / ", " OR ").replace('/', " OR ").split(" OR ").any(|it| allowed.contains(it.trim()))
    };
    // `A OR B AND C` binds AND first; in practice what stands around an AND is in parentheses or alone.
    !licence.is_empty() && licence.split(" AND ").all(met)
}

/// Dependencies of the workspace that have no row in docs/dependencies.md, and rows of nothing.
pub fn unexplained(manifest: &str, page: &str) -> Vec<String> {
    let table: toml::Table = manifest.parse().unwrap_or_default();
    let dependencies = table.get("workspace").and_then(|it| it.get("dependencies"));
    let named: BTreeSet<&str> = dependencies
        .and_then(toml::Value::as_table)
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows: BTreeSet<&str> = rows.collect();
    let missing = named.difference(&rows);
    let missing =
        missing.map(|name| format!("docs/dependencies.md: `{name}` has no row that says what it is for"));
    let gone = rows.difference(&named).map(|name| format!("docs/dependencies.md: `{name}` is no dependency"));
    missing.chain(gone).collect()
}

/// Tests that docs/survives.md names and that are not there. `files` gives a path's source.
pub fn unbacked(page: &str, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| What")) {
        let named: Vec<&str> = line.split('`').skip(1).step_by(2).filter(|it| it.contains(".rs::")).collect();
        if named.is_empty() && !line.starts_with("|---") && line.contains('|') {
            found.push(format!("docs/survives.md: no test backs the line `{line}`"));
        }
        for name in named {
            let (path, test) = name.split_once("::").expect("it was looked for");
            let there = source(path).is_some_and(|source| {
                source.contains(&format!("fn {test}(")) || source.contains(&format!("    {test}: "))
            });
            if !there {
                found.push(format!("docs/survives.md: there is no test `{name}`"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_licence_that_is_not_allowed_and_a_foreign_source_are_found() {
        let deny = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Unicode-3.0\"]\n";
        let of = |licence: &str, source: &str| {
            let metadata = json!({"packages": [{"name": "a", "version": "1.0.0", "license": licence, "source": source}, {"name": "ours"}]});
            let found = foreign(&metadata, "a v1.0.0 (*)\nb v2.0.0\n", deny);
            assert!(foreign(&metadata, "a v2.0.0", deny).len() <= found.len());
            found.len()
        };
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        for licence in ["MIT", "GPL-3.0 OR MIT", "Zlib/Apache-2.0", "(MIT OR GPL-2.0) AND Unicode-3.0"] {
            assert_eq!(of(licence, registry), 0, "{licence}");
        }
        for licence in ["", "GPL-3.0", "MIT AND GPL-2.0", "LGPL-2.1/GPL-2.0"] {
            assert_eq!(of(licence, registry), 1, "{licence}");
        }
        assert_eq!(of("MIT", "git+https://github.com/a/a"), 1);
    }

    #[test]
    fn a_dependency_without_a_reason_and_a_reason_without_a_dependency_are_found() {
        let manifest =
            "[workspace.dependencies]\nserde = \"1\"\nours = { path = \"x\" }\nrand = { version = \"1\" }\n";
        assert_eq!(unexplained(manifest, "| `serde` | a |\n| `rand` | b |\n").len(), 0);
        assert_eq!(unexplained(manifest, "| `serde` | a |\n| `gone` | b |\n").len(), 2);
    }

    #[test]
    fn a_promise_without_a_test_is_found() {
        let source = |path: &str| {
            (path == "a.rs").then(|| "fn it_holds() {}\nlist![\n    so_does_this: \"x\",\n]".to_owned())
        };
        let page = |row: &str| format!("| What | Test |\n|---|---|\n{row}\n");
        for row in ["| x | `a.rs::it_holds` |", "| x | `a.rs::so_does_this` |", "no row"] {
            assert!(unbacked(&page(row), source).is_empty(), "{row}");
        }
        for row in ["| x | `a.rs::it_does_not` |", "| x | `b.rs::it_holds` |", "| x | believe me |"] {
            assert_eq!(unbacked(&page(row), source).len(), 1, "{row}");
        }
    }
}

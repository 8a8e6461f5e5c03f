//! `--set algo.clip=0.1`: assignments to the tree of a run file, before it is read.
//!
//! The tree is read after the assignments, so a mistake in one gets the same words as in a file.

use toml::{Table, Value};

use super::error::{ConfigError, written};

/// Puts the value of `text`, a `key.key=value`, into the tree.
///
/// The value is TOML; what is no TOML is a string, so that `task.kind=pendulum` needs no quotes.
///
/// # Errors
/// If there is no `=`, or a key above the last is a value.
pub fn assign(tree: &mut Table, text: &str) -> Result<(), ConfigError> {
    let (path, value) =
        text.split_once('=').ok_or_else(|| ConfigError::NoAssignment { text: text.to_owned() })?;
    let keys: Vec<&str> = path.trim().split('.').collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(ConfigError::NoAssignment { text: text.to_owned() });
    }
    let (last, above) = keys.split_last().expect("a split has at least one part");
    let mut table = tree;
    for (depth, key) in above.iter().enumerate() {
        let below = table.entry(key.to_string()).or_insert_with(|| Value::Table(Table::new()));
        let got = written(below);
        table = below.as_table_mut().ok_or_else(|| ConfigError::NotATable {
            text: text.to_owned(),
            key: keys[..=depth].join("."),
            got,
        })?;
    }
    table.insert(last.to_string(), parsed(value.trim()));
    Ok(())
}

fn parsed(text: &str) -> Value {
    let line = format!("value = {text}");
    let table: Option<Table> = line.parse().ok();
    // More than one key would mean that the text had a line break in it.
    let value = table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(assignments: &[&str]) -> Result<Table, ConfigError> {
        let mut tree: Table = "seed = 1\n[algo]\nclip = 0.2\n".parse().unwrap();
        assignments.iter().try_for_each(|text| assign(&mut tree, text))?;
        Ok(tree)
    }

    #[test]
    fn values_are_toml_and_bare_words_are_strings() {
        let tree =
            after(&["algo.clip={ kind = \"linear\", from = 0.2, to = 0 }", "task.kind=pendulum", "seed=7"]);
        let tree = tree.unwrap();
        assert_eq!(tree["algo"]["clip"]["kind"].as_str(), Some("linear"));
        assert_eq!(tree["task"]["kind"].as_str(), Some("pendulum"));
        assert_eq!(tree["seed"].as_integer(), Some(7));
        assert_eq!(after(&["x=a\nb = 2"]).unwrap()["x"].as_str(), Some("a\nb = 2"));
    }

    #[test]
    fn what_is_no_assignment_is_refused_with_the_way_to_write_one() {
        for text in ["gamma", "=1", "algo.=1"] {
            assert!(after(&[text]).unwrap_err().to_string().contains("write `--set key=value`"), "{text}");
        }
        let error = after(&["algo.clip.from=1"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "`--set algo.clip.from=1`: `algo.clip` is 0.2, not a table with keys; set `algo.clip` itself"
        );
    }
}

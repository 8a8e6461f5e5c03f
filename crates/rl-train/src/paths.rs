//! Paths of a run file: `$NAME` in them is a variable of the environment, so that a config does not depend on where
//! somebody keeps the data.

use std::path::PathBuf;

use crate::config::error::ConfigError;

/// The path that `text`, the value of `key`, means.
///
/// # Errors
/// If it names a variable that is not set.
pub fn resolve(key: &'static str, text: &str) -> Result<PathBuf, ConfigError> {
    resolve_with(key, text, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn resolve_with(
    key: &'static str,
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<PathBuf, ConfigError> {
    let (mut path, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        path += before;
        let end = after.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(after.len());
        let name = &after[..end];
        let value = variable(name).ok_or_else(|| ConfigError::NoVariable {
            key,
            path: text.to_owned(),
            name: name.to_owned(),
        })?;
        path += &value;
        rest = &after[end..];
    }
    Ok(PathBuf::from(path + rest))
}

/// [`resolve`], of something that must be there.
///
/// # Errors
/// If it is not.
pub fn existing(key: &'static str, text: &str) -> Result<PathBuf, ConfigError> {
    let path = resolve(key, text)?;
    match path.exists() {
        true => Ok(path),
        false => Err(ConfigError::NoSuchPath { key, text: text.to_owned(), path }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_and_a_missing_one_is_named() {
        let at = |text| resolve_with("lm.model", text, |name| (name == "HOME_1").then(|| "/data".to_owned()));
        assert_eq!(at("$HOME_1/a/b").unwrap(), PathBuf::from("/data/a/b"));
        assert_eq!(at("plain/path").unwrap(), PathBuf::from("plain/path"));
        assert_eq!(at("a/$HOME_1").unwrap(), PathBuf::from("a//data"));
        let error = at("$RL_DATA_DIR/models").unwrap_err().to_string();
        assert!(
            error.contains("`lm.model` = \"$RL_DATA_DIR/models\"") && error.contains("export RL_DATA_DIR="),
            "{error}"
        );
    }
}

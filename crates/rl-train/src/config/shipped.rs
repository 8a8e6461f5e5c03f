//! The configs that come with the binary, and how a name or a path becomes a run file.

use std::fs;
use std::path::Path;

use toml::Table;

use super::error::{ConfigError, hint, listed};

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each file in `configs/`; the first is the default.
        pub const CONFIGS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../configs/", $name, ".toml")))),*];
    };
}

shipped![
    "ppo-cart-pole",
    "ppo-cart-pole-cleanrl",
    "ppo-cart-pole-zoo",
    "ppo-cart-pole-no-clip",
    "ppo-cart-pole-clip-01",
    "ppo-cart-pole-clip-02",
    "ppo-cart-pole-clip-03",
    "ppo-cart-pole-fixed-kl",
    "ppo-cart-pole-adaptive-kl",
    "ppo-cart-pole-clip-kl",
    "ppo-acrobot",
    "ppo-mountain-car",
    "ppo-mountain-car-continuous",
    "ppo-pendulum",
    "ppo-bandit",
    "ppo-gridworld",
    "ppo-kakade",
    "ppo-kl-toy",
    "ppo-lqr",
    "trpo-cart-pole",
    "trpo-acrobot",
    "trpo-mountain-car",
    "trpo-mountain-car-continuous",
    "trpo-pendulum",
    "trpo-bandit",
    "trpo-gridworld",
    "trpo-kakade",
    "trpo-lqr",
    "npg-cart-pole",
    "npg-acrobot",
    "npg-mountain-car-continuous",
    "npg-pendulum",
    "npg-bandit",
    "npg-gridworld",
    "npg-kakade",
    "npg-lqr",
    "rlhf-token-world",
    "rlhf-token-world-exact",
    "rloo-token-world",
    "grpo-token-world",
    "a2c-cart-pole",
    "a2c-acrobot",
    "a2c-pendulum",
    "a2c-bandit",
    "a2c-gridworld",
    "a2c-lqr",
    "reinforce-cart-pole",
    "reinforce-bandit",
    "reinforce-gridworld",
    "reinforce-kakade",
    "reinforce-lqr",
    "dqn-cart-pole",
    "dqn-gridworld",
    "sft-stories",
    "rm-stories",
    "dpo-stories",
    "rlhf-stories",
];

/// A run file, not yet read.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name without folder and extension.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The file at path `name`, else the shipped config called `name`; without a name, the default.
///
/// # Errors
/// If there is neither, with the names there are.
pub fn find(name: Option<&str>) -> Result<Source, ConfigError> {
    let Some(name) = name else {
        let (name, text) = CONFIGS[0];
        return Ok(Source { name: name.to_owned(), text: text.to_owned() });
    };
    let path = Path::new(name);
    let stem = path.file_stem().map_or(name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    if path.is_file() {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        // Some editors open a file with a byte-order mark; TOML does not know it.
        return Ok(Source { name: stem, text: text.trim_start_matches('\u{feff}').to_owned() });
    }
    if let Some((name, text)) = CONFIGS.iter().find(|(known, _)| *known == name) {
        return Ok(Source { name: (*name).to_owned(), text: (*text).to_owned() });
    }
    let known: Vec<&str> = CONFIGS.iter().map(|(name, _)| *name).collect();
    Err(ConfigError::NoSuchConfig { name: name.to_owned(), hint: hint(&stem, &known), known: listed(&known) })
}

impl Source {
    /// The file as a tree.
    ///
    /// # Errors
    /// If it is not TOML; the text shows the line.
    pub fn tree(&self) -> Result<Table, ConfigError> {
        self.text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::Syntax(error.to_string().trim_end().to_owned()))
    }
}

/// The first comment line of a config: what it is.
pub fn about(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix('#')).map_or("", str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_configs_is_shipped_and_says_what_it_is() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut shipped: Vec<&str> = CONFIGS.iter().map(|(name, _)| *name).collect();
        shipped.sort();
        assert_eq!(files, shipped);
        assert!(CONFIGS.iter().all(|(_, text)| !about(text).is_empty()));
    }
}

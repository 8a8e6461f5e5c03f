//! A sweep file as a list of runs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use toml::{Table, Value};

use crate::config::assignment::assign;
use crate::config::error::ConfigError;
use crate::config::{RunConfig, shipped};

/// Runs beyond which a sweep is taken for a mistake.
const MOST: usize = 10_000;

/// A sweep file.
///
/// ```toml
/// config = "ppo-cart-pole"
/// seeds = [1, 2, 3]
/// cores = 2
/// [set]
/// total_steps = 20_000
/// [grid]
/// "algo.clip" = [0.1, 0.2]
/// [random]
/// samples = 4
/// [random.settings]
/// "algo.optimizer.learning_rate" = { log = [1e-4, 1e-2] }
/// "algo.gae_lambda" = { uniform = [0.9, 1.0] }
/// "algo.epochs" = { choice = [4, 10] }
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// A run file, or the name of a shipped config.
    config: String,
    /// Seeds of each setting.
    #[serde(default = "one_seed")]
    seeds: Vec<u64>,
    /// Runs at once [all cores].
    pub cores: Option<usize>,
    /// Memory of all runs together, MB [no bound].
    pub memory_mb: Option<f64>,
    /// The same for all runs.
    #[serde(default)]
    set: BTreeMap<String, Value>,
    /// Every combination of these.
    #[serde(default)]
    grid: BTreeMap<String, Vec<Value>>,
    /// Drawn at random.
    random: Option<Random>,
}

/// `[random]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Random {
    samples: usize,
    /// Decides what is drawn.
    #[serde(default)]
    seed: u64,
    settings: BTreeMap<String, Law>,
}

/// How a setting is drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Law {
    /// Evenly between two numbers.
    Uniform([f64; 2]),
    /// Evenly in the logarithm between two positive numbers.
    Log([f64; 2]),
    /// One of these.
    Choice(Vec<Value>),
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its folder: its number, and its seed.
    pub name: String,
    /// The config it starts from.
    pub config: String,
    /// What it changes, as `--set` takes it.
    pub set: Vec<String>,
    /// Its seed.
    pub seed: u64,
}

impl Trial {
    /// What sets it apart, in words.
    pub fn words(&self) -> String {
        let set = self.set.iter().map(String::as_str);
        set.chain([format!("seed={}", self.seed).as_str()]).collect::<Vec<_>>().join(" ")
    }
}

impl SweepFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or is no sweep.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|error| ConfigError::Syntax(error.to_string().trim_end().to_owned()))
    }

    /// The file's name without its extension.
    pub fn name(&self, path: &Path) -> String {
        path.file_stem().map_or_else(|| "sweep".into(), |stem| stem.to_string_lossy().into_owned())
    }

    /// Its runs: grid × random samples × seeds, each checked as a config. The same file gives the same runs.
    ///
    /// # Errors
    /// If it is empty or too large, or one of its configs cannot work.
    pub fn trials(&self) -> Result<Vec<Trial>, ConfigError> {
        let wrong = |key: &str, what: &str| ConfigError::Value { key: key.into(), what: what.into() };
        let mut settings: Vec<Vec<String>> =
            vec![self.set.iter().map(|(key, value)| set(key, value)).collect()];
        for (key, values) in &self.grid {
            if values.is_empty() {
                return Err(wrong(&format!("grid.{key}"), "it needs at least one value"));
            }
            if settings.len() * values.len() > MOST {
                return Err(wrong("grid", "it has more than 10,000 combinations"));
            }
            let extended = settings.iter().flat_map(|before| {
                values.iter().map(move |value| before.iter().cloned().chain([set(key, value)]).collect())
            });
            settings = extended.collect();
        }
        if let Some(random) = &self.random {
            let mut rng = ChaCha8Rng::seed_from_u64(random.seed);
            let drawn: Vec<Vec<String>> = (0..random.samples)
                .map(|_| {
                    random.settings.iter().map(|(key, law)| Ok(set(key, &law.draw(key, &mut rng)?))).collect()
                })
                .collect::<Result<_, ConfigError>>()?;
            let extended = settings.iter().flat_map(|before| {
                drawn.iter().map(move |drawn| before.iter().chain(drawn).cloned().collect())
            });
            settings = extended.collect();
        }
        if settings.is_empty() || self.seeds.is_empty() || settings.len() * self.seeds.len() > MOST {
            return Err(wrong("seeds", "the sweep has no run, or more than 10,000"));
        }
        let tree = shipped::find(Some(&self.config))?.tree()?;
        for set in &settings {
            check(tree.clone(), set)?;
        }
        let trials = settings.iter().enumerate().flat_map(|(i, set)| {
            self.seeds.iter().map(move |&seed| Trial {
                name: format!("{i:04}-seed{seed}"),
                config: self.config.clone(),
                set: set.clone(),
                seed,
            })
        });
        Ok(trials.collect())
    }
}

fn set(key: &str, value: &Value) -> String {
    format!("{key}={value}")
}

fn check(mut tree: Table, set: &[String]) -> Result<(), ConfigError> {
    set.iter().try_for_each(|text| assign(&mut tree, text))?;
    RunConfig::from_tree(tree).map(|_| ())
}

impl Law {
    fn draw(&self, key: &str, rng: &mut ChaCha8Rng) -> Result<Value, ConfigError> {
        let wrong =
            |what: &str| ConfigError::Value { key: format!("random.settings.{key}"), what: what.into() };
        Ok(match self {
            Self::Uniform([low, high]) if low < high => {
                Value::Float(low + (high - low) * rng.random::<f64>())
            }
            Self::Log([low, high]) if 0.0 < *low && low < high => {
                Value::Float((low.ln() + (high / low).ln() * rng.random::<f64>()).exp())
            }
            Self::Choice(values) if !values.is_empty() => values[rng.random_range(0..values.len())].clone(),
            Self::Uniform(_) => return Err(wrong("`uniform` needs two numbers, the smaller first")),
            Self::Log(_) => return Err(wrong("`log` needs two positive numbers, the smaller first")),
            Self::Choice(_) => return Err(wrong("`choice` needs at least one value")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(text: &str) -> Result<Vec<Trial>, ConfigError> {
        toml::from_str::<SweepFile>(text).unwrap().trials()
    }

    #[test]
    fn a_grid_has_every_combination_for_every_seed() {
        let found = trials(
            "config = \"ppo-cart-pole\"\nseeds = [1, 2]\n[set]\ntotal_steps = 20480\n[grid]\n\"algo.clip\" = [0.1, 0.2]\n\
             \"algo.epochs\" = [4, 5, 6]\n",
        )
        .unwrap();
        assert_eq!(found.len(), 12);
        assert_eq!(found[1].name, "0000-seed2");
        assert_eq!(found[11].words(), "total_steps=20480 algo.clip=0.2 algo.epochs=6 seed=2");
    }

    #[test]
    fn random_settings_stay_in_their_ranges_and_are_the_same_again() {
        let text = "config = \"ppo-cart-pole\"\n[random]\nsamples = 30\n[random.settings]\n\"algo.gamma\" = { uniform = [0.9, 0.99] }\n\
                    \"algo.optimizer.learning_rate\" = { log = [1e-4, 1e-2] }\n\"algo.epochs\" = { choice = [4, 10] }\n";
        let found = trials(text).unwrap();
        assert_eq!(found, trials(text).unwrap());
        let value =
            |trial: &Trial, at: usize| -> f64 { trial.set[at].split('=').nth(1).unwrap().parse().unwrap() };
        assert!(found.iter().all(|trial| [4.0, 10.0].contains(&value(trial, 0))));
        assert!(found.iter().all(|trial| (0.9..0.99).contains(&value(trial, 1))));
        let rates: Vec<f64> = found.iter().map(|trial| value(trial, 2)).collect();
        assert!(rates.iter().all(|rate| (1e-4..1e-2).contains(rate)));
        let below = rates.iter().filter(|rate| **rate < 1e-3).count();
        assert!((8..23).contains(&below), "half of them below the geometric mean: {below}");
    }

    #[test]
    fn what_cannot_run_is_refused_before_anything_runs() {
        let refused = |text: &str, words: &str| {
            let said = trials(text).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        };
        refused("config = \"ppo-cart-pole\"\n[grid]\n\"algo.clipp\" = [1]\n", "did you mean `clip`?");
        refused("config = \"ppo-cart-pole\"\n[grid]\n\"algo.gamma\" = [0.9, 1.5]\n", "1.5");
        refused("config = \"ppo-cart-pole\"\n[grid]\n\"algo.clip\" = []\n", "at least one value");
        refused("config = \"ppo-cart-pol\"\n", "did you mean `ppo-cart-pole`?");
        let log = "config = \"ppo-cart-pole\"\n[random]\nsamples = 1\n[random.settings]\n\"algo.gamma\" = { log = [0.0, 0.9] }\n";
        refused(log, "two positive numbers");
        assert!(toml::from_str::<SweepFile>("config = \"a\"\ngird = 1\n").is_err());
    }
}

//! Any bytes as a run file, as a `--set`, as metrics: an error with words or a value, never a panic.
//!
//! What `rl_tests::fuzz` does to the libraries, for the readers that are private to the binary. `RL_FUZZ_RUNS` is the
//! number of executions of each.

#[path = "../../../tests/src/fuzz/mutate.rs"]
mod mutate;

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use toml::Table;

use crate::config::assignment::assign;
use crate::config::{RunConfig, shipped};
use crate::recording::Columns;

const WORDS: &[&str] = &[
    "[algo]",
    "kind = \"ppo\"",
    "\"off\"",
    "total_steps = ",
    "{ kind = \"linear\", from = 1.0, to = 0.0 }",
    "\"step\":",
    "\"update\":",
    "\"NaN\"",
    "true",
    "=",
    ".",
    "\n",
];

/// Runs `target` on changed `corpus`.
fn survive(name: &str, corpus: &[Vec<u8>], target: impl Fn(&[u8])) {
    let runs: u64 = std::env::var("RL_FUZZ_RUNS").map_or(2000, |text| text.parse().expect("a number"));
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut slowest = Duration::ZERO;
    corpus.iter().for_each(|seed| target(seed));
    for _ in 0..runs {
        let input = mutate::mutated(corpus, WORDS, &mut rng);
        let started = Instant::now();
        target(&input);
        slowest = slowest.max(started.elapsed());
    }
    assert!(slowest < Duration::from_secs(20), "{name}: an input took {slowest:?}");
    println!("fuzz {name}: {runs} executions, slowest {slowest:?}");
}

fn run_files() -> Vec<Vec<u8>> {
    shipped::CONFIGS.iter().map(|(_, text)| text.as_bytes().to_vec()).collect()
}

/// A run file is refused in words, or what it resolves to gives the same run again.
#[test]
fn any_run_file_is_refused_or_resolved() {
    survive("run_file", &run_files(), |bytes| {
        let Ok(tree) = String::from_utf8_lossy(bytes).parse::<Table>() else { return };
        match RunConfig::from_tree(tree) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(config) => {
                let again =
                    RunConfig::from_tree(config.resolved().parse().expect("TOML")).expect("a run file");
                assert_eq!(config, again);
            }
        }
    });
}

#[test]
fn any_assignment_is_refused_or_made() {
    let seeds = ["algo.gamma=0.98", "task.kind=\"cart_pole\"", "algo.kl={kind=\"fixed\",beta=0.1}", "seed=3"];
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    survive("assignment", &seeds, |bytes| {
        let mut tree: Table = shipped::CONFIGS[0].1.parse().expect("a shipped config is TOML");
        let made = assign(&mut tree, &String::from_utf8_lossy(bytes));
        if let Err(error) = made.and_then(|()| RunConfig::from_tree(tree).map(drop)) {
            assert!(!error.to_string().is_empty());
        }
    });
}

#[test]
fn any_metrics_are_read_as_far_as_they_are_metrics() {
    let row = "{\"step\":512,\"update\":2,\"losses/b\":1e-7,\"losses/a\":\"NaN\",\"losses/c\":\"inf\"}\n";
    survive("metrics", &[row.repeat(3).into_bytes()], |bytes| {
        let (columns, bad) = Columns::read(bytes).expect("memory can be read");
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(bad.len() <= lines && bad.iter().all(|line| (1..=lines as u64).contains(&(*line as u64))));
        drop(columns);
    });
}

//! Every entry point for strangers' bytes, many times: nothing panics, nothing hangs, every law holds.
//!
//! `RL_FUZZ_RUNS=10000000 cargo test --release -p rl-tests -p rl-train --test fuzz -- --nocapture` spreads ten million
//! executions over the targets; `RL_FUZZ_SEED` chooses others. An input that fails is left in the folder for scratch
//! files with its target's name.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rl_tests::fuzz::targets::TARGETS;
use rl_tests::fuzz::{Target, fuzz};

/// Executions without `RL_FUZZ_RUNS`, over all targets.
const FEW: u64 = 6_000;

/// The longest that any input may take: a template that uses all its fuel, on a slow machine.
const MOST: Duration = Duration::from_secs(20);

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |it| it.parse().unwrap_or_else(|_| panic!("{name} = {it} is no number")))
}

fn survive(target: &Target, runs: u64) {
    let started = Instant::now();
    let outcome = fuzz(target, runs, number("RL_FUZZ_SEED", 1), MOST);
    let (seconds, slowest) = (started.elapsed().as_secs_f64(), outcome.slowest);
    println!("fuzz {}: {} executions in {seconds:.1} s, slowest {slowest:?}", target.name, outcome.runs);
    if let Some((input, what)) = outcome.failure {
        let path = std::env::temp_dir().join(format!("rl-fuzz-{}", target.name));
        std::fs::write(&path, &input).expect("the folder for scratch files can be written");
        panic!("{}: {what}; the input is in {}", target.name, path.display());
    }
}

#[test]
fn every_entry_point_survives_changed_inputs() {
    let shares: f64 = TARGETS.iter().map(|target| target.share).sum();
    let all = number("RL_FUZZ_RUNS", FEW) as f64;
    for target in &TARGETS {
        survive(target, (all * target.share / shares).ceil() as u64);
    }
}

/// With `RL_FUZZ_CORPUS=FOLDER`, writes the seeds of each target there, for cargo-fuzz.
#[test]
fn seeds_get_far_and_are_the_corpus_of_cargo_fuzz() {
    let folder = std::env::var_os("RL_FUZZ_CORPUS").map(std::path::PathBuf::from);
    for target in &TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "`{}` has no seeds", target.name);
        let Some(folder) = folder.as_ref().map(|folder| folder.join(target.name)) else { continue };
        std::fs::create_dir_all(&folder).expect("the corpus can be written");
        for (i, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i}")), seed).expect("the corpus can be written");
        }
    }
}

/// `fuzz/` has a target for each entry point, of the same name.
#[test]
fn cargo_fuzz_has_every_target() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for Target { name, .. } in &TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml has no `{name}`");
        let source =
            std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).expect("a target");
        assert!(source.contains(&format!("run(\"{name}\", bytes)")), "{source}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_entry_point_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        TARGETS.iter().for_each(|target| (target.run)(&bytes));
    }

    #[test]
    fn every_entry_point_survives_any_text(text in any::<String>()) {
        TARGETS.iter().for_each(|target| (target.run)(text.as_bytes()));
    }
}

//! Entry points for bytes of strangers, and a driver that changes known inputs at random and watches for panics and
//! for inputs that take too long.
//!
//! The same functions are the targets of `fuzz/` (cargo-fuzz, which sees coverage) and of `--test fuzz` (stable Rust, no
//! coverage, many more executions per second).

pub mod mutate;
pub mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use mutate::mutated;

/// An entry point.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, in `fuzz/corpus` too.
    pub name: &'static str,
    /// Takes any bytes; panics if a law is broken.
    pub run: fn(&[u8]),
    /// Inputs that get far.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that the format knows.
    pub words: &'static [&'static str],
    /// How many executions it gets for one of the fastest target's: dear ones get fewer.
    pub share: f64,
}

/// What came of many executions.
#[derive(Debug)]
pub struct Outcome {
    /// Executions.
    pub runs: u64,
    /// The longest execution.
    pub slowest: Duration,
    /// The input that panicked first or took longer than allowed, and what it did.
    pub failure: Option<(Vec<u8>, String)>,
}

/// Runs `target` on its seeds and then on `runs` changed ones; ends at the first failure.
pub fn fuzz(target: &Target, runs: u64, seed: u64, most: Duration) -> Outcome {
    let mut corpus = (target.seeds)();
    assert!(!corpus.is_empty(), "`{}` has no seeds", target.name);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut outcome = Outcome { runs: 0, slowest: Duration::ZERO, failure: None };
    let seeds = corpus.len() as u64;
    while outcome.runs < seeds + runs && outcome.failure.is_none() {
        let input = match outcome.runs {
            i if i < seeds => corpus[i as usize].clone(),
            _ => mutated(&corpus, target.words, &mut rng),
        };
        let started = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let took = started.elapsed();
        outcome.runs += 1;
        outcome.slowest = outcome.slowest.max(took);
        if let Err(panic) = result {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            outcome.failure = Some((input, said.unwrap_or_else(|| "panicked".into())));
        } else if took > most {
            outcome.failure = Some((input, format!("took {took:?}")));
        } else if outcome.runs.is_multiple_of(64) && corpus.len() < 4096 {
            // Without coverage nobody knows which input is new; some stay, so that changes add up.
            corpus.push(input);
        }
    }
    outcome
}

//! `rl-train`: trains, evaluates and resumes runs. The composition root: the only crate that names a
//! backend, reads run files and writes run folders.
//!
//! Exit codes: 0 done; 1 the run failed; 2 the command line or the run file cannot work; 130 the run
//! was interrupted and saved.

/// Prints a line. A reader that has gone away (`rl-train train | head`) does not end the run.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod assemble;
mod bench;
mod cli;
mod compare;
mod comparison;
mod config;
mod data_check;
mod device;
mod drive;
mod env_session;
mod eval;
mod export;
mod generate;
mod interrupt;
mod learner;
mod list;
mod live;
mod lm;
mod metrics;
mod pairs;
mod paths;
mod pipeline;
mod preference;
mod process;
mod progress;
mod recorder;
mod recording;
mod replicas;
mod report;
mod rlhf;
mod run_folder;
mod run_lock;
mod score;
#[cfg(test)]
mod strangers;
mod study;
mod sweep;
mod tensorboard;
mod train;
mod watchdog;
mod world;

use std::process::ExitCode;

use clap::Parser;
use rl_envs::preference::DataError;

use cli::{Flags, Verb};
use config::error::ConfigError;

/// A heap that keeps what is given back: tensors live for microseconds, and the C library's hands their pages to the
/// kernel and takes them again, a fault each (docs/performance.md).
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The name that this command was called by: `rl-train`, or what `cargo xtask` says it is.
fn called() -> String {
    std::env::var("RL_COMMAND").unwrap_or_else(|_| "rl-train".into())
}

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was asked to.
    Done,
    /// It was told to stop, and saved where it was.
    Interrupted,
}

fn main() -> ExitCode {
    let outcome = match Flags::parse().verb {
        Verb::Train(args) => train::train(&args),
        Verb::Eval(args) => eval::eval(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Watch(args) => live::watch::watch(&args),
        Verb::Sweep(args) => sweep::sweep(&args),
        Verb::Export(args) => export::export(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Generate(args) => generate::generate(&args),
        Verb::Data(args) => data_check::data(&args),
        Verb::Score(args) => score::score(&args),
        Verb::List => list::list(),
        Verb::Serve(args) => replicas::serve::serve(&args),
        Verb::Study(args) => study::study(&args),
        Verb::Bench(args) => bench::bench(&args),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("error: {error:#}");
            let rename = |error: &DataError| matches!(error, DataError::Rename(_));
            let usage = error.downcast_ref::<ConfigError>().is_some()
                || error.downcast_ref::<DataError>().is_some_and(rename);
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

//! The command line, as data.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use toml::{Table, Value};

use crate::compare::CompareArgs;
use crate::config::assignment::assign;
use crate::config::error::ConfigError;
use crate::data_check::DataArgs;
use crate::export::{ExportArgs, Format};
use crate::generate::GenerateArgs;
use crate::live::watch::WatchArgs;
use crate::live::{Outlets, View};
use crate::report::ReportArgs;
use crate::score::ScoreArgs;
use crate::sweep::SweepArgs;

/// Trains, evaluates and resumes reinforcement-learning runs.
#[derive(Debug, Parser)]
#[command(
    name = "rl-train",
    version,
    after_help = "Without a config, `rl-train train` balances a pole: ppo-cart-pole."
)]
pub struct Flags {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Train a policy and evaluate it
    Train(TrainArgs),
    /// Evaluate the policy of a run
    Eval(EvalArgs),
    /// Show a run that goes on elsewhere
    Watch(WatchArgs),
    /// Say whether runs are well, and write report.html: the verdict in words, then the curves
    Report(ReportArgs),
    /// Compare experiments: means, interquartile means and probabilities of improvement with their intervals
    Compare(CompareArgs),
    /// Run a grid or a random sample of settings on several seeds, within a budget; stopped, it goes on
    Sweep(SweepArgs),
    /// Write metrics as CSV or as TensorBoard event files
    Export(ExportArgs),
    /// Let a language model go on with a prompt
    Generate(GenerateArgs),
    /// Look at preference data before training on it
    Data(DataArgs),
    /// Score answers with a reward model
    Score(ScoreArgs),
    /// Compute gradients for runs that are led elsewhere (`train --devices flex,remote:HOST:PORT`)
    Serve(ServeArgs),
    /// List algorithms, environments, devices, configs and studies
    List,
    /// Do an experiment with several runs and say what held
    Study(StudyArgs),
    /// Measure environment steps per CPU second, and where the time goes
    Bench(BenchArgs),
}

/// `rl-train train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// A run file, or the name of a shipped config (see `rl-train list`); `rlhf` is the whole pipeline on built-in stories
    #[arg(value_name = "CONFIG.toml | NAME")]
    pub config: Option<String>,
    /// What to change in it
    #[command(flatten)]
    pub changes: Changes,
    /// The run's folder [default: runs/NAME-seedN-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with an interrupted run, as if it had not been
    #[arg(long, value_name = "RUN")]
    pub resume: Option<PathBuf>,
    /// Share gradients among replicas, the first one's the run's own: flex,flex or flex,remote:HOST:PORT
    #[arg(long, value_name = "DEVICES")]
    pub devices: Option<String>,
    /// Show a dashboard: curves, the verdict so far, and keys to pause, save and stop
    #[arg(long)]
    pub tui: bool,
    /// Show the report to browsers on this machine while the run goes on, at an address that nobody can guess
    #[arg(long)]
    pub serve: bool,
    /// Write metrics in this format too, while the run goes on
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log: Option<Format>,
}

impl TrainArgs {
    /// Where the run shows itself.
    pub fn outlets(&self) -> Outlets {
        Outlets { view: if self.tui { View::Dashboard } else { View::Lines }, log: self.log }
    }
}

/// `rl-train serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where tensors live
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub device: String,
    /// Where to listen; whoever can reach it can make this process read files and compute
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7001")]
    pub listen: String,
}

/// `rl-train eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// The run's folder, or its name in runs/
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The best checkpoint instead of the last; needs `checkpoint.keep_best` in the run
    #[arg(long)]
    pub best: bool,
    /// Episodes [default: the run's `eval.episodes`]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub episodes: Option<u64>,
    /// Seed of the environments [default: the run's `eval.seed`]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Where tensors live [default: the run's]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

/// `rl-train study`.
#[derive(Debug, Args)]
pub struct StudyArgs {
    /// Which (see `rl-train list`)
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The study's folder [default: runs/study-NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How many seeds [default: the study's]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// A size of seconds, that proves nothing
    #[arg(long)]
    pub quick: bool,
}

/// `rl-train bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// A run file, or the name of a shipped config
    #[arg(value_name = "CONFIG.toml | NAME")]
    pub config: Option<String>,
    /// What to change in it
    #[command(flatten)]
    pub changes: Changes,
    /// Seconds for the whole loop; its parts take as long again, together
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
}

/// Changes to a run file.
#[derive(Debug, Args)]
pub struct Changes {
    /// Where tensors live: flex, ndarray, wgpu or cuda
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Change a setting, such as `algo.gamma=0.98`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The seed of everything random in the run
    #[arg(long, value_parser = clap::value_parser!(i64).range(0..))]
    pub seed: Option<i64>,
}

impl Changes {
    /// Makes the changes: `--set` in order, then `--device` and `--seed`.
    ///
    /// # Errors
    /// If a `--set` is no assignment.
    pub fn apply(&self, tree: &mut Table) -> Result<(), ConfigError> {
        self.set.iter().try_for_each(|text| assign(tree, text))?;
        if let Some(device) = &self.device {
            tree.insert("device".into(), Value::String(device.clone()));
        }
        if let Some(seed) = self.seed {
            tree.insert("seed".into(), Value::Integer(seed));
        }
        Ok(())
    }

    /// The first option given, if any.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--set", !self.set.is_empty()),
            ("--device", self.device.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

//! The single list of commands and flags, and the devices they may name.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};

/// Builds, trains, tests and checks this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Flags {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Train a run: [CONFIG.toml | NAME] [--device D] [--set key=value]… [--seed N] [--out DIR] [--resume RUN]
    #[command(disable_help_flag = true)]
    Train(Forwarded),
    /// Evaluate a finished or interrupted run: RUN [--device D]
    #[command(disable_help_flag = true)]
    Eval(Forwarded),
    /// Say whether runs are well, and write report.html: RUN… [--out FILE]
    #[command(disable_help_flag = true)]
    Report(Forwarded),
    /// The dashboard of a run that goes on elsewhere: RUN
    #[command(disable_help_flag = true)]
    Watch(Forwarded),
    /// Compare experiments, with intervals: RUN… [--by KEY]
    #[command(disable_help_flag = true)]
    Compare(Forwarded),
    /// Many runs within a budget: SWEEP.toml [--out DIR]
    #[command(disable_help_flag = true)]
    Sweep(Forwarded),
    /// Metrics as CSV or TensorBoard event files: RUN… --format FORMAT
    #[command(disable_help_flag = true)]
    Export(Forwarded),
    /// Let a language model go on with a prompt: MODEL --prompt TEXT
    #[command(disable_help_flag = true)]
    Generate(Forwarded),
    /// Look at preference data before training on it: check FILE
    #[command(disable_help_flag = true)]
    Data(Forwarded),
    /// Score answers with a reward model: MODEL FILE
    #[command(disable_help_flag = true)]
    Score(Forwarded),
    /// List tasks, algorithms, run files, devices and studies
    #[command(disable_help_flag = true)]
    List(Forwarded),
    /// Do a study: NAME [--out DIR] [--seeds N] [--quick]
    #[command(disable_help_flag = true)]
    Study(Forwarded),
    /// Run one of examples/: NAME, or the beginning of it, such as 01
    Example(Example),
    /// Run every test of the workspace
    Test(Test),
    /// The gate before a commit: fmt, tidy, clippy, rustdoc
    Check,
    /// The rules of the tree alone: arrows between crates, file names and sizes, metric rows
    Tidy,
    /// Each crate without the others, with its features and without: builds, documentation, tests (slow)
    Alone,
    /// Refresh tests/golden from ../shared/vectors, or compare with it
    Golden(Golden),
    /// Run the benches of the crates, then `rl-train bench ARGS`; with `lm [TASK]`, language models beside Python's
    #[command(disable_help_flag = true)]
    Bench(Forwarded),
    /// Check the book in docs/, and build it where mdbook is installed
    Book(Book),
}

/// Arguments that rl-train parses; xtask reads only the device in them.
#[derive(Args)]
pub struct Forwarded {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

#[derive(Args)]
pub struct Example {
    /// Which
    pub name: String,
    /// What it is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

#[derive(Args)]
pub struct Test {
    /// Run the tests on this device alone: ndarray, flex, wgpu or cuda
    #[arg(long)]
    pub device: Option<String>,
    /// Also run what takes minutes (sets RL_SLOW=1)
    #[arg(long)]
    pub slow: bool,
    /// Further arguments of `cargo test`, such as `--test laws` or a filter
    #[arg(last = true)]
    pub args: Vec<OsString>,
}

#[derive(Args)]
pub struct Book {
    /// First correct the line numbers of links to code
    #[arg(long)]
    pub write: bool,
}

#[derive(Args)]
pub struct Golden {
    /// Change nothing; fail when a vector differs, is missing or does not follow the schema
    #[arg(long)]
    pub check: bool,
}

/// A device that rl-train can be built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Ndarray,
    Flex,
    Wgpu,
    Cuda,
}

impl Device {
    const ALL: [Device; 4] = [Device::Ndarray, Device::Flex, Device::Wgpu, Device::Cuda];

    pub fn name(self) -> &'static str {
        match self {
            Device::Ndarray => "ndarray",
            Device::Flex => "flex",
            Device::Wgpu => "wgpu",
            Device::Cuda => "cuda",
        }
    }

    /// The cargo feature the device needs; the CPU devices are in every build.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Device::Ndarray | Device::Flex => None,
            Device::Wgpu | Device::Cuda => Some(self.name()),
        }
    }
}

/// The user named a device that no build offers.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownDevice(pub String);

impl fmt::Display for UnknownDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Device::ALL.map(Device::name).join(", ");
        write!(f, "unknown device `{}`; the known devices are {known}", self.0)
    }
}

impl std::error::Error for UnknownDevice {}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        let found = Device::ALL.into_iter().find(|device| device.name() == name);
        found.ok_or_else(|| UnknownDevice(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Flags::command().debug_assert();
    }

    #[test]
    fn train_passes_every_argument_on_untouched() {
        let given = ["ppo-cart-pole", "--set", "algo.clip=0.1", "--help", "--seed=3"];
        let flags = Flags::try_parse_from(["xtask", "train"].into_iter().chain(given)).unwrap();
        let Verb::Train(it) = flags.verb else { panic!("not train") };
        assert_eq!(it.args, given);
    }

    #[test]
    fn test_hands_cargo_what_follows_two_dashes() {
        let flags = Flags::try_parse_from(["xtask", "test", "--slow", "--", "--test", "laws"]).unwrap();
        let Verb::Test(it) = flags.verb else { panic!("not test") };
        assert!(it.slow);
        assert_eq!(it.args, ["--test", "laws"]);
    }

    #[test]
    fn an_unknown_device_is_answered_with_the_known_ones() {
        let error = "tpu".parse::<Device>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown device `tpu`; the known devices are ndarray, flex, wgpu, cuda"
        );
    }
}

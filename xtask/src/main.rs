//! `cargo xtask`: builds, trains, tests and checks this workspace. Links none of its crates, so it compiles in seconds.

mod alone;
mod bench;
mod book;
mod check;
mod example;
mod flags;
mod golden;
mod test;
mod tidy;
mod train;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Parser;

use flags::{Flags, UnknownDevice, Verb};

fn main() -> ExitCode {
    dispatch(Flags::parse().verb).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(if error.is::<UnknownDevice>() { 2 } else { 1 })
    })
}

fn dispatch(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Train(it) => train::run("train", &it.args),
        Verb::Eval(it) => train::run("eval", &it.args),
        Verb::Report(it) => train::run("report", &it.args),
        Verb::Watch(it) => train::run("watch", &it.args),
        Verb::Compare(it) => train::run("compare", &it.args),
        Verb::Sweep(it) => train::run("sweep", &it.args),
        Verb::Export(it) => train::run("export", &it.args),
        Verb::Generate(it) => train::run("generate", &it.args),
        Verb::Data(it) => train::run("data", &it.args),
        Verb::Score(it) => train::run("score", &it.args),
        Verb::List(it) => train::run("list", &it.args),
        Verb::Study(it) => train::run("study", &it.args),
        Verb::Test(it) => test::run(&it),
        Verb::Example(it) => example::run(&it.name, &it.args),
        Verb::Check => check::run(),
        Verb::Tidy => tidy::run(),
        Verb::Alone => alone::run(),
        Verb::Golden(it) => golden::run(&it),
        Verb::Bench(it) => bench::run(&it.args),
        Verb::Book(it) => book::run(&it),
    }
}

/// The folder of the workspace's Cargo.toml.
fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().expect("xtask/ lies in the workspace root").to_path_buf()
}

/// `cargo SUBCOMMAND` on this workspace, started in the caller's folder so that relative paths keep their meaning.
fn cargo(subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand).arg("--manifest-path").arg(root().join("Cargo.toml"));
    command
}

/// Runs `command` to its end and says whether it succeeded.
fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().with_context(|| format!("could not start {:?}", command.get_program()))?;
    Ok(status.success())
}

/// Becomes `command`: it gets the terminal and its signals (Ctrl-C), and its exit status is ours.
#[cfg(unix)]
fn become_command(mut command: Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(error).with_context(|| format!("could not start {:?}", command.get_program()))
}

/// Runs `command` and passes its exit status on.
#[cfg(not(unix))]
fn become_command(mut command: Command) -> Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

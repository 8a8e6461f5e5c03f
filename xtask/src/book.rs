//! `cargo xtask book`: builds the book in docs/ with mdbook.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, bail};

use crate::{become_command, root};

/// Becomes `mdbook build docs`.
pub fn run() -> Result<ExitCode> {
    if Command::new("mdbook").arg("--version").stdout(Stdio::null()).status().is_err() {
        bail!("mdbook is not installed; `cargo install mdbook --locked` installs it");
    }
    let mut command = Command::new("mdbook");
    command.arg("build").arg(root().join("docs"));
    become_command(command)
}

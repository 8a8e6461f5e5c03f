//! Hands the compiler's version to the program, so that a run can say what built it.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").expect("cargo names its compiler");
    let said = Command::new(rustc).arg("--version").output().expect("the compiler tells its version");
    println!("cargo::rustc-env=RL_RUSTC_VERSION={}", String::from_utf8_lossy(&said.stdout).trim());
    println!("cargo::rerun-if-changed=build.rs");
}

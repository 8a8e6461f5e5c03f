//! `cargo xtask test`: every unit, law, golden, learning and command-line test, and the doctests.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::flags::{Device, Test};
use crate::{become_command, cargo};

/// Becomes `cargo test` on the whole workspace; `--device` narrows the same tests to one device.
pub fn run(flags: &Test) -> Result<ExitCode> {
    let device = flags.device.as_deref().map(str::parse).transpose()?;
    let mut command = workspace_tests(device);
    command.arg("--no-fail-fast").args(&flags.args);
    if flags.slow {
        command.env("RL_SLOW", "1");
    }
    become_command(command)
}

/// `cargo test` on the whole workspace: cargo unifies features over what is selected, and a smaller selection
/// would build a second burn. `RL_GOLDEN_DIR` and `RL_DATA_DIR` reach the tests through the environment.
pub fn workspace_tests(device: Option<Device>) -> Command {
    let mut command = cargo("test");
    command.args(["--release", "--workspace"]);
    if let Some(device) = device {
        command.env("BURN_DEVICE", device.name());
        if let Some(feature) = device.feature() {
            command.args(["--features", &format!("rl-tests/{feature},rl-train/{feature}")]);
        }
    }
    if env::var_os("MATMUL_NUM_THREADS").is_none() {
        command.env("MATMUL_NUM_THREADS", "1"); // matrixmultiply's own pool collapses beside parallel tests
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(command: &Command) -> Vec<&str> {
        command.get_args().filter_map(|arg| arg.to_str()).collect()
    }

    #[test]
    fn a_gpu_device_adds_its_feature_and_a_cpu_device_does_not() {
        let wgpu = workspace_tests(Some(Device::Wgpu));
        assert!(arguments(&wgpu).ends_with(&["--features", "rl-tests/wgpu,rl-train/wgpu"]));
        assert!(wgpu.get_envs().any(|pair| pair == ("BURN_DEVICE".as_ref(), Some("wgpu".as_ref()))));
        let flex = workspace_tests(Some(Device::Flex));
        assert!(arguments(&flex).ends_with(&["--release", "--workspace"]));
        assert!(flex.get_envs().any(|pair| pair == ("BURN_DEVICE".as_ref(), Some("flex".as_ref()))));
    }

    #[test]
    fn without_a_device_the_environment_decides() {
        assert!(workspace_tests(None).get_envs().all(|(key, _)| key != "BURN_DEVICE"));
    }
}

//! `cargo xtask train`, `eval`, `report` and the other verbs of rl-train: builds rl-train for the device that the arguments name and becomes it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use crate::flags::{Device, UnknownDevice};
use crate::{become_command, cargo, root};

/// Builds rl-train and becomes `rl-train VERB ARGS`.
pub fn run(verb: &str, args: &[OsString]) -> Result<ExitCode> {
    let mut command = cargo("run");
    command.args(["--release", "--package", "rl-train"]);
    // These only read what runs have written: the build that is there will do.
    let reads = ["report", "watch", "compare", "export"].contains(&verb);
    if !reads && let Some(feature) = device(args, &root())?.and_then(Device::feature) {
        command.args(["--features", feature]);
    }
    // Whatever rl-train advises to do next is said in the words that were used.
    command.env("RL_COMMAND", "cargo xtask").arg("--").arg(verb).args(args);
    become_command(command)
}

/// The device these arguments ask for: `--device`, else `--set device=`, else the `device` key of the run file.
///
/// None leaves the choice to rl-train, whose default build has the CPU devices. Everything else that may
/// be wrong with the arguments or the file is rl-train's to say.
fn device(args: &[OsString], root: &Path) -> Result<Option<Device>, UnknownDevice> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let set = || values(&words, "--set").find_map(|pair| pair.strip_prefix("device="));
    let name = values(&words, "--device").next().or_else(set).map(|name| name.trim_matches('"').to_owned());
    name.or_else(|| run_file(&words, root).and_then(|path| device_key(&path)))
        .map(|name| name.parse())
        .transpose()
}

/// The values of `flag`, written `--flag value` or `--flag=value`.
fn values<'a>(words: &'a [&'a str], flag: &'a str) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(move |(i, word)| match word.strip_prefix(flag)? {
        "" => words.get(i + 1).copied(),
        rest => rest.strip_prefix('='),
    })
}

/// The first argument that names a run file, one of `configs/`, or a run folder with its resolved config.
fn run_file(words: &[&str], root: &Path) -> Option<PathBuf> {
    let place = |word: &str| {
        let named = [
            PathBuf::from(word),
            root.join("configs").join(format!("{word}.toml")),
            Path::new(word).join("config.toml"),
            Path::new("runs").join(word).join("config.toml"),
        ];
        named.into_iter().find(|path| path.is_file())
    };
    let free = |&i: &usize| !words[i].starts_with('-') && (i == 0 || words[i - 1] != "--out");
    let resumed = values(words, "--resume");
    (0..words.len()).filter(free).map(|i| words[i]).chain(resumed).find_map(place)
}

/// The `device` key of a run file, if the file is TOML and has one.
fn device_key(path: &Path) -> Option<String> {
    let table: toml::Table = std::fs::read_to_string(path).ok()?.parse().ok()?;
    Some(table.get("device")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The device chosen in a tree whose configs/on-gpu.toml and run/config.toml say `wgpu`.
    fn chosen(test: &str, line: &str) -> Result<Option<Device>, UnknownDevice> {
        let root = std::env::temp_dir().join(format!("xtask-train-{}-{test}", std::process::id()));
        fs::create_dir_all(root.join("configs")).unwrap();
        fs::create_dir_all(root.join("run")).unwrap();
        fs::write(root.join("configs/on-gpu.toml"), "device = \"wgpu\"\nseed = 1\n").unwrap();
        fs::write(root.join("configs/broken.toml"), "device = \n").unwrap();
        fs::write(root.join("run/config.toml"), "device = \"wgpu\"\n").unwrap();
        let line = line.replace("ROOT", root.to_str().unwrap());
        let answer = device(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), &root);
        fs::remove_dir_all(root).unwrap();
        answer
    }

    #[test]
    fn the_flag_wins_over_set_and_set_over_the_file() {
        assert_eq!(chosen("a", "on-gpu --set device=cuda --device flex"), Ok(Some(Device::Flex)));
        assert_eq!(chosen("b", "on-gpu --set=device=\"cuda\" --device=ndarray"), Ok(Some(Device::Ndarray)));
        assert_eq!(chosen("c", "on-gpu --set algo.clip=0.1 --set device=cuda"), Ok(Some(Device::Cuda)));
    }

    #[test]
    fn a_name_a_path_and_a_run_folder_lead_to_the_device_key() {
        assert_eq!(chosen("d", "--seed 3 on-gpu"), Ok(Some(Device::Wgpu)));
        assert_eq!(chosen("e", "ROOT/configs/on-gpu.toml"), Ok(Some(Device::Wgpu)));
        assert_eq!(chosen("f", "--resume ROOT/run"), Ok(Some(Device::Wgpu)));
        assert_eq!(chosen("g", "--resume=ROOT/run"), Ok(Some(Device::Wgpu)));
    }

    #[test]
    fn what_names_no_device_is_left_to_rl_train() {
        assert_eq!(chosen("h", "no-such-config --out on-gpu"), Ok(None));
        assert_eq!(chosen("i", "broken"), Ok(None));
    }

    #[test]
    fn an_unknown_device_is_refused() {
        assert_eq!(chosen("j", "on-gpu --device tpu"), Err(UnknownDevice("tpu".into())));
    }
}

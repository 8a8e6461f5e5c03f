//! A policy trained by the command keeps the pole up in the hands of a program that cannot train.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rl_envs::{CartPole, Env, StepEnd, env_rng};

/// The command, where this build has made it.
fn rl_train() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let path = test.parent()?.parent()?.join("rl-train");
    if !path.is_file() {
        eprintln!("skipped: `{}` is not built; add `-p rl-train`", path.display());
    }
    Some(path).filter(|path| path.is_file())
}

/// The return of one episode, whose every action is asked for.
fn episode(run: &Path) -> f32 {
    let mut server = Command::new(env!("CARGO_BIN_EXE_rl-serve"))
        .arg(run)
        .args(["4", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = server.stdin.take().unwrap();
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines();
    let (mut env, mut rng, mut obs) = (CartPole::v1(), env_rng(7, 0), [0.0; 4]);
    env.reset(&mut rng, &mut obs);
    let mut earned = 0.0;
    loop {
        writeln!(ask, "{} {} {} {}", obs[0], obs[1], obs[2], obs[3]).unwrap();
        let action: usize = answers.next().unwrap().unwrap().parse().unwrap();
        let step = env.step(&action, &mut rng, &mut obs);
        earned += step.reward;
        if step.end != StepEnd::Continues {
            break;
        }
    }
    drop(ask);
    assert!(server.wait().unwrap().success());
    earned
}

#[test]
fn what_the_command_has_learnt_is_served() {
    let Some(rl_train) = rl_train() else { return };
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let mut train = Command::new(rl_train);
    train.args(["train", "ppo-cart-pole", "--set", "total_steps=30720", "--out"]).arg(&run);
    assert!(train.stdout(Stdio::null()).status().unwrap().success());
    let earned = episode(&run);
    // Chance earns about 20.
    assert!(earned >= 200.0, "{earned}");
}

#[test]
fn what_is_no_run_is_named() {
    let place = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_rl-serve"));
    let output = server.arg(place.path()).args(["4", "2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let run = place.path().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(
        run.join("config.toml"),
        "[model]\nhidden = [8]\nactivation = \"tanh\"\nlayout = \"separate\"\n",
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rl-serve")).arg(&run).args(["4", "2"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("checkpoint"), "{said}");
}

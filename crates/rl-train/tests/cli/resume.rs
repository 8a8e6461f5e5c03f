//! A run that was interrupted, however rudely, ends as if it had not been.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rl_algos::checkpoint::Checkpoint;
use serde_json::Value;

use crate::{Place, checkpoints, text};

/// Long enough to be interrupted: 240 updates.
const LONG: &str = "--set total_steps=7680 --set algo.epochs=6 --set normalize.obs_clip=5 --set normalize.reward_clip=5 \
                    --set eval.every_steps=3000 --set algo.kl={kind=\"band\",beta=0.1,target=0.01}";

const TRUST_REGION: &str = r#"
total_steps = 7680
[task]
kind = "pendulum"
envs = 2
[model]
hidden = [8]
[algo]
kind = "trpo"
rollout_steps = 16
max_kl = { kind = "linear", from = 0.02, to = 0.0 }
fisher_share = 0.5
value_minibatch_rows = 16
[normalize]
obs_clip = 5
[eval]
episodes = 3
[checkpoint]
every_updates = 7
"#;

fn start(place: &Place, line: &str) -> Child {
    place.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the run at `run` has written `rows` rows of metrics.
#[track_caller]
pub fn wait_for(run: &Path, rows: usize) {
    let started = Instant::now();
    let written = || fs::read_to_string(run.join("metrics.jsonl")).map_or(0, |text| text.lines().count());
    while written() < rows {
        assert!(started.elapsed() < Duration::from_secs(60), "{} rows after a minute", written());
        sleep(Duration::from_millis(1));
    }
}

pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Both runs ended with the same metrics, the same checkpoint and the same evaluation.
#[track_caller]
pub fn assert_equal(place: &Place, a: &str, b: &str) {
    let file = |run: &str, name: &str| place.bytes(&format!("{run}/{name}"));
    assert!(file(a, "metrics.jsonl") == file(b, "metrics.jsonl"), "metrics of {a} and {b} differ");
    let last = |run: &str| Checkpoint::load(checkpoints(&place.path(run)).last().unwrap()).unwrap();
    assert!(last(a) == last(b), "the last checkpoints of {a} and {b} differ");
    let returns = |run: &str| place.json(&format!("{run}/summary.json"))["eval_return_mean"].clone();
    assert_eq!(returns(a), returns(b));
}

#[test]
fn trust_region_runs_go_on_as_if_they_had_not_been_interrupted() {
    let place = Place::with(TRUST_REGION);
    for kind in ["trpo", "npg"] {
        place.succeeds(&format!("train tiny.toml --set algo.kind={kind} --out {kind}-whole"));
        let mut child = start(&place, &format!("train tiny.toml --set algo.kind={kind} --out {kind}-killed"));
        wait_for(&place.path(&format!("{kind}-killed")), 40);
        signal(&child, "-KILL");
        assert!(!child.wait().unwrap().success(), "the run was over before it could be killed");
        place.succeeds(&format!("train --resume {kind}-killed"));
        assert_equal(&place, &format!("{kind}-whole"), &format!("{kind}-killed"));
    }
}

#[test]
fn a_run_killed_at_any_moment_goes_on_as_if_it_had_not_been() {
    let place = Place::new();
    place.succeeds(&format!("train tiny.toml --out whole {LONG}"));
    let mut child = start(&place, &format!("train tiny.toml --out killed {LONG}"));
    for rows in [1, 30, 77, 141] {
        wait_for(&place.path("killed"), rows);
        signal(&child, "-KILL");
        assert!(!child.wait().unwrap().success(), "the run was over before it could be killed");
        child = start(&place, "train --resume killed");
    }
    assert!(child.wait().unwrap().success());
    assert_equal(&place, "whole", "killed");
    let timing = String::from_utf8(place.bytes("killed/timing.jsonl")).unwrap();
    let updates: Vec<u64> = timing
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["update"].as_u64().unwrap())
        .collect();
    assert_eq!(updates, (1..=240).collect::<Vec<u64>>());
}

/// The other algorithms keep more between updates than moments: a running mean, the steps behind a schedule.
#[test]
fn runs_of_every_algorithm_resume_exactly() {
    const A2C: &str = "kind=\"a2c\",rollout_steps=16,entropy_coef={kind=\"linear\",from=0.1,to=0}";
    const REINFORCE: &str = "kind=\"reinforce\",baseline={kind=\"running_mean\",momentum=0.9},\
                             entropy_coef={kind=\"linear\",from=0.1,to=0}";
    for algo in [A2C, REINFORCE] {
        let place = Place::new();
        let line = format!(
            "--set algo={{{algo}}} --set normalize.obs_clip=5 --set normalize.reward_clip=5 --set total_steps=7680"
        );
        place.succeeds(&format!("train tiny.toml --out whole {line}"));
        let mut child = start(&place, &format!("train tiny.toml --out killed {line}"));
        for rows in [1, 9] {
            wait_for(&place.path("killed"), rows);
            signal(&child, "-KILL");
            child.wait().unwrap();
            child = start(&place, "train --resume killed");
        }
        assert!(child.wait().unwrap().success());
        assert_equal(&place, "whole", "killed");
    }
}

/// DQN keeps a replay, a target network and how much it has explored.
#[test]
fn a_run_of_dqn_goes_on_with_its_replay_and_its_target_network() {
    const DQN: &str = "kind=\"dqn\",rollout_steps=16,gradient_steps=8,minibatch_rows=16,replay=500,learning_starts=100,\
                       target_every=3,target_mix=0.5,epsilon={kind=\"ramp\",from=1,to=0.1,over=0.5}";
    let place = Place::new();
    let line = format!("--set algo={{{DQN}}} --set total_steps=7680");
    place.succeeds(&format!("train tiny.toml --out whole {line}"));
    let mut child = start(&place, &format!("train tiny.toml --out killed {line}"));
    // While the replay fills, before it overflows, and after.
    for rows in [2, 11, 40, 120] {
        wait_for(&place.path("killed"), rows);
        signal(&child, "-KILL");
        assert!(!child.wait().unwrap().success(), "the run was over before it could be killed");
        child = start(&place, "train --resume killed");
    }
    assert!(child.wait().unwrap().success());
    assert_equal(&place, "whole", "killed");
}

#[test]
fn a_polite_signal_saves_and_says_how_to_go_on() {
    let place = Place::new();
    place.succeeds(&format!("train tiny.toml --out whole {LONG}"));
    for (name, out, rows) in [("-TERM", "terminated", 57), ("-INT", "interrupted", 10)] {
        let child = start(&place, &format!("train tiny.toml --out {out} {LONG}"));
        wait_for(&place.path(out), rows);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.contains("interrupted after update") && said.contains("of 240; saved"), "{said}");
        assert!(said.contains(&format!("go on with: rl-train train --resume {out}")), "{said}");
        let said = place.succeeds(&format!("train --resume {out}"));
        assert!(said.contains("goes on after update"), "{said}");
        assert_equal(&place, "whole", out);
    }
}

#[test]
fn a_finished_run_has_nothing_to_go_on_with() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    let before = (place.bytes("run/metrics.jsonl"), place.bytes("run/summary.json"));
    assert!(place.succeeds("train --resume run").contains("`run` is finished: 20 updates"));
    assert_eq!(before, (place.bytes("run/metrics.jsonl"), place.bytes("run/summary.json")));
    // Killed between the last checkpoint and the summary:
    let mean = place.json("run/summary.json")["eval_return_mean"].clone();
    fs::remove_file(place.path("run/summary.json")).unwrap();
    place.succeeds("train --resume run");
    assert_eq!(place.json("run/summary.json")["eval_return_mean"], mean);
}

#[test]
fn a_damaged_checkpoint_is_named_and_not_skipped() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    let last = checkpoints(&place.path("run")).pop().unwrap();
    let whole = fs::read(&last).unwrap();
    for damaged in [
        whole[..whole.len() / 2].to_vec(),
        [&whole[..whole.len() - 1], &[whole[whole.len() - 1] ^ 1]].concat(),
    ] {
        fs::write(&last, damaged).unwrap();
        for line in ["train --resume run", "eval run"] {
            let said = place.fails(line, 1);
            assert!(said.contains("00000020.safetensors") && said.contains("is damaged"), "{said}");
            assert!(
                said.contains("remove the file to go on from `run/checkpoint/00000018.safetensors`"),
                "{said}"
            );
        }
    }
    fs::remove_file(&last).unwrap();
    fs::remove_file(place.path("run/summary.json")).unwrap();
    let metrics = place.bytes("run/metrics.jsonl");
    place.succeeds("train --resume run");
    assert_eq!(metrics, place.bytes("run/metrics.jsonl"));
    assert_eq!(Checkpoint::load(&last).unwrap().state["session"]["learner"]["update"], 20);
}

#[test]
fn a_checkpoint_of_another_run_is_refused_with_the_reason() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    let last = checkpoints(&place.path("run")).pop().unwrap();
    let good = Checkpoint::load(&last).unwrap();
    let refused = |change: &dyn Fn(&mut Checkpoint), words: &str| {
        let mut other = good.clone();
        change(&mut other);
        other.save(&last).unwrap();
        let said = place.fails("train --resume run", 1);
        assert!(
            said.contains("00000020.safetensors` does not fit this run") && said.contains(words),
            "{said}"
        );
    };
    refused(
        &|c| c.state["algorithm"] = "reinforce".into(),
        "it is of a `reinforce` run, but this one is `ppo`",
    );
    refused(&|c| drop(c.tensors.remove("adam.v")), "`adam.v` is missing");
    refused(&|c| c.tensors.get_mut("model").unwrap().truncate(5), "tensor `model` has");
    refused(
        &|c| drop(c.state["session"]["learner"].as_object_mut().unwrap().remove("rng")),
        "missing field `rng`",
    );
    good.save(&last).unwrap();

    let config = String::from_utf8(place.bytes("run/config.toml")).unwrap();
    fs::write(place.path("run/config.toml"), config.replace("total_steps = 640", "total_steps = 6400"))
        .unwrap();
    let said = place.fails("train --resume run", 1);
    assert!(said.contains("`total_steps = 640` is now `total_steps = 6400`"), "{said}");
}

#[test]
fn metrics_shorter_than_the_checkpoint_knows_are_an_error() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    fs::remove_file(place.path("run/summary.json")).unwrap();
    let metrics = place.bytes("run/metrics.jsonl");
    fs::write(place.path("run/metrics.jsonl"), &metrics[..100]).unwrap();
    let said = place.fails("train --resume run", 1);
    assert!(said.contains("metrics.jsonl") && said.contains("it has 100 bytes"), "{said}");
}

#[test]
fn options_that_would_change_a_resumed_run_are_refused() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    for (option, line) in [
        ("--set", "--set total_steps=9999"),
        ("--seed", "--seed 4"),
        ("--device", "--device ndarray"),
        ("--out", "--out other"),
        ("CONFIG", "tiny.toml"),
    ] {
        let said = place.fails(&format!("train --resume run {line}"), 2);
        assert!(said.contains(&format!("`{option}` cannot change a run that goes on")), "{said}");
        assert!(said.contains("schedules depend on its config"), "{said}");
    }
}

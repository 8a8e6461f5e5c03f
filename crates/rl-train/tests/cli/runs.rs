//! Whole runs: what they write, and that a seed decides it.

use std::fs;

use serde_json::Value;

use crate::{Place, checkpoints};

#[test]
fn a_run_writes_its_folder_and_its_result() {
    let place = Place::new();
    let said = place.succeeds("train tiny.toml --out run --seed 7");
    for words in [
        "ppo on cart_pole, seed 7, 640 steps in 20 updates on flex",
        "100%",
        "evaluation: return",
        "rl-train eval run",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(said.lines().filter(|line| line.contains("steps/s  ETA")).count(), 20);

    let metrics = String::from_utf8(place.bytes("run/metrics.jsonl")).unwrap();
    let rows: Vec<Value> = metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 20);
    assert_eq!((&rows[19]["step"], &rows[19]["update"]), (&640.into(), &20.into()));
    assert!(metrics.lines().all(|line| line.starts_with("{\"step\":") && !line.contains("null")));
    for name in [
        "losses/policy_loss",
        "losses/value_loss",
        "losses/approx_kl",
        "charts/learning_rate",
        "charts/episodes",
    ] {
        assert!(rows.iter().all(|row| row[name].is_f64()), "{name}");
    }
    let with_episodes = rows.iter().find(|row| row["charts/episodes"] != 0.0).unwrap();
    assert_eq!(with_episodes["charts/episodic_return"], with_episodes["charts/episodic_length"]);
    assert!(rows[19]["eval/return_mean"].is_f64() && rows[18]["eval/return_mean"].is_null());

    let summary = place.json("run/summary.json");
    assert_eq!(summary["eval_return_mean"], rows[19]["eval/return_mean"]);
    assert_eq!(summary["eval_return_std"], rows[19]["eval/return_std"]);
    assert_eq!(
        (&summary["eval_episodes"], &summary["steps"], &summary["seed"]),
        (&3.into(), &640.into(), &7.into())
    );
    for name in ["wall_s", "cpu_s", "steps_per_s", "peak_rss_mb"] {
        assert!(summary[name].as_f64().unwrap() >= 0.0, "{name}");
    }
    let record = place.json("run/run.json");
    assert_eq!((&record["seed"], &record["device"]), (&7.into(), &"flex".into()));
    assert_eq!(record["command_line"][1], "train");
    let timing = String::from_utf8(place.bytes("run/timing.jsonl")).unwrap();
    assert_eq!(timing.lines().filter(|line| line.contains("charts/SPS")).count(), 20);

    let kept = checkpoints(&place.path("run"));
    let names: Vec<_> = kept.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["00000018.safetensors", "00000020.safetensors"]);
}

#[test]
fn the_resolved_config_alone_gives_the_run_again() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out a --set algo.max_grad_norm=off --set algo.clip=0.1 --seed 3");
    place.succeeds("train a/config.toml --out b");
    assert_eq!(place.bytes("a/config.toml"), place.bytes("b/config.toml"));
    assert_eq!(place.bytes("a/metrics.jsonl"), place.bytes("b/metrics.jsonl"));
}

#[test]
fn one_seed_gives_the_same_bytes_on_one_thread_and_on_two() {
    let place = Place::new();
    let wide =
        "--set model.hidden=[64,64] --set task.envs=16 --set algo.minibatch_rows=256 --set total_steps=1024";
    for (threads, out) in [("1", "one"), ("2", "two")] {
        let mut command = place.command(&format!("train tiny.toml --out {out} {wide}"));
        assert!(command.env("RAYON_NUM_THREADS", threads).output().unwrap().status.success());
    }
    assert_eq!(place.bytes("one/metrics.jsonl"), place.bytes("two/metrics.jsonl"));
    place.succeeds(&format!("train tiny.toml --out three {wide} --seed 2"));
    assert_ne!(place.bytes("one/metrics.jsonl"), place.bytes("three/metrics.jsonl"));
}

#[test]
fn evaluating_in_between_does_not_disturb_training() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out a");
    place.succeeds("train tiny.toml --out b --set eval.every_steps=100");
    let without_eval = |name: &str| -> Vec<Value> {
        let text = String::from_utf8(place.bytes(name)).unwrap();
        let strip = |line: &str| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row.as_object_mut().unwrap().retain(|name, _| !name.starts_with("eval/"));
            row
        };
        text.lines().map(strip).collect()
    };
    assert_eq!(without_eval("a/metrics.jsonl"), without_eval("b/metrics.jsonl"));
    let text = String::from_utf8(place.bytes("b/metrics.jsonl")).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("eval/return_mean")).count(), 7); // 100 … 600, and the end
}

#[test]
fn evaluating_a_run_gives_its_summary_again() {
    for options in ["", "--set normalize.obs_clip=5", "--set task.kind=pendulum --set total_steps=64"] {
        let place = Place::new();
        place.succeeds(&format!("train tiny.toml --out runs/mine {options}"));
        let summary = place.json("runs/mine/summary.json");
        let said = place.succeeds("eval runs/mine");
        let line = format!(
            "return {} ± {}",
            summary["eval_return_mean"].as_f64().unwrap(),
            summary["eval_return_std"].as_f64().unwrap()
        );
        assert!(said.contains(&line), "{said} is not {line}");
        assert_eq!(said, place.succeeds("eval mine"), "a run is found by its name in runs/");
        let more = place.succeeds("eval mine --episodes 5 --seed 1");
        let returns = more.lines().find_map(|line| line.strip_prefix("returns ")).unwrap();
        assert_eq!(returns.split(' ').count(), 5);
    }
}

#[test]
fn every_shipped_config_makes_an_update() {
    let place = Place::new();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let config = fs::read_to_string(&path).unwrap();
        if config.contains("\"$RL_DATA_DIR") && std::env::var_os("RL_DATA_DIR").is_none() {
            println!("{name}: skipped, RL_DATA_DIR is not set");
            continue;
        }
        let table: toml::Table = config.parse().unwrap();
        let number = |of: &toml::Value, key: &str| of.get(key).and_then(toml::Value::as_integer);
        let batch = ["data", "algo"].iter().find_map(|key| number(table.get(*key)?, "batch"));
        let steps = match (table["algo"].get("rollout"), batch) {
            (Some(rollout), _) => number(rollout, "prompts").unwrap() * number(rollout, "group").unwrap_or(1),
            (None, Some(batch)) => batch,
            (None, None) => {
                // Whole episodes: an update takes as many steps as they last, at least one each.
                number(&table["task"], "envs").unwrap() * number(&table["algo"], "rollout_steps").unwrap_or(1)
            }
        };
        place.succeeds(&format!("train {name} --out {name} --set total_steps={steps} --set eval.episodes=1"));
        assert!(place.path(&format!("{name}/summary.json")).is_file());
    }
}

#[test]
fn both_cpu_devices_and_both_layouts_train() {
    let place = Place::new();
    for device in ["flex", "ndarray"] {
        for layout in ["separate", "shared"] {
            let out = format!("{device}-{layout}");
            place.succeeds(&format!("train tiny.toml --out {out} --device {device} --set model.layout={layout} --set total_steps=64"));
            assert_eq!(place.json(&format!("{out}/run.json"))["device"], device);
        }
    }
}

#[test]
fn list_names_everything_that_can_be_asked_for() {
    let said = Place::new().succeeds("list");
    for words in [
        "ppo ",
        "trpo ",
        "npg ",
        "trpo-pendulum ",
        "a2c ",
        "reinforce ",
        "mountain_car_continuous",
        "kl_toy",
        "flex ",
        "ndarray ",
        "--features cuda",
        "ppo-cart-pole ",
        "CleanRL",
        "rlhf-tiny ",
    ] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
}

#[test]
fn bench_ends_with_a_line_of_json() {
    let said = Place::new().succeeds("bench tiny.toml --seconds 0.2");
    let figures: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert!(figures["steps_per_cpu_s"].as_f64().unwrap() > 0.0);
    assert!(said.contains("environment steps per CPU second") && said.contains("whole loop"));
}

#[test]
fn a_run_that_diverges_stops_with_the_quantity_and_keeps_its_checkpoint() {
    let place = Place::new();
    let line = "train tiny.toml --out run --set algo.optimizer.learning_rate=10 --set algo.max_grad_norm=off \
                --set algo.optimizer.eps=1e-30 --set algo.value_coef=1000 --set total_steps=64000 \
                --set algo.optimizer.kind=adamw --set algo.optimizer.weight_decay=1000000000";
    let said = place.fails(line, 1);
    assert!(said.contains("its last healthy checkpoint is `run/checkpoint/00000000.safetensors`"), "{said}");
    assert!(said.contains("in update") && said.contains("learning rate"), "{said}");
    assert!(!checkpoints(&place.path("run")).is_empty());
    assert!(!place.path("run/summary.json").exists());
}

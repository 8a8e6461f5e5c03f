//! Every setting of a run file does something: changing it changes the metrics.
//!
//! The settings are taken from a resolved config, so a new one without a case here fails the test.

use toml::{Table, Value};

use crate::Place;

const BASE: &str = r#"
total_steps = 192
[task]
kind = "pendulum"
envs = 2
[model]
hidden = [8]
[algo]
kind = "ppo"
rollout_steps = 32
epochs = 2
minibatch_rows = 32
clip = 0.2
entropy_coef = 0.01
[algo.optimizer]
learning_rate = 1e-2
[eval]
episodes = 1
"#;

/// A key, another value for it, and what must be set in both runs for it to matter.
const CASES: &[(&str, &str, &[&str])] = &[
    ("seed", "2", &[]),
    ("total_steps", "128", &[]),
    ("task.kind", "lqr", &[]),
    ("task.envs", "3", &[]),
    ("model.hidden", "[9]", &[]),
    ("model.activation", "relu", &[]),
    ("model.dropout", "0.5", &[]),
    ("model.layout", "shared", &[]),
    ("model.log_std_init", "-1", &[]),
    // Weight decay draws log σ towards 0, into the limit.
    ("model.log_std_min", "0.5", &["model.log_std_init=0.5", "algo.optimizer.weight_decay=100"]),
    ("model.log_std_max", "-0.5", &["model.log_std_init=-0.5", "algo.optimizer.weight_decay=100"]),
    ("algo.rollout_steps", "16", &[]),
    ("algo.epochs", "3", &[]),
    ("algo.minibatch_rows", "64", &[]),
    ("algo.gamma", "0.5", &[]),
    ("algo.gae_lambda", "0.5", &[]),
    ("algo.clip", "0.001", &[]),
    ("algo.kl", "{kind=\"fixed\",beta=1}", &[]),
    ("algo.target_kl", "1e-9", &[]),
    ("algo.entropy_coef", "0.5", &[]),
    ("algo.value_coef", "0.1", &[]),
    ("algo.value_clip", "0.001", &[]),
    ("algo.advantage_norm", "off", &[]),
    ("algo.max_grad_norm", "off", &[]),
    ("algo.optimizer.kind", "adamw", &["algo.optimizer.weight_decay=0.1"]),
    ("algo.optimizer.learning_rate", "1e-3", &[]),
    ("algo.optimizer.beta1", "0.5", &[]),
    ("algo.optimizer.beta2", "0.5", &[]),
    ("algo.optimizer.eps", "0.1", &[]),
    ("algo.optimizer.weight_decay", "0.1", &[]),
    ("normalize.obs_clip", "5", &[]),
    ("normalize.reward_clip", "5", &[]),
    ("eval.every_steps", "64", &[]),
    ("eval.episodes", "2", &[]),
    ("eval.seed", "1", &[]),
];
/// The same of TRPO, whose other settings are PPO's too.
const TRPO_BASE: &str = r#"
total_steps = 192
[task]
kind = "pendulum"
envs = 2
[model]
hidden = [8]
[algo]
kind = "trpo"
rollout_steps = 32
value_epochs = 2
value_minibatch_rows = 32
max_kl = 0.1
damping = 1e-3
fisher_share = 0.1
[algo.optimizer]
learning_rate = 1e-2
[eval]
episodes = 1
"#;
const TRPO_CASES: &[(&str, &str, &[&str])] = &[
    ("algo.kind", "npg", &[]),
    ("algo.rollout_steps", "16", &[]),
    ("algo.gamma", "0.5", &[]),
    ("algo.gae_lambda", "0.5", &[]),
    ("algo.max_kl", "0.001", &[]),
    ("algo.damping", "1.0", &[]),
    ("algo.cg_iterations", "1", &[]),
    ("algo.line_search.shrink", "0.5", &[]),
    ("algo.line_search.max_tries", "1", &[]),
    ("algo.fisher_share", "1.0", &[]),
    ("algo.value_epochs", "3", &[]),
    ("algo.value_minibatch_rows", "64", &[]),
    ("algo.optimizer.kind", "adamw", &["algo.optimizer.weight_decay=0.1"]),
    ("algo.optimizer.learning_rate", "1e-3", &[]),
    ("algo.optimizer.beta1", "0.5", &[]),
    ("algo.optimizer.beta2", "0.5", &[]),
    ("algo.optimizer.eps", "0.1", &[]),
    ("algo.optimizer.weight_decay", "0.1", &[]),
];
/// What is not to be seen in the metrics, and the test that sees it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("device", "runs::both_cpu_devices_and_both_layouts_train"),
    ("checkpoint.every_updates", "runs::a_run_writes_its_folder_and_its_result"),
    ("checkpoint.keep", "runs::a_run_writes_its_folder_and_its_result"),
    ("algo.kind", "settings::every_setting_of_trpo_moves_the_metrics"),
];

fn leaves(table: &Table, above: &str, found: &mut Vec<String>) {
    for (key, value) in table {
        let key = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            Value::Table(below) => leaves(below, &key, found),
            _ => found.push(key),
        }
    }
}

/// Demands that each of `base`'s settings which `concerns` has a case that changes the metrics.
#[track_caller]
fn every_setting_moves(base: &str, cases: &[(&str, &str, &[&str])], concerns: impl Fn(&str) -> bool) {
    let place = Place::with(base);
    let mut runs = 0;
    let mut metrics = |settings: &[String]| {
        let out = format!("run{runs}");
        runs += 1;
        let sets: Vec<String> = settings.iter().map(|setting| format!("--set {setting}")).collect();
        place.succeeds(&format!("train tiny.toml --out {out} {}", sets.join(" ")));
        place.bytes(&format!("{out}/metrics.jsonl"))
    };
    let base = metrics(&[]);
    let config: Table = String::from_utf8(place.bytes("run0/config.toml")).unwrap().parse().unwrap();
    let mut keys = Vec::new();
    leaves(&config, "", &mut keys);
    assert!(keys.len() > 30, "{keys:?}");
    for key in keys.iter().filter(|key| concerns(key)) {
        let (_, value, needs) = cases.iter().find(|(known, ..)| known == key).unwrap_or_else(|| {
            panic!("`{key}` is a new setting: add a case that shows what it does, or the test that does")
        });
        let mut settings: Vec<String> = needs.iter().map(|need| need.to_string()).collect();
        let before = if needs.is_empty() { base.clone() } else { metrics(&settings) };
        settings.push(format!("{key}={value}"));
        assert!(before != metrics(&settings), "`{key}={value}` changes nothing");
    }
}

#[test]
fn every_setting_moves_the_metrics() {
    every_setting_moves(BASE, CASES, |key| !ELSEWHERE.iter().any(|(known, _)| *known == key));
}

#[test]
fn every_setting_of_trpo_moves_the_metrics() {
    every_setting_moves(TRPO_BASE, TRPO_CASES, |key| key.starts_with("algo."));
}

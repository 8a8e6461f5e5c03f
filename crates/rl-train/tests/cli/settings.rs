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
    ("model.noise_correlation", "0.5", &[]),
    ("model.temperature", "2", &[]),
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
    ("algo.rollout_steps", "16", &[]),
    ("algo.gamma", "0.5", &[]),
    ("algo.gae_lambda", "0.5", &[]),
    ("algo.max_kl", "{kind=\"linear\",from=0.1,to=0}", &[]),
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

/// The settings of A2C, on the same run.
const A2C: &str = r#"
[algo]
kind = "a2c"
rollout_steps = 32
gae_lambda = 0.95
[algo.optimizer]
kind = "adam"
learning_rate = 1e-2
"#;
const A2C_CASES: &[(&str, &str, &[&str])] = &[
    ("algo.rollout_steps", "16", &[]),
    ("algo.gamma", "0.5", &[]),
    ("algo.gae_lambda", "0.5", &[]),
    ("algo.entropy_coef", "0.5", &[]),
    ("algo.value_coef", "0.1", &["algo.max_grad_norm=off"]),
    ("algo.advantage_norm", "rollout", &[]),
    ("algo.max_grad_norm", "off", &[]),
    ("algo.optimizer.kind", "rmsprop", &["algo.optimizer.beta1=0"]),
    ("algo.optimizer.learning_rate", "1e-3", &[]),
    ("algo.optimizer.beta1", "0.5", &[]),
    ("algo.optimizer.beta2", "0.5", &[]),
    ("algo.optimizer.eps", "0.1", &[]),
    ("algo.optimizer.weight_decay", "0.1", &[]),
];

/// The settings of REINFORCE, on a run of short episodes.
const REINFORCE: &str = r#"
[algo]
kind = "reinforce"
[algo.optimizer]
learning_rate = 1e-2
"#;
const REINFORCE_CASES: &[(&str, &str, &[&str])] = &[
    ("algo.gamma", "0.5", &[]),
    ("algo.credit", "whole_trajectory", &[]),
    ("algo.baseline.kind", "none", &[]),
    ("algo.baseline.coef", "0.1", &["algo.baseline={kind=\"value\",coef=0.5}"]),
    ("algo.baseline.momentum", "0.9", &[]),
    ("algo.advantage_norm", "rollout", &[]),
    ("algo.entropy_coef", "0.5", &[]),
    ("algo.max_grad_norm", "0.1", &[]),
    ("algo.optimizer.kind", "adamw", &["algo.optimizer.weight_decay=0.1"]),
    ("algo.optimizer.learning_rate", "1e-3", &[]),
    ("algo.optimizer.beta1", "0.5", &[]),
    ("algo.optimizer.beta2", "0.5", &[]),
    ("algo.optimizer.eps", "0.1", &[]),
    ("algo.optimizer.weight_decay", "0.1", &[]),
];
/// The settings of DQN.
const DQN: &str = r#"
[algo]
kind = "dqn"
rollout_steps = 8
gradient_steps = 4
minibatch_rows = 16
replay = 150
learning_starts = 16
epsilon = 0.5
target_every = 2
max_grad_norm = 0.1
[algo.optimizer]
learning_rate = 1e-2
"#;
const DQN_CASES: &[(&str, &str, &[&str])] = &[
    ("algo.rollout_steps", "16", &[]),
    ("algo.gradient_steps", "3", &[]),
    ("algo.minibatch_rows", "8", &[]),
    ("algo.replay", "20", &[]),
    ("algo.learning_starts", "64", &[]),
    ("algo.gamma", "0.5", &[]),
    ("algo.epsilon", "{kind=\"ramp\",from=1,to=0.1,over=0.5}", &[]),
    ("algo.target", "max", &[]),
    ("algo.target_every", "3", &[]),
    ("algo.target_mix", "0.5", &[]),
    // Huber's loss is half the square until an error exceeds 1.
    ("algo.loss", "squared", &["algo.max_grad_norm=off", "algo.optimizer.learning_rate=0.1"]),
    ("algo.max_grad_norm", "off", &[]),
    ("algo.optimizer.kind", "adamw", &["algo.optimizer.weight_decay=0.1"]),
    ("algo.optimizer.learning_rate", "1e-3", &[]),
    ("algo.optimizer.beta1", "0.5", &[]),
    ("algo.optimizer.beta2", "0.5", &[]),
    ("algo.optimizer.eps", "0.1", &[]),
    ("algo.optimizer.weight_decay", "0.1", &[]),
];
/// What is not to be seen in the metrics, and the test that sees it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("algo.kind", "every_algorithm_runs_from_its_own_table"),
    ("device", "runs::both_cpu_devices_and_both_layouts_train"),
    ("task.step_timeout_s", "faults: numbers::a_slow_environment_is_waited_for"),
    ("checkpoint.every_updates", "runs::a_run_writes_its_folder_and_its_result"),
    ("checkpoint.keep", "runs::a_run_writes_its_folder_and_its_result"),
    (
        "checkpoint.keep_best",
        "faults: retention::the_last_and_the_best_checkpoints_stay_and_the_summary_names_the_best",
    ),
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

/// `BASE` with another `[algo]`.
fn base_of(task: &str, algo: &str) -> String {
    let (before, rest) = BASE.split_once("[algo]").unwrap();
    let (_, after) = rest.split_once("[eval]").unwrap();
    format!("{}{algo}[eval]{after}", before.replace("pendulum", task))
}

/// Every setting below `algo` of the run file `base`, changed as `cases` say, moves the metrics.
fn every_setting_of_the_algorithm_moves_the_metrics(base: &str, cases: &[(&str, &str, &[&str])]) {
    check(base, cases, |key| key.starts_with("algo."));
}

#[test]
fn every_setting_of_a2c_moves_the_metrics() {
    every_setting_of_the_algorithm_moves_the_metrics(&base_of("pendulum", A2C), A2C_CASES);
}

#[test]
fn every_setting_of_reinforce_moves_the_metrics() {
    every_setting_of_the_algorithm_moves_the_metrics(&base_of("cart_pole", REINFORCE), REINFORCE_CASES);
    let running_mean = format!("{REINFORCE}[algo.baseline]\nkind = \"running_mean\"\nmomentum = 0.5\n");
    check(&base_of("cart_pole", &running_mean), REINFORCE_CASES, |key| key == "algo.baseline.momentum");
}

#[test]
fn every_setting_of_dqn_moves_the_metrics() {
    every_setting_of_the_algorithm_moves_the_metrics(&base_of("cart_pole", DQN), DQN_CASES);
}

#[test]
fn every_algorithm_runs_from_its_own_table() {
    let kind = |task, algo: &str| {
        let place = Place::with(&base_of(task, algo));
        place.succeeds("train tiny.toml --out run");
        String::from_utf8(place.bytes("run/config.toml")).unwrap().parse::<Table>().unwrap()["algo"]["kind"]
            .clone()
    };
    assert_eq!(kind("pendulum", A2C).as_str(), Some("a2c"));
    let place = Place::with(TRPO_BASE);
    let metrics = ["trpo", "npg"].map(|kind| {
        place.succeeds(&format!(
            "train tiny.toml --set algo.kind={kind} {} --out {kind}",
            match kind {
                "npg" => "--set algo.line_search=off",
                _ => "",
            }
        ));
        place.bytes(&format!("{kind}/metrics.jsonl"))
    });
    assert_ne!(metrics[0], metrics[1]);
    assert_eq!(kind("cart_pole", DQN).as_str(), Some("dqn"));
    assert_eq!(kind("cart_pole", REINFORCE).as_str(), Some("reinforce"));
}

#[test]
fn every_setting_moves_the_metrics() {
    let keys = check(BASE, CASES, |_| true);
    assert!(keys > 30, "{keys} settings");
}

/// Changes the settings of `base` that are `chosen`, one by one, and returns how many there are.
fn check(base: &str, cases: &[(&str, &str, &[&str])], chosen: impl Fn(&str) -> bool) -> usize {
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
    keys.retain(|key| chosen(key) && !ELSEWHERE.iter().any(|(known, _)| known == key));
    for key in keys.iter() {
        let (_, value, needs) = cases.iter().find(|(known, ..)| known == key).unwrap_or_else(|| {
            panic!("`{key}` is a new setting: add a case that shows what it does, or the test that does")
        });
        let mut settings: Vec<String> = needs.iter().map(|need| need.to_string()).collect();
        let before = if needs.is_empty() { base.clone() } else { metrics(&settings) };
        settings.push(format!("{key}={value}"));
        let after = metrics(&settings);
        assert!(before != after, "`{key}={value}` changes nothing");
    }
    keys.len()
}

#[test]
fn every_setting_of_trpo_moves_the_metrics() {
    every_setting_of_the_algorithm_moves_the_metrics(TRPO_BASE, TRPO_CASES);
}

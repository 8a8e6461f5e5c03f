//! Runs on preferences from outside: exact resuming, the cache of the reference, what is refused before the first step.

use std::fs;
use std::path::Path;

use rl_algos::checkpoint::Checkpoint;
use serde_json::Value;

use crate::{Place, checkpoints};

const RUN: &str = r#"
total_steps = 48
[task]
kind = "text"
[lm]
model = "lm"
[data]
train = "pairs.jsonl"
eval = "held-out.jsonl"
prompts = "prompts.txt"
gold = "vader"
max_prompt_tokens = 16
max_answer_tokens = 8
batch = 4
[algo]
kind = "dpo"
[algo.optimizer]
learning_rate = 1e-3
[eval]
every_steps = 24
episodes = 3
[checkpoint]
every_updates = 4
keep = 9
"#;

/// Ten pairs in which the cheerful answer is the better one.
fn pairs() -> String {
    let line = |i: usize| {
        format!(
            "{{\"prompt\": \"day {i} was\", \"chosen\": \" good and happy\", \"rejected\": \" bad {i}\"}}\n"
        )
    };
    (0..10).map(line).collect()
}

/// A place with a small language model in `lm`, pairs and prompts.
fn place() -> Place {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/hf");
    let place = Place::with(RUN);
    fs::create_dir(place.path("lm")).unwrap();
    for file in
        ["llama_tied/config.json", "llama_tied/model.safetensors", "tokenizer_bpe300_gpt2/tokenizer.json"]
    {
        let from = golden.join(file);
        fs::write(place.path("lm").join(from.file_name().unwrap()), fs::read(&from).unwrap()).unwrap();
    }
    fs::write(place.path("pairs.jsonl"), pairs()).unwrap();
    let held_out = "{\"prompt\": \"night was\", \"chosen\": \" happy\", \"rejected\": \" sad\"}\n";
    fs::write(place.path("held-out.jsonl"), held_out).unwrap();
    fs::write(place.path("prompts.txt"), "day 1 was\nnight was\n\nnoon was\n").unwrap();
    place
}

fn rows(place: &Place, run: &str) -> Vec<Value> {
    let text = String::from_utf8(place.bytes(&format!("{run}/metrics.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn same_after_a_kill(place: &Place, kind: &str) {
    for out in ["a", "b"] {
        place.succeeds(&format!("train tiny.toml --set algo.kind={kind} --out {out}"));
    }
    assert_eq!(place.bytes("a/metrics.jsonl"), place.bytes("b/metrics.jsonl"));
    // As if the run had been killed after its eighth update.
    fs::remove_file(place.path("b/summary.json")).unwrap();
    fs::remove_file(checkpoints(&place.path("b")).last().unwrap()).unwrap();
    place.succeeds("train --resume b");
    assert_eq!(place.bytes("a/metrics.jsonl"), place.bytes("b/metrics.jsonl"));
    let last = |run: &str| Checkpoint::load(checkpoints(&place.path(run)).last().unwrap()).unwrap();
    assert_eq!(last("a"), last("b"));
    assert_eq!(place.bytes("a/model/model.safetensors"), place.bytes("b/model/model.safetensors"));
}

#[test]
fn a_resumed_dpo_run_is_the_same_and_leaves_a_model_and_samples() {
    let place = place();
    same_after_a_kill(&place, "dpo");
    let rows = rows(&place, "a");
    let loss = rows[0]["losses/policy_loss"].as_f64().unwrap();
    assert!((loss - std::f64::consts::LN_2).abs() < 1e-6, "the first loss is {loss}, not ln 2");
    // Not exactly 0: the reference read the pairs in other batches, where padding moves the last bits.
    assert!(rows[0]["rewards/margins"].as_f64().unwrap().abs() < 1e-5, "{}", rows[0]);
    assert!(rows[11]["losses/policy_loss"].as_f64().unwrap() < loss, "{:?}", rows[11]);
    assert!(rows[11]["eval/kl"].as_f64().unwrap() > 0.0 && rows[11]["eval/gold"].is_number());

    let samples = String::from_utf8(place.bytes("a/samples.jsonl")).unwrap();
    let first: Value = serde_json::from_str(samples.lines().next().unwrap()).unwrap();
    assert_eq!((samples.lines().count(), &first["prompt"]), (2, &Value::from("night was")));
    assert!(first["before"].is_string() && first["after"].is_string());
    let summary = place.json("a/summary.json");
    assert!(
        summary["before"]["gold"].is_number() && summary["after"]["kl_per_token"].is_number(),
        "{summary}"
    );
    let said = place.succeeds("eval a");
    assert!(said.contains("after update 12 (48 pairs)") && said.contains("before gold"), "{said}");
    place.succeeds("generate a/model --prompt day --max-tokens 3");
}

#[test]
fn a_resumed_reward_model_run_is_the_same_and_scores() {
    let place = place();
    same_after_a_kill(&place, "reward_model");
    let summary = place.json("a/summary.json");
    assert_eq!(summary["held_out"]["pairs"], 1);
    let said = place.succeeds("score a/model pairs.jsonl");
    assert!(said.contains("10 pairs: accuracy 1.000"), "{said}");
    let reading = place.json("a/model/reading.json");
    assert_eq!(reading["max_answer_tokens"], 8);
}

#[test]
fn the_reference_is_read_from_its_file_and_a_damaged_file_is_rebuilt_with_a_word() {
    let place = place();
    let first = place.succeeds("train tiny.toml --out a");
    assert!(first.contains("reference log-probs: computed, kept in `runs/cache/reference-"), "{first}");
    let second = place.succeeds("train tiny.toml --out b --seed 2");
    assert!(second.contains("reference log-probs: read from `runs/cache/reference-"), "{second}");
    let file = fs::read_dir(place.path("runs/cache")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let third = place.succeeds("train tiny.toml --out c");
    assert!(third.contains("is damaged") && third.contains("computed again"), "{third}");
    assert_eq!(fs::read(&file).unwrap(), whole);
    assert_eq!(place.bytes("a/metrics.jsonl"), place.bytes("c/metrics.jsonl"));
}

#[test]
fn what_cannot_work_is_said_before_the_first_step() {
    let place = place();
    let fails = |options: &str, code: i32, words: &[&str]| {
        let error = place.fails(&format!("train tiny.toml --out refused {options}"), code);
        words.iter().for_each(|word| assert!(error.contains(word), "no `{word}` in {error}"));
        let _ = fs::remove_dir_all(place.path("refused"));
    };
    let unset = ["`lm.model` = \"$RL_NOWHERE/lm\"", "RL_NOWHERE is not set", "export RL_NOWHERE="];
    fails("--set lm.model=\"$RL_NOWHERE/lm\"", 2, &unset);
    fails("--set data.train=\"nowhere.jsonl\"", 2, &["`data.train`", "there is no `nowhere.jsonl`"]);
    fails("--set data.batch=0", 2, &["`data.batch` must be in [1, 1048576], but is 0"]);
    fails("--set algo.beta=0", 2, &["beta"]);
    fails("--set task.kind=\"cart_pole\"", 2, &["it learns from pairs of texts", "text"]);
    fails("--set algo.kind=\"ppo\"", 2, &["reward_model"]);
    fails("--set data.fields=[\"better=a\"]", 2, &["`data.fields`", "`better` is no field"]);
    fails("--set data.max_prompt_tokens=100000", 2, &["look back on"]);
    fails("--set total_steps=3", 2, &["total_steps"]);
    // A bad row of a held-out file is found before anything is trained.
    fs::write(place.path("held-out.jsonl"), "{\"prompt\": \"p\", \"chosen\": \"a\"}\n").unwrap();
    fails("", 1, &["held-out.jsonl, line 1: `rejected` is missing"]);
    fs::write(place.path("held-out.jsonl"), "{\"prompt\": \"p\", \"completion\": \"a\", \"label\": true}\n")
        .unwrap();
    fails("", 1, &["`data.eval` has no pairs, but 1 single judgements"]);
    fs::write(place.path("prompts.txt"), "day 1 was\n").unwrap();
    fs::write(place.path("held-out.jsonl"), pairs()).unwrap();
    fails("", 1, &["prompts.txt", "has no prompt that `data.train` does not have"]);
}

const ANSWERS: &str = "--set algo={kind=\"rlhf_ppo\",epochs=2,minibatch_rows=4,rollout={prompts=4},\
                       optimizer={learning_rate=1e-3}} --set guards={cut_ceiling=\"off\"} --set total_steps=24 \
                       --set checkpoint.every_updates=2 --set eval.every_steps=12";

#[test]
fn a_resumed_rlhf_run_on_texts_is_the_same_whoever_judges() {
    let place = place();
    place.succeeds("train tiny.toml --set algo.kind=reward_model --out rm");
    for (judge, reward) in [("vader", "{kind=\"vader\"}"), ("rm", "{kind=\"model\",folder=\"rm/model\"}")] {
        let (a, b) = (format!("{judge}-a"), format!("{judge}-b"));
        for out in [&a, &b] {
            let said =
                place.succeeds(&format!("train tiny.toml {ANSWERS} --set data.reward={reward} --out {out}"));
            assert!(said.contains("before: gold") && said.contains("after  gold"), "{said}");
        }
        let metrics = |run: &str| place.bytes(&format!("{run}/metrics.jsonl"));
        assert_eq!(metrics(&a), metrics(&b));
        fs::remove_file(place.path(&format!("{b}/summary.json"))).unwrap();
        fs::remove_file(checkpoints(&place.path(&b)).last().unwrap()).unwrap();
        place.succeeds(&format!("train --resume {b}"));
        assert_eq!(metrics(&a), metrics(&b));
        let last = |run: &str| Checkpoint::load(checkpoints(&place.path(run)).last().unwrap()).unwrap();
        assert_eq!(last(&a), last(&b));
        let row = &rows(&place, &a)[0];
        assert!(row["objective/gold"].is_number() && row["responses/distinct_2"].is_number(), "{row}");
        assert!(row["objective/kl"].as_f64().unwrap() < 1e-6, "the first rollout is the reference's: {row}");
    }
    // Without a critic.
    for kind in ["rloo", "grpo"] {
        let kl = if kind == "grpo" { ",kl_place=\"token_loss\",kl_estimator=\"k3\"" } else { "" };
        let algo =
            format!("{{kind=\"{kind}\",steps={{minibatch_rows=4}},rollout={{prompts=2,group=2{kl}}}}}");
        let said = place.succeeds(&format!("train tiny.toml {ANSWERS} --set algo={algo} --out {kind}"));
        assert!(said.contains("after  gold"), "{said}");
    }
}

#[test]
fn a_judge_that_reads_other_tokens_is_refused() {
    let place = place();
    place.succeeds("train tiny.toml --set algo.kind=reward_model --out rm");
    let tokenizer = place.path("rm/model/tokenizer.json");
    let other = fs::read_to_string(&tokenizer).unwrap() + "\n";
    fs::write(&tokenizer, other).unwrap();
    let reward = "--set data.reward={kind=\"model\",folder=\"rm/model\"}";
    let error = place.fails(&format!("train tiny.toml {ANSWERS} {reward} --out a"), 1);
    assert!(error.contains("another tokenizer.json"), "{error}");
    let reward = "--set data.reward={kind=\"model\",folder=\"nowhere\"}";
    let error = place.fails(&format!("train tiny.toml {ANSWERS} {reward} --out b"), 2);
    assert!(error.contains("`data.reward.folder`") && error.contains("nowhere"), "{error}");
}

#[test]
fn every_real_file_is_learnt_from() {
    let data = std::env::var_os("RL_DATA_DIR").map(std::path::PathBuf::from);
    if !data.is_some_and(|data| data.join("pref").is_dir()) {
        return println!("skipped: RL_DATA_DIR names no folder with pref");
    }
    let place = Place::new();
    for (kind, name) in [
        ("dpo", "llmbar_natural.json"),
        ("dpo", "hh_harmless_test_mild200.jsonl.gz"),
        ("reward_model", "instruction_data_with_preference.json"),
        ("reward_model", "dpo_en_demo.json"),
    ] {
        let config = format!(
            "total_steps = 8\n[task]\nkind = \"text\"\n[lm]\nmodel = \"$RL_DATA_DIR/models/stories260K-hf\"\n\
             [data]\ntrain = \"$RL_DATA_DIR/pref/{name}\"\non_bad = \"skip\"\nbatch = 4\nmax_prompt_tokens = 16\n\
             max_answer_tokens = 16\n[algo]\nkind = \"{kind}\"\n"
        );
        fs::write(place.path("real.toml"), config).unwrap();
        let out = name.split('.').next().unwrap();
        place.succeeds(&format!("train real.toml --out {out}"));
        let rows = rows(&place, out);
        assert_eq!(rows.len(), 2, "{name}");
        assert!(rows.iter().all(|row| row["losses/grad_norm"].as_f64().unwrap() > 0.0), "{name}: {rows:?}");
        assert!(place.path(out).join("model/config.json").is_file(), "{name}");
    }
}

//! Runs on language models: stories from scratch, files of one's own, and what they leave behind.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::resume::{assert_equal, signal, wait_for};
use crate::{Place, text};

/// A hundred updates of a very small model.
const STORIES: &str = r#"
total_steps = 400
[task]
kind = "corpus"
[corpus]
kind = "stories"
stories = 60
[start]
dropout = 0.1
[start.from]
kind = "scratch"
hidden = 16
layers = 1
heads = 2
kv_heads = 1
context = 64
[algo]
kind = "sft"
batch = 4
micro_batch = 2
max_tokens = 64
[algo.optimizer]
learning_rate = 1e-2
[eval]
every_steps = 100
episodes = 10
[checkpoint]
every_updates = 7
"#;

#[test]
fn stories_are_learnt_and_the_model_left_behind_writes_with_their_words() {
    let place = Place::with(STORIES);
    let said = place.succeeds("train tiny.toml --out run");
    assert!(said.contains("50 rows to learn from") && said.contains("perplexity"), "{said}");
    let summary = place.json("run/summary.json");
    let perplexity = summary["eval_perplexity"].as_f64().unwrap();
    assert!(perplexity < 30.0 && summary["eval_rows"] == 10, "{summary}");
    assert!(place.succeeds("eval run").contains(&format!("perplexity {perplexity:.2}")));

    let config: Value = serde_json::from_slice(&place.bytes("run/model/config.json")).unwrap();
    assert_eq!((config["model_type"].as_str(), config["hidden_size"].as_u64()), (Some("llama"), Some(16)));
    let mut command = place.command("generate run/model --max-tokens 12 --seed 2 --prompt");
    let out = command.arg("Mia the fox").output().unwrap();
    let written = text(&out.stdout);
    assert!(out.status.success() && written.starts_with("Mia the fox") && written.len() > 20, "{written}");

    // The folder is a start like any other, whole or with adapters; its words stay its own.
    let more =
        "--set start.from={kind=\"folder\",path=\"run/model\"} --set corpus.seed=2 --set total_steps=80";
    place.succeeds(&format!("train tiny.toml --out more {more} --set start.lora={{rank=2}}"));
    assert!(place.bytes("more/model/model.safetensors") != place.bytes("run/model/model.safetensors"));
    let further = place.json("more/summary.json")["eval_perplexity"].as_f64().unwrap();
    assert!(further < 1.5 * perplexity, "{perplexity} to {further}");
    let (old, new) = (place.bytes("run/model/tokenizer.json"), place.bytes("more/model/tokenizer.json"));
    assert!(old == new, "another tokenizer");
}

#[test]
fn a_killed_run_goes_on_as_if_it_had_not_been_and_with_no_other_examples() {
    let place = Place::with(STORIES);
    place.succeeds("train tiny.toml --out whole");
    let mut child = place
        .command("train tiny.toml --out killed")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&place.path("killed"), 20);
    signal(&child, "-KILL");
    assert!(!child.wait().unwrap().success(), "the run was over before it could be killed");
    place.succeeds("train --resume killed");
    assert_equal(&place, "whole", "killed");
    assert!(place.bytes("whole/model/model.safetensors") == place.bytes("killed/model/model.safetensors"));
}

#[test]
fn files_of_text_and_of_responses_are_learnt() {
    let place = Place::with(STORIES);
    fs::write(place.path("a.txt"), "The sun is up.<|endoftext|>The moon is up.\n".repeat(40)).unwrap();
    let pair = "{\"prompt\": \"What is up?\", \"response\": \" The sun.\"}\n\n";
    fs::write(place.path("b.jsonl"), pair.repeat(30)).unwrap();
    let small = "--set total_steps=16 --set eval.episodes=2 --set algo.max_tokens=32";
    place.succeeds(&format!("train tiny.toml --out a {small} --set corpus={{kind=\"text\",path=\"a.txt\"}}"));
    let said = place.succeeds(&format!(
        "train tiny.toml --out b {small} --set corpus={{kind=\"responses\",path=\"b.jsonl\"}}"
    ));
    assert!(said.contains("28 rows to learn from"), "{said}");
    // Four words and the end count, of each of four rows.
    let row: Value =
        serde_json::from_str(text(&place.bytes("b/metrics.jsonl")).lines().next().unwrap()).unwrap();
    assert_eq!(row["charts/tokens"], 16.0);

    fs::write(place.path("c.jsonl"), format!("{pair}{{\"prompt\": \"x\"}}\n")).unwrap();
    let error = place
        .fails(&format!("train tiny.toml {small} --set corpus={{kind=\"responses\",path=\"c.jsonl\"}}"), 2);
    assert!(error.contains("c.jsonl:3") && error.contains("`response`"), "{error}");
}

#[test]
fn what_does_not_go_together_is_refused_in_words() {
    let place = Place::with(STORIES);
    for (changes, words) in [
        ("--set task.kind=cart_pole", ["`algo.kind` = \"sft\"", "task.kind = \"corpus\""]),
        ("--set algo={kind=\"ppo\"}", ["a corpus is learnt by `sft`", "ppo"]),
        ("--set start.from.hidden=18", ["start.from.hidden", "2 · 2 heads"]),
        ("--set start.dropout=1.0", ["start.dropout", "[0, 1)"]),
        ("--set algo.micro_batch=3", ["micro_batch", "divisors of `batch`"]),
        ("--set start.from={kind=\"folder\",path=\"nowhere\"}", ["start.from.path", "nowhere"]),
        ("--set corpus={kind=\"text\",path=\"nowhere.txt\"}", ["corpus.path", "nowhere.txt"]),
        ("--set total_steps=3", ["total_steps", "4 rows"]),
        ("--set corpus.stories=5", ["eval.episodes", "10 of 5 rows"]),
    ] {
        let error = place.fails(&format!("train tiny.toml {changes}"), 2);
        assert!(words.iter().all(|word| error.contains(word)), "{changes}: {error}");
    }
}

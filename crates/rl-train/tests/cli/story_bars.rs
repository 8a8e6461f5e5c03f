//! The bars of preference learning on a real model of 260,000 parameters. Minutes each: with `RL_SLOW=1`, and with
//! `RL_DATA_DIR` for the data. Measured numbers: docs/preferences.md.

use serde_json::Value;

use crate::Place;

/// The place and summary of a run of `line`, or nothing where it is not asked for.
#[track_caller]
fn run(line: &str) -> Option<(Place, Value)> {
    for (name, cure) in [("RL_SLOW", "slow (set RL_SLOW=1)"), ("RL_DATA_DIR", "no data (set RL_DATA_DIR)")] {
        if std::env::var_os(name).is_none() {
            println!("skipped: {cure}");
            return None;
        }
    }
    let place = Place::new();
    place.succeeds(&format!("train {line} --out run"));
    let summary = place.json("run/summary.json");
    println!("{line}: {summary}");
    Some((place, summary))
}

fn rows(place: &Place) -> Vec<Value> {
    let text = crate::text(&place.bytes("run/metrics.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_reward_model_is_right_on_three_of_four_unseen_pairs_after_one_epoch_and_on_four_of_five_after_two() {
    let Some((place, _)) = run("rm-stories") else { return };
    let accuracies: Vec<f64> = rows(&place).iter().filter_map(|row| row["eval/accuracy"].as_f64()).collect();
    let [one, two] = accuracies[..] else { panic!("two evaluations: {accuracies:?}") };
    assert!(one >= 0.75 && two >= 0.80, "{one} after one epoch, {two} after two");
}

/// DPO at a step size reaches a gold reward on unseen prompts within so many nats per token, from a loss of ln 2.
#[track_caller]
fn dpo_reaches(rate: &str, gold: f64, kl_per_token: f64) {
    let Some((place, summary)) = run(&format!("dpo-stories --set algo.optimizer.learning_rate={rate}"))
    else {
        return;
    };
    let first = rows(&place)[0]["losses/policy_loss"].as_f64().unwrap();
    assert!((first - std::f64::consts::LN_2).abs() < 1e-6, "the first loss is {first}");
    let number = |key: &str| summary["after"][key].as_f64().unwrap();
    assert!(number("gold") >= gold && number("kl_per_token") <= kl_per_token, "{summary}");
}

#[test]
fn dpo_reaches_67_hundredths_within_a_tenth_of_a_nat_per_token() {
    dpo_reaches("3e-5", 0.67, 0.1);
}

#[test]
fn dpo_with_larger_steps_reaches_nine_tenths_within_45_hundredths() {
    dpo_reaches("1e-4", 0.90, 0.45);
}

//! RLHF runs from outside: exact numbers, resuming, guards, and what is refused.

use rl_algos::checkpoint::Checkpoint;
use serde_json::Value;

use crate::{Place, checkpoints};

/// Thirty updates in the small world, with a checkpoint every ten.
const SHORT: &str = "--set total_steps=1920 --set algo.rollout.prompts=64 --set algo.minibatch_rows=64 \
                     --set checkpoint.every_updates=10 --set checkpoint.keep=9";

fn rows(place: &Place, run: &str) -> Vec<Value> {
    let text = String::from_utf8(place.bytes(&format!("{run}/metrics.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn one_seed_gives_one_run_and_a_resumed_run_is_the_same() {
    let place = Place::new();
    for out in ["a", "b"] {
        place.succeeds(&format!("train rlhf-token-world-exact --out {out} {SHORT}"));
    }
    assert_eq!(place.bytes("a/metrics.jsonl"), place.bytes("b/metrics.jsonl"));
    // As if the run had been killed after its twentieth update.
    std::fs::remove_file(place.path("b/summary.json")).unwrap();
    std::fs::remove_file(checkpoints(&place.path("b")).last().unwrap()).unwrap();
    place.succeeds("train --resume b");
    assert_eq!(place.bytes("a/metrics.jsonl"), place.bytes("b/metrics.jsonl"));
    let last = |run: &str| Checkpoint::load(checkpoints(&place.path(run)).last().unwrap()).unwrap();
    assert_eq!(last("a"), last("b"));
    let said = place.succeeds("eval a");
    assert!(said.contains("after update 30 (1920 responses)") && said.contains("KL(π ‖ π*)"), "{said}");
}

#[test]
fn every_algorithm_runs_and_never_rises_above_the_frontier() {
    let place = Place::new();
    for name in ["rlhf-token-world", "rloo-token-world", "grpo-token-world"] {
        let said = place.succeeds(&format!(
            "train {name} --out {name} --set total_steps=5120 --set token_world.world=small --set eval.every_steps=256"
        ));
        assert!(said.contains("the highest gold that any policy has at this KL"), "{said}");
        for row in rows(&place, name) {
            let number = |key: &str| row[key].as_f64().unwrap();
            assert!(number("exact/gold") <= number("exact/frontier") + 1e-6, "{name}: {row}");
        }
    }
}

#[test]
fn the_kl_budget_ends_a_run_and_says_so() {
    let place = Place::new();
    let said = place.succeeds(
        "train rlhf-token-world --out run --set algo.rollout.kl={kind=\"fixed\",beta=0.0} --set guards.kl_budget=0.5",
    );
    assert!(said.contains("over the budget of 0.50") && said.contains("Try:"), "{said}");
    let summary = place.json("run/summary.json");
    assert_eq!(summary["stopped_by"], "kl_budget");
    assert!(summary["updates"].as_u64().unwrap() < 60, "{summary}");
}

#[test]
fn a_run_without_a_price_is_told_how_far_it_is_and_a_run_at_its_target_is_not() {
    let place = Place::new();
    let free = place.succeeds(
        "train rlhf-token-world --out free --set total_steps=25600 --set algo.rollout.kl={kind=\"fixed\",beta=0.0}",
    );
    assert!(free.contains("nats per token, above") && free.contains("Try: raise β"), "{free}");
    let held = place.succeeds("train rlhf-token-world --out held --set total_steps=25600");
    assert!(!held.contains("nats per token, above"), "{held}");
}

#[test]
fn a_rollback_makes_a_nat_dearer() {
    let place = Place::new();
    let said = place.succeeds(
        "train rlhf-token-world --out run --set total_steps=25600 --set guards.on_alarm=rollback \
         --set checkpoint.every_updates=5 --set algo.rollout.kl={kind=\"fixed\",beta=0.05}",
    );
    assert!(said.contains("guard: back to the last healthy checkpoint, with β = 0.1"), "{said}");
    assert!(place.json("run/summary.json")["beta"].as_f64().unwrap() >= 0.1);
}

#[test]
fn what_does_not_fit_together_is_refused_with_a_cure() {
    let place = Place::new();
    let refused = |line: &str, words: &str| {
        let said = place.fails(&format!("train {line} --out run"), 2);
        assert!(said.contains(words), "`{line}` said {said:?}, without {words:?}");
    };
    refused("rlhf-token-world --set task.kind=cart_pole", "set `task.kind = \"token_world\"`");
    refused("tiny.toml --set task.kind=token_world", "responses are learnt by `rlhf_ppo`, `rloo` or `grpo`");
    refused("tiny.toml --set guards.patience=3", "take the table [guards] out");
    refused("rlhf-token-world --set algo.rollout.kl_place=sequence_loss", "k1");
    refused("rloo-token-world --set algo.rollout.group=1", "`rollout.group` must be in [2, ∞), but is 1");
    refused("grpo-token-world --set algo.rollout.kl_place=reward", "GRPO charges its KL in the token loss");
    refused(
        "rlhf-token-world --set guards.entropy_floor=2",
        "`guards.entropy_floor` must be in [0, 1], but is 2",
    );
    refused("rlhf-token-world --set algo.rollout.kl.target=0", "`kl.target` must be in (0, ∞), but is 0");
}

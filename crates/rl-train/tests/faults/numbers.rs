//! A run whose numbers go bad stops, names the first of them, and leaves a checkpoint that does not know of it.

use crate::place::Place;

#[test]
fn weights_that_overflow_end_the_run_at_that_update_and_never_reach_a_checkpoint() {
    let place = Place::new();
    for kind in ["ppo", "dqn", "reward_model", "dpo", "sft"] {
        let set = "algo.optimizer.learning_rate=1e38";
        let said = place.fails(&format!("train {kind}.toml --out {kind} --set {set}"), 1);
        assert!(said.contains("update") && said.contains(&format!("`{kind}/checkpoint`")), "{kind}: {said}");
        // What is left is whole and finite.
        place.succeeds(&format!("eval {kind}"));
    }
}

//! A run whose numbers go bad stops, names the first of them, and leaves a checkpoint that does not know of it.

use crate::place::Place;

#[test]
fn weights_that_overflow_end_the_run_at_that_update_and_never_reach_a_checkpoint() {
    let place = Place::new();
    for kind in ["ppo", "dqn", "reward_model", "dpo", "sft"] {
        let set = "algo.optimizer.learning_rate=1e38";
        let said = place.fails(&format!("train {kind}.toml --out {kind} --set {set}"), 1);
        assert!(
            said.contains("update")
                && said.contains(&format!("its last healthy checkpoint is `{kind}/checkpoint/")),
            "{kind}: {said}"
        );
        // What is left is whole and finite.
        place.succeeds(&format!("eval {kind}"));
    }
}

#[test]
fn a_slow_environment_is_waited_for() {
    let place = Place::new();
    place.succeeds("train ppo.toml --out a --set total_steps=640");
    place.succeeds("train ppo.toml --out b --set total_steps=640 --set task.step_timeout_s=20");
    let metrics = |run: &str| std::fs::read(place.path(run).join("metrics.jsonl")).unwrap();
    assert!(metrics("a") == metrics("b"));
    let said = place.fails("train ppo.toml --out c --set task.step_timeout_s=0", 2);
    assert!(said.contains("`task.step_timeout_s` must be in [0.1, 1e6], but is 0"), "{said}");
}

#[test]
fn what_fails_after_every_rollback_stops_after_three() {
    let place = Place::new();
    for kind in ["ppo", "sft", "reward_model", "dpo"] {
        let set = "--set algo.optimizer.learning_rate=1e38 --set guards.on_alarm=rollback";
        let output = place.command(&format!("train {kind}.toml --out {kind} {set}")).output().unwrap();
        let (told, error) = (String::from_utf8_lossy(&output.stdout), crate::place::said(&output));
        assert_eq!(output.status.code(), Some(1), "{kind}: {error}");
        let back = told.matches("guard: back to the last healthy checkpoint").count();
        assert_eq!(back, 3, "{kind}: {told}");
        assert!(
            error.contains(&format!("its last healthy checkpoint is `{kind}/checkpoint/00000000")),
            "{error}"
        );
    }
}

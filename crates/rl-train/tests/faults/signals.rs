//! SIGTERM and Ctrl-C: the run saves within one update and goes on as if nothing had been.

use crate::place::{Place, RUNS, signal};

/// Updates of fifty milliseconds and more: long beside the moment that the listening thread needs to wake up, even on a
/// machine that has other things to do.
fn slowly(kind: &str) -> &str {
    match kind {
        "ppo" => "--set total_steps=640 --set algo.epochs=80",
        "trpo" => "--set total_steps=640 --set algo.value_epochs=200",
        "dqn" => "--set total_steps=640 --set algo.gradient_steps=200",
        "sft" => "--set total_steps=320 --set algo.batch=20",
        "reward_model" | "dpo" => "--set data.batch=30 --set total_steps=360",
        "rlhf_texts" => "--set algo.epochs=10",
        "rlhf_world" => "--set total_steps=1280 --set algo.epochs=200",
        _ => unreachable!("a new kind of run"),
    }
}

#[test]
fn a_polite_signal_is_obeyed_within_one_update_by_every_kind_of_run() {
    let place = Place::new();
    for (i, (kind, ..)) in RUNS.iter().enumerate() {
        let (name, set) = (["-TERM", "-INT"][i % 2], slowly(kind));
        place.succeeds(&format!("train {kind}.toml --out {kind}-whole {set}"));
        let (out, total) = (format!("{kind}-told"), place.rows(&format!("{kind}-whole")));
        let mut child = place.start(&format!("train {kind}.toml --out {out} {set}"));
        place.wait_for(&out, total / 2);
        // It stands still while it is told, so that its updates can be counted.
        signal(&child, "-STOP");
        let before = place.rows(&out);
        signal(&child, name);
        signal(&child, "-CONT");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{kind} {name}");
        let after = place.rows(&out);
        assert!(before <= after && after <= before + 1, "{kind} {name}: {before} updates became {after}");
        place.succeeds(&format!("train --resume {out}"));
        place.assert_same(&format!("{kind}-whole"), &out);
    }
}

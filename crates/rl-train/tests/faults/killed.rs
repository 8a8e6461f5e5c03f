//! SIGKILL at random moments of a run: while it starts, collects, learns, evaluates, writes, or ends.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::place::{Place, RUNS, checkpoints};

/// Kills of each kind of run.
fn kills() -> usize {
    if std::env::var_os("RL_SLOW").is_some() { 50 } else { 3 }
}

/// Kills runs of `kind` until `kills` are spent; each goes on, is perhaps killed again, and ends like the undisturbed one.
fn survives(kind: &str, kills: usize) {
    let place = Place::new();
    let started = Instant::now();
    place.succeeds(&format!("train {kind}.toml --out whole"));
    let length = started.elapsed().as_secs_f64();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut killed, mut lives, mut moments) = (0, 0, vec![]);
    while killed < kills {
        lives += 1;
        let out = format!("life-{lives}");
        loop {
            // Before the first checkpoint there is nothing to go on with: whoever wants the run starts it anew.
            let line = match checkpoints(&place.path(&out).join("checkpoint")).is_empty() {
                false => format!("train --resume {out}"),
                true => {
                    let _ = fs::remove_dir_all(place.path(&out));
                    format!("train {kind}.toml --out {out}")
                }
            };
            if killed == kills {
                place.succeeds(&line);
                break;
            }
            let mut child = place.start(&line);
            let lives_for = rng.random_range(0.0..length);
            let end = Instant::now() + Duration::from_secs_f64(lives_for);
            let ended = loop {
                match child.try_wait().unwrap() {
                    None if Instant::now() < end => sleep(Duration::from_micros(500)),
                    ended => break ended,
                }
            };
            if let Some(status) = ended {
                assert!(
                    status.success(),
                    "{out} failed by itself after {killed} kills: `{line}` says {status}"
                );
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
            moments.push(place.rows(&out));
        }
        place.assert_same("whole", &out);
        fs::remove_dir_all(place.path(&out)).unwrap();
    }
    println!("{kind}: {killed} kills in {lives} runs of {length:.1} s, after updates {moments:?}");
}

macro_rules! survivors {
    ($($name:ident: $kind:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            survives($kind, kills());
        })*

        #[test]
        fn every_kind_is_killed() {
            assert_eq!([$($kind),*], RUNS.map(|(name, ..)| name));
        }
    };
}

survivors![
    a_killed_ppo_run_ends_as_if_it_had_not_been: "ppo",
    a_killed_trpo_run_ends_as_if_it_had_not_been: "trpo",
    a_killed_dqn_run_ends_as_if_it_had_not_been: "dqn",
    a_killed_sft_run_ends_as_if_it_had_not_been: "sft",
    a_killed_reward_model_run_ends_as_if_it_had_not_been: "reward_model",
    a_killed_dpo_run_ends_as_if_it_had_not_been: "dpo",
    a_killed_rlhf_run_on_texts_ends_as_if_it_had_not_been: "rlhf_texts",
    a_killed_rlhf_run_in_the_token_world_ends_as_if_it_had_not_been: "rlhf_world",
];

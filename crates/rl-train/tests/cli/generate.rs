//! `rl-train generate`: a folder that is a model, and folders that are none.

use std::path::PathBuf;

use super::{Place, text};

/// `RL_DATA_DIR/models/stories260K-hf`, or a line that says what is skipped.
fn stories() -> Option<PathBuf> {
    let folder = std::env::var_os("RL_DATA_DIR").map(|dir| PathBuf::from(dir).join("models/stories260K-hf"));
    let there = folder.filter(|folder| folder.is_dir());
    if there.is_none() {
        println!("skipped: RL_DATA_DIR names no folder with models/stories260K-hf");
    }
    there
}

#[test]
fn a_story_is_told_and_told_again_from_the_same_seed() {
    let Some(model) = stories() else { return };
    let place = Place::new();
    let tell = |options: &str| {
        let mut command = place.command(&format!("generate --max-tokens 20 {options}"));
        let out = command.arg(&model).args(["--prompt", "Once upon a time"]).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let greedy = tell("--temperature 0");
    assert!(greedy.starts_with("Once upon a time, there was a little girl named Lily."), "{greedy}");
    assert_eq!(tell("--seed 3"), tell("--seed 3"));
    assert_ne!(tell("--seed 3"), tell("--seed 4"));
    assert_eq!(tell("--top-k 1 --device ndarray"), greedy);
    // An end of one's own, by spelling and by number, and a least length that keeps it away.
    let comma = tell("--temperature 0 --stop ,");
    assert_eq!(comma.trim_end(), "Once upon a time,");
    assert_ne!(tell("--temperature 0 --stop , --min-tokens 5"), comma);
    let fails = |options: &str| {
        let mut command = place.command(&format!("generate --max-tokens 20 {options}"));
        let out = command.arg(&model).args(["--prompt", "Once upon a time"]).output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        text(&out.stderr)
    };
    let error = fails("--stop 512");
    assert!(error.contains("--stop 512") && error.contains("below 512"), "{error}");
    let error = fails("--min-tokens 21");
    assert!(error.contains("`--min-tokens` is 21") && error.contains("at most 20 tokens"), "{error}");
}

#[test]
fn what_is_no_model_is_named() {
    let place = Place::new();
    let error = place.fails("generate nowhere --prompt x", 1);
    assert!(error.contains("no model in `nowhere`") && error.contains("config.json"), "{error}");
    let error = place.fails("generate nowhere --temperature -1", 2);
    assert!(error.contains("--temperature") && error.contains("[0, ∞)"), "{error}");
    let error = place.fails("generate nowhere --top-p 2", 2);
    assert!(error.contains("--top-p") && error.contains("(0, 1]"), "{error}");
}

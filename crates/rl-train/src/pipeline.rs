//! `rl-train train rlhf`: the whole of RLHF on the built-in stories, without a download.
//!
//! ```text
//! base          a language model from scratch                               sft-stories
//! preferences   two answers of it to an opening, judged by the true reward  preferences.jsonl, openings.txt
//! reward        a reward model of these: the proxy                          rm-stories
//! ppo           RLHF-PPO against the proxy, KL held at a target             rlhf-stories
//! dpo           DPO on the same comparisons                                 dpo-stories
//! table         all of them on openings that no comparison has              table.md, table.json
//! ```
//!
//! Each stage of training is a run like any other, in a folder of its own, made from a shipped config with changes; it
//! is skipped where it is done and gone on with where it was interrupted.

mod exam;
mod stages;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::cli::{Changes, TrainArgs};
use crate::config::error::ConfigError;
use crate::{Outcome, process, train};
use stages::{STAGES, Size};

/// The file that makes a folder one of these, and says what was asked.
const PLAN: &str = "pipeline.json";

/// What was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    size: Size,
    seed: i64,
    device: Option<String>,
    /// `STAGE.KEY=VALUE`, as given.
    set: Vec<String>,
}

/// Names that `train` takes beside those of configs, the size that each asks for, and what each does.
pub const PIPELINES: [(&str, Size, &str); 2] = [
    ("rlhf", Size::Full, "language model, preferences, reward model, PPO and DPO, one table; minutes"),
    ("rlhf-tiny", Size::Tiny, "the same in seconds, which shows that it works and proves nothing"),
];

/// The size that a config's name asks for.
pub fn named(config: Option<&str>) -> Option<Size> {
    PIPELINES.iter().find(|(name, ..)| Some(*name) == config).map(|(_, size, _)| *size)
}

/// Whether `run` is a folder of this kind.
pub fn is_one(run: &Path) -> bool {
    run.join(PLAN).is_file()
}

/// All stages in a new folder.
///
/// # Errors
/// [`ConfigError`] before anything was written; otherwise what stopped a stage.
pub fn new(size: Size, args: &TrainArgs) -> Result<Outcome> {
    refuse_views(args)?;
    let Changes { device, set, seed } = &args.changes;
    for text in set {
        let stage = text.split('.').next().unwrap_or_default();
        if !STAGES.contains(&stage) {
            let what = format!(
                "a setting of one of its stages is asked for, such as `ppo.seed=2`; they are {STAGES:?}"
            );
            return Err(ConfigError::Value { key: text.clone(), what }.into());
        }
    }
    let plan = Plan { size, seed: seed.unwrap_or(1), device: device.clone(), set: set.clone() };
    let folder = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("runs/rlhf-seed{}-{}", plan.seed, process::timestamp())),
    };
    if folder.is_file() || fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let what = "is not empty; choose another folder for `--out`, or go on with `--resume`".to_owned();
        return Err(ConfigError::OutNotEmpty { path: folder, what }.into());
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    write(&folder, PLAN, &(serde_json::to_string_pretty(&plan)? + "\n"))?;
    go(&folder, &plan)
}

/// What is left of the stages in `folder`.
///
/// # Errors
/// If its plan cannot be read; otherwise what stopped a stage.
pub fn resumed(folder: &Path, args: &TrainArgs) -> Result<Outcome> {
    refuse_views(args)?;
    let path = folder.join(PLAN);
    let damaged = || format!("`{}` is damaged", path.display());
    let plan = serde_json::from_str(&fs::read_to_string(&path)?).with_context(damaged)?;
    go(folder, &plan)
}

/// What a run can show or share, five runs one after the other cannot.
fn refuse_views(args: &TrainArgs) -> Result<(), ConfigError> {
    let given = [
        ("--devices", args.devices.is_some()),
        ("--tui", args.tui),
        ("--serve", args.serve),
        ("--log", args.log.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(ConfigError::Value {
            key: option.to_owned(),
            what: "belongs to a single run; `rlhf` is several: leave it out, or look at a stage with `rl-train watch`"
                .to_owned(),
        }),
        None => Ok(()),
    }
}

fn go(folder: &Path, plan: &Plan) -> Result<Outcome> {
    for &stage in STAGES {
        if stage == "reward" && !folder.join(exam::PREFERENCES).is_file() {
            say!("== preferences");
            exam::write_preferences(folder, plan.size, plan.seed as u64)?;
        }
        say!("== {stage}");
        if train_stage(folder, plan, stage)? == Outcome::Interrupted {
            say!("the pipeline goes on with: rl-train train --resume {}", folder.display());
            return Ok(Outcome::Interrupted);
        }
    }
    let table = exam::table(folder, plan.size)?;
    write(folder, "table.json", &(serde_json::to_string_pretty(&table)? + "\n"))?;
    let text = exam::markdown(&table);
    write(folder, "table.md", &text)?;
    say!("\n{text}\npipeline folder: {}", folder.display());
    Ok(Outcome::Done)
}

/// Trains a stage, whatever is left of it.
fn train_stage(folder: &Path, plan: &Plan, stage: &str) -> Result<Outcome> {
    let out = folder.join(stage);
    if out.join("summary.json").is_file() {
        say!("done before: `{}`", out.display());
        return Ok(Outcome::Done);
    }
    let plain = |config, changes, out, resume| TrainArgs {
        config,
        changes,
        out,
        resume,
        devices: None,
        tui: false,
        serve: false,
        log: None,
    };
    let unchanged = Changes { device: None, set: vec![], seed: None };
    let args = if out.is_dir() {
        plain(None, unchanged, None, Some(out.clone()))
    } else {
        // Whole paths, so that a stage can be gone on with from anywhere.
        let (config, mut set) = stages::recipe(stage, plan.size, &std::path::absolute(folder)?);
        let own = plan.set.iter().filter_map(|text| text.strip_prefix(stage)?.strip_prefix('.'));
        set.extend(own.map(str::to_owned));
        let changes = Changes { device: plan.device.clone(), set, seed: Some(plan.seed) };
        plain(Some(config.to_owned()), changes, Some(out.clone()), None)
    };
    let outcome = train::train(&args).with_context(|| format!("stage `{stage}`"))?;
    if outcome == Outcome::Done {
        ensure!(out.join("model").is_dir(), "stage `{stage}` left no model in `{}`", out.display());
    }
    Ok(outcome)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    let unwritten = || format!("cannot write `{}`", path.display());
    // A name that is there is a file that is whole.
    let part = folder.join(format!(".{name}.part"));
    fs::write(&part, text).with_context(unwritten)?;
    fs::rename(&part, &path).with_context(unwritten)
}

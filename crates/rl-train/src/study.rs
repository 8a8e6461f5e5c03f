//! `rl-train study`: an experiment with several runs, seeds and intervals, and what it says in words.
//!
//! A study is a function from a [`Plan`] to [`Results`]; this file finds it by name and writes what came of it:
//!
//! ```text
//! findings.md      what held and what did not, computed from the numbers
//! results.json     the table, the findings, size, seeds and seconds
//! results.csv      the table alone; an interval is three columns
//! *.svg            the pictures
//! ```

mod beta_target;
mod dpo_consistency;
mod fit;
mod frontier;
mod guards;
mod kakade_plateau;
mod kl_controller;
mod kl_estimators;
mod overoptimization;
mod picture;
mod ppo_table;
mod results;
mod runs;
mod token;
mod trust_region;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cli::StudyArgs;
use crate::config::error::{ConfigError, hint, listed};
use crate::device::ChosenDevice;
use crate::{Outcome, device, process};
use results::Results;

/// A study that can be asked for.
pub struct Study {
    /// Its name.
    pub name: &'static str,
    /// What it asks.
    pub about: &'static str,
    /// Seeds of its full and of its quick size.
    seeds: [u64; 2],
    run: fn(&Plan) -> Result<Results>,
}

/// Every study.
pub const STUDIES: &[Study] = &[
    Study {
        name: "kl-estimators",
        about: "bias and noise of k1, k2 and k3 and of their gradients, exactly",
        seeds: [20, 3],
        run: kl_estimators::run,
    },
    Study {
        name: "kl-controller",
        about: "does the adaptive β bring KL to 1, 2, 4 and 6 nats, wherever β starts?",
        seeds: [3, 1],
        run: kl_controller::run,
    },
    Study {
        name: "frontier",
        about: "the share of the best gold at 1 to 5 nats that each method of RLHF reaches",
        seeds: [5, 1],
        run: frontier::run,
    },
    Study {
        name: "overoptimization",
        about: "gold and proxy against √KL: PPO without, with fixed and with adaptive β, best-of-n, DPO",
        seeds: [10, 2],
        run: overoptimization::run,
    },
    Study {
        name: "guards",
        about: "what ensembles, normalisation and a KL budget leave of gold in the end",
        seeds: [10, 2],
        run: guards::run,
    },
    Study {
        name: "dpo-consistency",
        about: "how close DPO comes to π* with the number of comparisons",
        seeds: [5, 2],
        run: dpo_consistency::run,
    },
    Study {
        name: "kakade-plateau",
        about: "where the plain gradient stalls and the natural one does not",
        seeds: [50, 5],
        run: kakade_plateau::run,
    },
    Study {
        name: "trust-region",
        about: "which of REINFORCE, NPG, TRPO and PPO survive three and ten times their step on CartPole",
        seeds: [5, 1],
        run: trust_region::run,
    },
    Study {
        name: "ppo-table",
        about: "the eleven settings of PPO's Table 1 on CartPole, Acrobot, Pendulum and the gridworld",
        seeds: [5, 1],
        run: ppo_table::run,
    },
    Study {
        name: "beta-target",
        about: "how the KL target of PPO's penalty trades return against KL",
        seeds: [5, 1],
        run: beta_target::run,
    },
];

/// How much of a study is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// What its findings speak of.
    Full,
    /// Seconds: enough to see that everything works, too little to claim anything.
    Quick,
}

/// What a study is to do.
pub struct Plan {
    /// How much.
    pub size: Size,
    /// How often, each time with another seed.
    pub seeds: u64,
    /// Where tensors live.
    pub device: ChosenDevice,
}

impl Plan {
    /// The number for this size.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        match self.size {
            Size::Full => full,
            Size::Quick => quick,
        }
    }

    /// Its seeds: 1, 2, …
    pub fn seeds(&self) -> std::ops::RangeInclusive<u64> {
        1..=self.seeds
    }
}

/// What `results.json` says of the study itself.
#[derive(Serialize)]
struct Record {
    study: &'static str,
    size: Size,
    seeds: u64,
    version: &'static str,
    git_revision: Option<String>,
    wall_s: f64,
    cpu_s: Option<f64>,
}

/// Does a study and writes its folder.
///
/// # Errors
/// [`ConfigError`] before anything was done; otherwise what stopped it.
pub fn study(args: &StudyArgs) -> Result<Outcome> {
    let study = find(&args.name)?;
    let size = if args.quick { Size::Quick } else { Size::Full };
    let seeds = args.seeds.unwrap_or(study.seeds[usize::from(size == Size::Quick)]);
    let folder = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("runs/study-{}-{}", study.name, process::timestamp())),
    };
    if folder.is_file() || fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let what = "is not empty; choose another folder for `--out`, or empty it".to_owned();
        return Err(ConfigError::OutNotEmpty { path: folder, what }.into());
    }
    let plan = Plan { size, seeds, device: device::choose("flex")? };
    say!("{}: {}", study.name, study.about);
    let (started, cpu) = (Instant::now(), process::cpu_seconds());
    let results = (study.run)(&plan)?;
    let record = Record {
        study: study.name,
        size,
        seeds,
        version: env!("CARGO_PKG_VERSION"),
        git_revision: process::git_revision(),
        wall_s: started.elapsed().as_secs_f64(),
        cpu_s: process::cpu_seconds().zip(cpu).map(|(now, then)| now - then),
    };
    write(&folder, study, &record, &results)?;
    for finding in &results.findings {
        say!("{}", finding.sentence());
    }
    say!("{:.1} s; study folder: {}", record.wall_s, folder.display());
    Ok(Outcome::Done)
}

/// The study called `name`.
fn find(name: &str) -> Result<&'static Study, ConfigError> {
    let names: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| ConfigError::NoSuchStudy {
        name: name.to_owned(),
        hint: hint(name, &names),
        known: listed(&names),
    })
}

fn write(folder: &Path, study: &Study, record: &Record, results: &Results) -> Result<()> {
    let unwritten = || format!("cannot write the study's folder `{}`", folder.display());
    fs::create_dir_all(folder).with_context(unwritten)?;
    let mut all = serde_json::to_value(record)?;
    all["rows"] = results.table.json();
    all["findings"] = serde_json::to_value(&results.findings)?;
    let files = [
        ("results.json", serde_json::to_string_pretty(&all)? + "\n"),
        ("results.csv", results.table.csv()),
        ("findings.md", findings(study, record, results)),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).with_context(unwritten)?;
    }
    for picture in &results.pictures {
        let path = folder.join(format!("{}.svg", picture.name));
        fs::write(path, picture.svg()?).with_context(unwritten)?;
    }
    Ok(())
}

/// `findings.md`.
fn findings(study: &Study, record: &Record, results: &Results) -> String {
    let mut text = format!("# {}\n\n{}.\n\n", study.name, study.about.trim_end_matches('?'));
    if record.size == Size::Quick {
        text += "A quick size: it shows that the study works, and proves nothing.\n\n";
    }
    text += &format!("{} seeds; intervals are 95% percentile bootstraps over them.\n\n", record.seeds);
    for finding in &results.findings {
        text += &format!("* {}\n", finding.sentence());
    }
    for note in &results.notes {
        text += &format!("\n{note}\n");
    }
    for picture in &results.pictures {
        text += &format!("\n![{}]({}.svg)\n", picture.title, picture.name);
    }
    text
}

//! `rl-train list`: what can be asked for.

use anyhow::Result;

use crate::Outcome;
use crate::config::ALGORITHMS;
use crate::config::shipped::{CONFIGS, about};
use crate::device::DEVICES;
use crate::pipeline::PIPELINES;
use crate::study::STUDIES;
use crate::world::{TaskKind, World};

/// Prints algorithms, environments, devices, configs, pipelines and studies.
///
/// # Errors
/// None.
pub fn list() -> Result<Outcome> {
    say!("algorithms (algo.kind)");
    for (name, what) in ALGORITHMS {
        say!("  {name:<28}{what}");
    }
    say!("\nenvironments (task.kind)");
    for (kind, what) in TaskKind::ALL {
        let actions = match kind.world() {
            World::Discrete(_) => "discrete",
            World::Continuous(_) => "continuous",
            World::Tokens => "tokens",
            World::Texts | World::Corpus => "texts",
        };
        say!("  {:<28}{actions:<12}{what}", kind.name());
    }
    say!("\ndevices (device, --device)");
    for (name, built, what) in DEVICES {
        if built {
            say!("  {name:<28}{what}");
        } else {
            say!(
                "  {name:<28}{what}; not in this build: cargo run --release -p rl-train --features {name} -- …"
            );
        }
    }
    say!("\nconfigs ({} train NAME); the first is the default", crate::called());
    for (name, text) in CONFIGS {
        say!("  {name:<28}{}", about(text));
    }
    say!("\npipelines ({} train NAME), without a download", crate::called());
    for (name, _, what) in PIPELINES {
        say!("  {name:<28}{what}");
    }
    say!("\nstudies ({} study NAME)", crate::called());
    for study in STUDIES {
        say!("  {:<28}{}", study.name, study.about);
    }
    Ok(Outcome::Done)
}

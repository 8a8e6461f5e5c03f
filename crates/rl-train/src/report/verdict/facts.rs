//! What a run's config intends, as far as a judgement depends on it.

use crate::recording::{Recording, setting};
use toml::{Table, Value};

/// Whether values can predict anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Critic {
    /// They should.
    #[default]
    Expected,
    /// Observations say nothing about returns (a bandit, the KL toy).
    Blind,
}

/// A KL that a controller holds.
#[derive(Debug, Clone, PartialEq)]
pub struct KlRule {
    /// The target, nats; none with a fixed β.
    pub target: Option<f64>,
    /// By what factor the rule lets KL exceed the target before it acts.
    pub band: f64,
    /// The highest β it may set.
    pub max: Option<f64>,
    /// Where the run file has it.
    pub key: &'static str,
}

/// What a run's config intends.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The controller of KL(π ‖ π_ref) in an RLHF run, of KL(π_old ‖ π) in another.
    pub kl: Option<KlRule>,
    /// Whether values can predict anything.
    pub critic: Critic,
    /// Epochs per update.
    pub epochs: Option<f64>,
    /// Steps of the whole run.
    pub total_steps: Option<u64>,
    /// Whether the run has its summary.
    pub finished: bool,
    /// The guard that ended it.
    pub stopped_by: Option<String>,
}

impl Facts {
    /// The facts of a recorded run.
    pub fn of(run: &Recording) -> Self {
        let stopped_by = run.summary.as_ref().and_then(|summary| summary.get("stopped_by")?.as_str());
        Self {
            finished: run.summary.is_some(),
            stopped_by: stopped_by.map(str::to_owned),
            ..Self::intended(&run.config)
        }
    }

    /// The facts of a config.
    pub fn intended(config: &Table) -> Self {
        let get = |key: &str| setting(config, key);
        let places = ["algo.rollout.kl", "algo.kl"];
        let kl = places.into_iter().find_map(|key| Some((key, get(key)?.as_table()?)));
        let kl = kl.map(|(key, rule)| KlRule {
            target: rule.get("target").and_then(float),
            band: match rule.get("kind").and_then(Value::as_str) {
                Some("band") => 2.0,
                _ => 1.5,
            },
            max: rule.get("max").and_then(float),
            key,
        });
        let task = get("task.kind").and_then(Value::as_str);
        let blind = matches!(task, Some("bandit" | "kl_toy"));
        Self {
            kl,
            critic: if blind { Critic::Blind } else { Critic::Expected },
            epochs: get("algo.epochs").and_then(float),
            total_steps: get("total_steps")
                .and_then(Value::as_integer)
                .and_then(|steps| steps.try_into().ok()),
            finished: false,
            stopped_by: None,
        }
    }
}

fn float(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

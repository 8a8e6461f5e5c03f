//! What a run's numbers say, in words: pure functions from metrics to findings.
//!
//! A metric is judged by its [`Trend`], at most thirty-two means over the run, so that one bad update is no fault and a
//! million rows cost no more than ten. Every finding says what is wrong, since when, by which numbers, and what to try.
//! The bounds are those of `docs/metrics.md`.

mod divergence;
mod facts;
mod learning;
mod progress;
#[cfg(test)]
mod tests;

use crate::recording::{Columns, Recording, Trend};
pub use facts::{Critic, Facts, KlRule};

/// What can be wrong with a run: the worst first, and a cause before what it leads to. The words of each are its
/// [`Fault::title`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A number is not one.
    NotFinite,
    /// The score rises while gold falls.
    CheatingRewardModel,
    /// The policy is certain, and had learnt nothing by then.
    EntropyGone,
    /// Updates change nothing.
    DeadLearningRate,
    /// Values predict nothing.
    CriticNotLearning,
    /// What was learnt is lost, or all responses are alike.
    Collapsing,
    /// KL is beyond all bounds.
    ExplodingKl,
    /// Updates change too much.
    LearningRateTooHigh,
    /// The KL target is not held.
    KlAboveTarget,
    /// What was learnt is lost and found again.
    Unstable,
    /// Nothing is gained.
    NotLearning,
    /// Nothing more is gained: no fault if it is good enough.
    Plateaued,
    /// Smaller things worth knowing.
    Remark,
}

impl Fault {
    /// Its name in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::NotFinite => "Numbers are no longer finite",
            Self::CheatingRewardModel => "Cheating its reward model",
            Self::Collapsing => "Collapsing",
            Self::ExplodingKl => "Exploding KL",
            Self::EntropyGone => "Entropy gone",
            Self::DeadLearningRate => "Dead learning rate",
            Self::LearningRateTooHigh => "Learning rate too high",
            Self::CriticNotLearning => "Critic not learning",
            Self::KlAboveTarget => "KL above target",
            Self::Unstable => "Unstable",
            Self::NotLearning => "Not learning",
            Self::Plateaued => "Plateaued",
            Self::Remark => "Worth knowing",
        }
    }

    /// Whether a run with it is sick; the others are remarks.
    pub fn is_fault(self) -> bool {
        self < Self::Plateaued
    }
}

/// One thing that the numbers say.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is.
    pub fault: Fault,
    /// The update since which it shows, where that can be told.
    pub since: Option<u64>,
    /// The numbers.
    pub evidence: String,
    /// What to try.
    pub cure: String,
}

/// The judgement on a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// In a word or three: "Healthy", or the worst fault.
    pub title: String,
    /// In a sentence: how the run went.
    pub course: String,
    /// Everything found, the worst first.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Judges a recorded run.
    pub fn of(run: &Recording) -> Self {
        judge(&Facts::of(run), &run.columns)
    }

    /// The worst fault; `None` if the run is healthy.
    pub fn fault(&self) -> Option<Fault> {
        self.findings.first().map(|finding| finding.fault).filter(|fault| fault.is_fault())
    }
}

/// Judges a run by its metrics and by what its config intends.
pub fn judge(facts: &Facts, columns: &Columns) -> Verdict {
    let look = Look { facts, columns };
    let mut findings: Vec<Finding> = [
        progress::not_finite,
        progress::cheating,
        progress::collapsing,
        divergence::exploding_kl,
        learning::entropy_gone,
        learning::dead_learning_rate,
        learning::learning_rate_too_high,
        learning::critic_not_learning,
        divergence::kl_above_target,
        progress::unstable,
        progress::level,
        divergence::kl_below_target,
    ]
    .iter()
    .filter_map(|rule| rule(&look))
    .collect();
    settle(&mut findings);
    if let Some(reason) = &facts.stopped_by {
        findings
            .push(remark(format!("A guard ended the run: `{reason}`."), "See the guard's words in the log."));
    } else if !facts.finished && columns.len() > 0 {
        let (step, total) = (columns.steps[columns.len() - 1], facts.total_steps);
        let of = total.map_or(String::new(), |total| format!(" of {total}"));
        findings.push(remark(
            format!("The run has no summary yet: it is at step {step}{of}."),
            "If it is not running any more, go on with `rl-train train --resume`.",
        ));
    }
    findings.sort_by_key(|finding| finding.fault);
    let title = match findings.first() {
        _ if columns.len() == 0 => "Nothing to judge yet",
        Some(finding) if finding.fault.is_fault() => finding.fault.title(),
        _ => "Healthy",
    };
    Verdict { title: title.to_owned(), course: progress::course(&look), findings }
}

/// Drops what only says again what a worse finding has said.
fn settle(findings: &mut Vec<Finding>) {
    let has = |fault| findings.iter().any(|finding: &Finding| finding.fault == fault);
    let explained = |fault: Fault| match fault {
        Fault::KlAboveTarget => has(Fault::ExplodingKl),
        Fault::CriticNotLearning => has(Fault::DeadLearningRate),
        Fault::Unstable => has(Fault::Collapsing),
        Fault::Plateaued => findings.iter().any(|finding| finding.fault.is_fault()),
        // A policy that cannot move learns nothing.
        Fault::NotLearning => {
            has(Fault::DeadLearningRate) || has(Fault::EntropyGone) || has(Fault::CriticNotLearning)
        }
        _ => false,
    };
    let kept: Vec<Finding> = findings.iter().filter(|finding| !explained(finding.fault)).cloned().collect();
    *findings = kept;
}

fn remark(evidence: String, cure: &str) -> Finding {
    Finding { fault: Fault::Remark, since: None, evidence, cure: cure.to_owned() }
}

/// What a rule looks at.
struct Look<'a> {
    facts: &'a Facts,
    columns: &'a Columns,
}

impl Look<'_> {
    fn trend(&self, name: &str) -> Option<Trend> {
        Trend::of(self.columns, name)
    }

    /// The trend of a metric with at least `points` points: enough for a judgement.
    fn long(&self, name: &str, points: usize) -> Option<Trend> {
        self.trend(name).filter(|trend| trend.points.len() >= points)
    }
}

/// A number as people read it: four significant digits.
pub fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let magnitude = x.abs().log10().floor();
    if !x.is_finite() {
        x.to_string()
    } else if !(-4.0..7.0).contains(&magnitude) {
        format!("{x:.2e}")
    } else {
        let digits = (3.0 - magnitude).clamp(0.0, 6.0) as usize;
        let text = format!("{x:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

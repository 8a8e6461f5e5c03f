//! What a run is for: its return or reward, how it rose, and whether it was kept.

use super::{Fault, Finding, Look, number};
use crate::recording::{Point, Trend, trend};

/// The quantity that a run is judged by.
pub struct Goal {
    /// In words.
    pub what: &'static str,
    /// Over the run.
    pub trend: Trend,
}

/// Goals, in the order in which they are looked for.
const GOALS: [(&str, &str); 5] = [
    ("charts/episodic_return", "the return"),
    ("objective/rlhf_reward", "score − β·KL"),
    ("objective/scores", "the score"),
    ("rewards/margins", "the margin between chosen and rejected"),
    ("eval/return_mean", "the evaluated return"),
];

/// The goal of a run; `None` with too few points to judge.
pub fn goal(look: &Look) -> Option<Goal> {
    GOALS.iter().find_map(|&(name, what)| Some(Goal { what, trend: look.long(name, 6)? }))
}

impl Goal {
    /// From the first eighth to the best point.
    fn rise(&self) -> f64 {
        self.trend.best().mean - self.trend.first()
    }

    /// Whether it rose beyond its noise and stayed so.
    pub fn gained(&self) -> bool {
        let (first, last) = (self.trend.first(), self.trend.last());
        let size = first.abs().max(last.abs());
        last - first > 3.0 * self.noise() && last - first > 0.02 * size
    }

    /// The noise of a mean of some points.
    fn noise(&self) -> f64 {
        self.trend.scatter() / (self.trend.points.len() as f64 / 4.0).sqrt()
    }
}

/// How the run went, in a sentence.
pub fn course(look: &Look) -> String {
    let Some(goal) = goal(look) else {
        return match look.columns.len() {
            0 => "It has written no metrics.".to_owned(),
            rows => format!("{rows} updates are too few for a judgement."),
        };
    };
    let (first, last, best) = (goal.trend.first(), goal.trend.last(), goal.trend.best());
    let mut text = format!(
        "Over the run {} went from {} to {}, at its best {} (update {}).",
        goal.what,
        number(first),
        number(last),
        number(best.mean),
        best.update
    );
    if let (Some(kl), Some(target)) =
        (look.trend("objective/kl"), look.facts.kl.as_ref().and_then(|kl| kl.target))
    {
        text += &format!(
            " KL(π ‖ π_ref) ended at {} nats against a target of {}.",
            number(kl.last()),
            number(target)
        );
    }
    if let Some(gold) = look.trend("objective/gold") {
        text += &format!(" Gold went from {} to {}.", number(gold.first()), number(gold.last()));
    }
    text
}

/// A number is infinite or not one.
pub fn not_finite(look: &Look) -> Option<Finding> {
    let bad = look.columns.each().filter_map(|(name, column)| {
        let at = column.values.iter().position(|value| !value.is_finite())?;
        Some((column.rows[at], name, column.values[at]))
    });
    let (row, name, value) = bad.min_by_key(|(row, ..)| *row)?;
    let since = look.columns.updates[row as usize];
    Some(Finding {
        fault: Fault::NotFinite,
        since: Some(since),
        evidence: format!("`{name}` is {value} at update {since}, the first number that is none."),
        cure: "Lower the learning rate and `algo.max_grad_norm`, scale rewards (`normalize.reward_clip`), and look at \
               the rewards of that update."
            .to_owned(),
    })
}

/// The score rises while gold falls.   Gao 2022, *Scaling laws for reward model overoptimization*
pub fn cheating(look: &Look) -> Option<Finding> {
    let (score, gold) = (look.long("objective/scores", 6)?, look.long("objective/gold", 6)?);
    let best = gold.best();
    let at = gold.points.iter().position(|point| point == &best)?;
    let (fallen, gained) = (best.mean - gold.last(), best.mean - gold.first());
    let rise = score.last() - score.points.get(at)?.mean;
    let lost = fallen > (0.25 * gained).max(3.0 * gold.scatter()) && fallen > 0.05;
    (lost && rise > 0.0 && score.last() > score.first()).then(|| Finding {
        fault: Fault::CheatingRewardModel,
        since: Some(best.update),
        evidence: format!(
            "Since update {} the score rose from {} to {} while gold, which it stands for, fell from {} to {}.",
            best.update,
            number(score.points[at].mean),
            number(score.last()),
            number(best.mean),
            number(gold.last())
        ),
        cure: "Stop at the best gold; make KL dearer or lower its target (`algo.rollout.kl`); train the reward model on \
               these responses."
            .to_owned(),
    })
}

/// What was learnt is lost for good, or all responses are alike.
pub fn collapsing(look: &Look) -> Option<Finding> {
    alike(look).or_else(|| lost(look))
}

/// Responses have narrowed to a few.
fn alike(look: &Look) -> Option<Finding> {
    let mut words = vec![];
    let mut since: Option<u64> = None;
    let mut note = |name: &str, what: &str, sick: &dyn Fn(f64, f64) -> bool| {
        let Some(trend) = look.long(name, 6) else { return };
        let first = trend.points[0].mean;
        if let Some((update, share)) = trend.since(|now| sick(first, now)).filter(|(_, share)| *share >= 0.1)
        {
            let _ = share;
            since = Some(since.map_or(update, |since| since.min(update)));
            words.push(format!("{what} went from {} to {}", number(first), number(trend.last())));
        }
    };
    note("responses/token_entropy", "the entropy of the next token", &|first, now| now < 0.2 * first);
    note("responses/distinct_2", "the share of different token pairs", &|first, now| now < 0.4 * first);
    note("responses/repetition", "repetition within a response", &|first, now| now > first + 0.3);
    // One symptom alone may be the task's answer.
    (words.len() >= 2).then(|| Finding {
        fault: Fault::Collapsing,
        since,
        evidence: format!("Responses are more and more alike: {}.", words.join("; ")),
        cure: "Raise β or lower the KL target (`algo.rollout.kl`), make fewer epochs with a smaller learning rate, and \
               let a guard go back by itself: `guards.on_alarm = \"rollback\"`."
            .to_owned(),
    })
}

/// The return fell from its best by more than half of what was gained, and stayed there.
fn lost(look: &Look) -> Option<Finding> {
    let goal = goal(look)?;
    let (best, rise) = (goal.trend.best(), goal.rise());
    let bound = best.mean - 0.5 * rise;
    let (since, share) = goal.trend.since(|mean| mean < bound)?;
    (significant(&goal) && share >= 0.1 && best.update < since).then(|| Finding {
        fault: Fault::Collapsing,
        since: Some(since),
        evidence: format!(
            "{} had risen from {} to {} at update {}, and has been below {} since update {since}: {} at the end.",
            capitalised(goal.what),
            number(goal.trend.first()),
            number(best.mean),
            best.update,
            number(bound),
            number(trend::mean(&goal.trend.points[goal.trend.points.len() - 1..]))
        ),
        cure: "Let the learning rate fall over the run (`{ kind = \"linear\", from = …, to = 0.0 }`), keep `algo.clip`, \
               and go on from the best checkpoint (`checkpoint.keep`)."
            .to_owned(),
    })
}

/// A rise that is none of noise.
fn significant(goal: &Goal) -> bool {
    let size = goal.trend.first().abs().max(goal.trend.best().mean.abs());
    goal.rise() > 4.0 * goal.trend.scatter() && goal.rise() > 0.05 * size
}

/// What was learnt is lost and found again, twice or more.
pub fn unstable(look: &Look) -> Option<Finding> {
    let goal = goal(look)?;
    // From the lowest point, not from the first: a run may begin on a crest, and its waves are no smaller for that.
    let height = goal.trend.best().mean - goal.trend.worst().mean;
    let size = goal.trend.worst().mean.abs().max(goal.trend.best().mean.abs());
    let falls = falls(&goal.trend, 0.5 * height);
    // Thirty-two points of mere noise span five to seven times their scatter.
    (height > 7.0 * goal.trend.scatter() && height > 0.05 * size && falls.len() >= 2).then(|| Finding {
        fault: Fault::Unstable,
        since: falls.first().map(|fall| fall.update),
        evidence: format!(
            "{} fell by more than half of its range and came back {} times, first at update {}.",
            capitalised(goal.what),
            falls.len(),
            falls[0].update
        ),
        cure: "Lower the learning rate or let it fall, use more environments per update, or a smaller clip."
            .to_owned(),
    })
}

/// Where the trend fell by more than `depth` below its best so far and then regained most of it.
fn falls(trend: &Trend, depth: f64) -> Vec<Point> {
    let (mut best, mut low, mut found) = (f64::NEG_INFINITY, None::<Point>, vec![]);
    for point in &trend.points {
        match low {
            None if point.mean < best - depth => low = Some(*point),
            Some(fall) if point.mean > best - 0.4 * depth => {
                found.push(fall);
                low = None;
            }
            _ => {}
        }
        best = best.max(point.mean);
    }
    found
}

/// Nothing was gained at all, or nothing more for the second half of the run.
pub fn level(look: &Look) -> Option<Finding> {
    let goal = goal(look)?;
    let (third, last) = (trend::mean(goal.trend.quarter(2)), goal.trend.last());
    if goal.trend.points.len() >= 8 && !significant(&goal) && !goal.gained() {
        return Some(Finding {
            fault: Fault::NotLearning,
            since: look.columns.updates.first().copied(),
            evidence: format!(
                "{} was {} over the first eighth of the run and {} over its last quarter; its points scatter by {}.",
                capitalised(goal.what),
                number(goal.trend.first()),
                number(last),
                number(goal.trend.scatter())
            ),
            cure: "Train longer; if the reward is rare, use more environments or a shaped reward; try a learning rate \
                   three times as high, then a third."
                .to_owned(),
        });
    }
    let better = last - third > (2.0 * goal.noise()).max(0.03 * goal.rise().abs());
    if better {
        return None;
    }
    let near = goal.trend.best().mean - 0.1 * goal.rise();
    let since = goal.trend.points.iter().find(|point| point.mean >= near).map(|point| point.update);
    Some(Finding {
        fault: Fault::Plateaued,
        since,
        evidence: format!(
            "{} has been level since update {}: {} in the third quarter of the run, {} in the last.",
            capitalised(goal.what),
            since.unwrap_or_default(),
            number(third),
            number(last)
        ),
        cure: "If this is as good as the task allows, it is done, and a shorter run would do. Otherwise explore more \
               (entropy bonus), or change what the policy sees."
            .to_owned(),
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

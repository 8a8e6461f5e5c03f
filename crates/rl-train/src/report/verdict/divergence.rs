//! KL against what it is held to.

use super::{Fault, Finding, KlRule, Look, number};
use crate::recording::{Trend, trend};

/// A KL that is held, and where its β is.
struct Held {
    /// In words.
    what: &'static str,
    kl: Trend,
    beta: Option<Trend>,
    rule: KlRule,
    target: f64,
}

impl Held {
    fn of(look: &Look) -> Option<Self> {
        let rule = look.facts.kl.clone()?;
        let target = rule.target?;
        let rlhf = look.long("objective/kl", 4);
        let (what, kl, beta) = match rlhf {
            Some(kl) => ("KL(π ‖ π_ref) per response", kl, "objective/ref_coef"),
            None => ("KL(π_old ‖ π) per update", look.long("losses/kl", 4)?, "objective/kl_coef"),
        };
        Some(Self { what, kl, beta: look.trend(beta), rule, target })
    }

    fn at_cap(&self) -> Option<f64> {
        let (max, last) = (self.rule.max?, self.beta.as_ref()?.last());
        (last >= 0.99 * max).then_some(max)
    }

    fn evidence(&self) -> String {
        let (last, target) = (self.kl.last(), self.target);
        let beta = self.beta.as_ref().map_or(String::new(), |beta| match self.at_cap() {
            Some(max) => {
                format!(" β is at its upper cap of {}: the controller cannot push harder.", number(max))
            }
            None => format!(" β ended at {}.", number(trend::mean(&beta.points[beta.points.len() - 1..]))),
        });
        format!(
            "{} was {} nats over the last quarter of the run, {} times its target of {}.{beta}",
            self.what,
            number(last),
            number(last / target),
            number(target)
        )
    }

    fn cure(&self) -> String {
        let key = self.rule.key;
        match self.at_cap() {
            Some(_) => {
                format!("Raise the cap `{key}.max` or the first β, `{key}.beta`; or lower the learning rate.")
            }
            None => format!(
                "Start with a dearer nat (`{key}.beta`), so that the target is approached from below; lower the learning \
                 rate or the epochs; a larger gain reacts faster."
            ),
        }
    }
}

/// KL beyond four times its target; or, without a target, beyond half of what a response can spend.
pub fn exploding_kl(look: &Look) -> Option<Finding> {
    if let Some(held) = Held::of(look) {
        let beyond = |kl: f64| kl > 4.0 * held.target;
        let (since, share) = held.kl.since(beyond)?;
        return (share >= 0.2).then(|| Finding {
            fault: Fault::ExplodingKl,
            since: Some(since),
            evidence: held.evidence(),
            cure: held.cure(),
        });
    }
    // A response of the reference is a choice of this many nats: a policy that spends half of them has given up all but
    // one in e^(half) of what the reference could say.
    let (kl, entropy) = (look.long("objective/kl", 4)?, look.trend("responses/token_entropy")?);
    let length = look.trend("responses/length")?;
    let whole = entropy.points[0].mean * length.points[0].mean;
    let (since, share) = kl.since(|kl| kl > 0.5 * whole)?;
    let beta = look.trend("objective/ref_coef").map_or(0.0, |beta| beta.last());
    (share >= 0.1).then(|| Finding {
        fault: Fault::ExplodingKl,
        since: Some(since),
        evidence: format!(
            "KL(π ‖ π_ref) rose from {} to {} nats per response, and nothing holds it: β is {}. A response of the \
             reference holds {} nats of choice in all.",
            number(kl.first()),
            number(kl.last()),
            number(beta),
            number(whole)
        ),
        cure: "Give KL a price and a target: `algo.rollout.kl = { kind = \"proportional\", beta = 1.0, target = … }`, \
               with a target of one or two nats at first."
            .to_owned(),
    })
}

/// KL above its target for the last quarter of the run.
pub fn kl_above_target(look: &Look) -> Option<Finding> {
    let held = Held::of(look)?;
    let bound = held.rule.band * held.target;
    if held.kl.last() <= bound {
        return None;
    }
    let since = held.kl.since(|kl| kl > held.target).map(|(since, _)| since);
    Some(Finding { fault: Fault::KlAboveTarget, since, evidence: held.evidence(), cure: held.cure() })
}

/// KL that never came near its target: the policy was allowed more than it used.
pub fn kl_below_target(look: &Look) -> Option<Finding> {
    let held = Held::of(look)?;
    let best = held.kl.best().mean;
    (best < 0.5 * held.target).then(|| {
        super::remark(
            format!(
                "{} stayed below half of its target of {}: at most {} nats.",
                held.what,
                number(held.target),
                number(best)
            ),
            "The policy may move further: train longer, or start with a cheaper nat.",
        )
    })
}

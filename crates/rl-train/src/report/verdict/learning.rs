//! Whether updates move the policy, too much or at all, and whether values predict.

use super::progress::goal;
use super::{Critic, Fault, Finding, Look, number};

/// Discrete policies: entropy is all but gone before anything was learnt.
pub fn entropy_gone(look: &Look) -> Option<Finding> {
    let entropy = look.long("losses/entropy", 6)?;
    let first = look.columns.get("losses/entropy")?.values[0].max(entropy.points[0].mean);
    // The entropy of a Gaussian may be below zero and says nothing by its sign.
    if first <= 0.0 || entropy.points.iter().any(|point| point.mean < 0.0) {
        return None;
    }
    let (since, share) = entropy.since(|entropy| entropy < 0.05 * first)?;
    let goal = goal(look)?;
    // A deterministic optimum is also certain; but there something was gained.
    if share < 0.3 || goal.gained() {
        return None;
    }
    Some(Finding {
        fault: Fault::EntropyGone,
        since: Some(since),
        evidence: format!(
            "Entropy is {} nats, from {} at first: the policy no longer tries anything, and {} is {}, where it was {} \
             at first.",
            number(entropy.last()),
            number(first),
            goal.what,
            number(goal.trend.last()),
            number(goal.trend.first())
        ),
        cure: "Lower the learning rate, clip the ratio (`algo.clip`) and the gradient (`algo.max_grad_norm`); an entropy \
               bonus (`algo.entropy_coef`, 0.01) keeps choices open. What is certain does not come back: start again."
            .to_owned(),
    })
}

/// Every update leaves the policy as it was.
pub fn dead_learning_rate(look: &Look) -> Option<Finding> {
    let rate = look.trend("charts/learning_rate");
    let zero = rate.as_ref().is_some_and(|rate| rate.points.iter().all(|point| point.mean == 0.0));
    let moved = ["losses/approx_kl", "losses/kl"].iter().find_map(|name| look.long(name, 4));
    let entropy = look.long("losses/entropy", 4);
    let still = match (&moved, &entropy) {
        (Some(kl), _) => kl.points.iter().all(|point| point.mean.abs() < 1e-8),
        (None, Some(entropy)) => {
            let first = entropy.points[0].mean;
            first != 0.0 && entropy.points.iter().all(|point| ((point.mean - first) / first).abs() < 1e-4)
        }
        (None, None) => false,
    };
    if !(zero || still) {
        return None;
    }
    let rate =
        rate.map_or(String::new(), |rate| format!(" The learning rate is {}.", number(rate.points[0].mean)));
    let how = match (&moved, &entropy) {
        (Some(kl), _) => format!("an update moves the policy by {} nats at most", number(kl.best().mean)),
        (None, Some(entropy)) => format!("entropy stands at {} nats", number(entropy.last())),
        (None, None) => "the learning rate is 0".to_owned(),
    };
    Some(Finding {
        fault: Fault::DeadLearningRate,
        since: look.columns.updates.first().copied(),
        evidence: format!("Nothing moves: {how}.{rate}"),
        cure: "Raise `algo.optimizer.learning_rate`: 3e-4 to 3e-3 is usual for small networks, 1e-6 to 1e-5 for \
               language models. If it is not small, look whether the reward is the same for all actions."
            .to_owned(),
    })
}

/// Updates step further than the surrogate can be trusted.
pub fn learning_rate_too_high(look: &Look) -> Option<Finding> {
    let mut words = vec![];
    let mut since: Option<u64> = None;
    let mut note = |first: Option<u64>, text: String| {
        since = since.min(first).or(first).or(since);
        words.push(text);
    };
    if let Some(kl) = look.long("losses/approx_kl", 4) {
        let (share, first) = kl.share(|kl| kl > 0.1);
        let jump = look.columns.get("losses/approx_kl").map_or(0.0, |kl| kl.values[0]);
        if share >= 0.25 {
            let worst = number(kl.best().mean);
            note(
                first,
                format!(
                    "KL(π_old ‖ π) per update was above 0.1 nats for {:.0} % of the run, up to {worst}",
                    100.0 * share
                ),
            );
        } else if jump > 1.0 {
            note(
                look.columns.updates.first().copied(),
                format!("the first update moved the policy by {} nats", number(jump)),
            );
        }
    }
    if let Some(clipped) = look.long("losses/clipfrac", 4) {
        let (share, first) = clipped.share(|clipped| clipped > 0.5);
        if share >= 0.25 {
            note(
                first,
                format!("more than half of all ratios were clipped for {:.0} % of the run", 100.0 * share),
            );
        }
    }
    if let (Some(epochs), Some(made)) = (look.facts.epochs, look.long("charts/epochs", 4)) {
        let (share, first) = made.share(|made| made < 0.34 * epochs);
        if share >= 0.5 && epochs >= 3.0 {
            let made = number(made.last());
            note(first, format!("`target_kl` ended most updates after {made} of {epochs} epochs"));
        }
    }
    if let (Some(norm), Some(loss)) = (look.long("losses/grad_norm", 8), look.long("losses/value_loss", 8)) {
        let grows = |first: f64, last: f64| first > 0.0 && last > 1000.0 * first;
        if grows(norm.first(), norm.last()) && grows(loss.first(), loss.last()) {
            note(None, format!("the gradient grew from {} to {}", number(norm.first()), number(norm.last())));
        }
    }
    (!words.is_empty()).then(|| Finding {
        fault: Fault::LearningRateTooHigh,
        since,
        evidence: format!("Steps are too long: {}.", words.join("; ")),
        cure: "Divide `algo.optimizer.learning_rate` by three, make fewer epochs, and keep `algo.clip` at 0.2 and \
               `algo.max_grad_norm` at 0.5."
            .to_owned(),
    })
}

/// Values explain nothing of the returns, and their loss does not fall.
pub fn critic_not_learning(look: &Look) -> Option<Finding> {
    let explained = look.long("losses/explained_variance", 8)?;
    let loss = look.long("losses/value_loss", 8)?;
    // Constant returns have no variance to explain; then the loss is small.
    let poor = explained.last() < 0.1 && explained.quarter(2).iter().all(|point| point.mean < 0.2);
    let falls = loss.last() < 0.5 * loss.first();
    if look.facts.critic == Critic::Blind || !poor || falls || loss.last() < 1e-6 {
        return None;
    }
    let since = explained.since(|share| share < 0.2).map(|(since, _)| since);
    Some(Finding {
        fault: Fault::CriticNotLearning,
        since,
        evidence: format!(
            "Values explain {} of the variance of the returns over the last quarter (1 is all, 0 none), and the value \
             loss went from {} to {}.",
            number(explained.last()),
            number(loss.first()),
            number(loss.last())
        ),
        cure: "Raise `algo.value_coef` or the learning rate of the value network; scale rewards \
               (`normalize.reward_clip`) if the value loss is large; look whether observations hold what returns depend \
               on."
            .to_owned(),
    })
}

//! What is claimed of overoptimization, and what the numbers say.

use rl_core::bootstrap::Interval;

use super::{Cell, MIDDLE, Method, PAIRS, Walk, peak};
use crate::rlhf::config::RewardKind;
use crate::study::fit::{Law, fit};
use crate::study::results::{Finding, Verdict, improvement, over_seeds, shown};

/// Every claim that the cells can speak of.
pub fn of(cells: &[Cell]) -> Vec<Finding> {
    let cell = |method, proxy, pairs| {
        cells.iter().find(|cell| {
            let setting = cell.setting;
            (setting.method, setting.proxy, setting.pairs) == (method, proxy, pairs)
        })
    };
    let unigram = |method| cell(method, RewardKind::Unigram, MIDDLE);
    let mut found = Vec::new();
    if let Some(free) = unigram(Method::Free) {
        found.extend(hump(free));
        found.extend(laws(free, unigram(Method::BestOfN)));
        found.extend(guards(free));
    }
    for method in [Method::Adaptive, Method::Fixed] {
        found.extend(unigram(method).map(held));
    }
    if let (Some(free), Some(bought)) = (unigram(Method::Free), unigram(Method::BestOfN)) {
        found.extend(efficiency(free, bought));
    }
    if let (Some(free), Some(fixed)) = (unigram(Method::Free), unigram(Method::Fixed)) {
        found.extend(early_stopping(free, fixed));
    }
    for (proxy, name) in [(RewardKind::Bigram, "bigram"), (RewardKind::Unigram, "unigram")] {
        let ends = [PAIRS[0], PAIRS[PAIRS.len() - 1]];
        if let [Some(few), Some(many)] = ends.map(|pairs| cell(Method::Free, proxy, pairs)) {
            found.push(data(few, many, name));
        }
    }
    found
}

fn over(cell: &Cell, of: impl Fn(&Walk) -> f64) -> Interval {
    over_seeds(&cell.walks.iter().map(of).collect::<Vec<_>>())
}

fn end(walk: &Walk) -> super::Point {
    walk.path[walk.path.len() - 1]
}

/// Proxy up, gold up and down.
fn hump(free: &Cell) -> [Finding; 3] {
    let (best, last) = (over(free, |walk| peak(&walk.path).gold), over(free, |walk| end(walk).gold));
    let lost = over(free, |walk| peak(&walk.path).gold - end(walk).gold);
    let at = over(free, |walk| peak(&walk.path).kl);
    let cheated =
        free.walks.iter().filter(|walk| peak(&walk.path).gold > 0.9 && end(walk).gold < 0.0).count();
    let fell = |walk: &Walk| {
        let fall = walk.path.windows(2).map(|two| two[0].score - two[1].score);
        fall.fold(0.0, f64::max)
    };
    let dip = free.walks.iter().map(fell).fold(0.0, f64::max);
    [
        Finding::new(
            Verdict::above(lost, 0.15),
            "without a penalty gold peaks, and then falls",
            format!("{} at {} nats, {} in the end", shown(best), shown(at), shown(last)),
        ),
        Finding::new(
            Verdict::of(cheated == free.walks.len()),
            "on every seed uncontrolled PPO peaks above .9 and ends below 0",
            format!("{cheated} of {} seeds", free.walks.len()),
        ),
        Finding::new(
            Verdict::of(dip < 0.05),
            "the proxy rises all the while",
            format!(
                "its largest fall between two measurements is {dip:.3}, it ends at {}",
                shown(over(free, |walk| end(walk).score))
            ),
        ),
    ]
}

/// The two published shapes.
fn laws(free: &Cell, bought: Option<&Cell>) -> Vec<Finding> {
    let mean = |cell: &Cell| -> Vec<(f64, f64)> {
        cell.curve(|point| point.gold).into_iter().map(|(d, gold)| (d * d, gold.estimate)).collect()
    };
    let mut found = Vec::new();
    if let Some(fit) = bought.and_then(|cell| fit(Law::Quadratic, &mean(cell))) {
        found.push(Finding::new(
            Verdict::of(fit.r_squared > 0.95),
            "best-of-n follows d·(α − β·d)",
            format!("R² = {:.3}, α = {:.2}, β = {:.2}", fit.r_squared, fit.alpha, fit.beta),
        ));
    }
    let both = [Law::Logarithmic, Law::Quadratic].map(|law| fit(law, &mean(free)));
    if let [Some(log), Some(quadratic)] = both {
        found.push(Finding::new(
            Verdict::of(log.r_squared > quadratic.r_squared),
            "PPO follows d·(α − β·ln d) better than best-of-n's law",
            format!("R² = {:.3} against {:.3}", log.r_squared, quadratic.r_squared),
        ));
    }
    found
}

/// A controlled run keeps what it has found.
fn held(cell: &Cell) -> Finding {
    let lost: Vec<f64> = cell.walks.iter().map(|walk| peak(&walk.path).gold - end(walk).gold).collect();
    let kept = lost.iter().filter(|lost| **lost <= 0.15).count();
    let worst = lost.iter().copied().fold(0.0, f64::max);
    Finding::new(
        Verdict::of(kept == lost.len()),
        format!(
            "{} ends within .15 of the best gold on its own path, on every seed",
            cell.setting.method.name()
        ),
        format!(
            "{kept} of {} seeds, at most {worst:.2} lost; it ends at {} and {} nats",
            lost.len(),
            shown(over(cell, |walk| end(walk).gold)),
            shown(over(cell, |walk| end(walk).kl))
        ),
    )
}

fn efficiency(free: &Cell, bought: &Cell) -> Option<Finding> {
    let at =
        [1.0, 2.0, 2.5].into_iter().rev().find_map(|kl| Some((kl, free.gold_at(kl)?, bought.gold_at(kl)?)));
    at.map(|(kl, ppo, best_of_n)| {
        let verdict = if best_of_n.low > ppo.high {
            Verdict::Held
        } else if best_of_n.high < ppo.low {
            Verdict::Failed
        } else {
            Verdict::Open
        };
        Finding::new(
            verdict,
            format!("best-of-n buys more gold than PPO at {kl} nats"),
            format!("{} and {}", shown(best_of_n), shown(ppo)),
        )
    })
}

/// A penalty does not move gold per nat: it ends the run earlier.
fn early_stopping(free: &Cell, fixed: &Cell) -> Option<Finding> {
    let at =
        [0.5, 1.0, 1.5, 2.0].map(|kl| Some((kl, free.gold_at(kl)?.estimate - fixed.gold_at(kl)?.estimate)));
    let (kl, most) = at.into_iter().flatten().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(Finding::new(
        Verdict::of(most.abs() < 0.1),
        "up to 2 nats a penalty does not move gold at a given KL by as much as .1: it is like stopping early",
        format!("the largest difference is {most:.3}, at {kl} nats"),
    ))
}

/// More comparisons: a higher peak, where the model can use them.
fn data(few: &Cell, many: &Cell, name: &str) -> Finding {
    let peaks = |cell: &Cell| cell.walks.iter().map(|walk| peak(&walk.path).gold).collect::<Vec<_>>();
    let (low, high) = (peaks(few), peaks(many));
    let chance = improvement(&[(&high, &low)]);
    Finding::new(
        Verdict::above(chance, 0.5),
        format!(
            "{} comparisons raise the peak of gold above that of {}, {name} proxy",
            many.setting.pairs, few.setting.pairs
        ),
        format!(
            "{} and {}; probability of improvement {}",
            shown(over_seeds(&high)),
            shown(over_seeds(&low)),
            shown(chance)
        ),
    )
}

/// The collapse guards, which watch gold if they are given it.
fn guards(free: &Cell) -> Option<Finding> {
    let rung: Vec<(u64, f64)> = free.walks.iter().filter_map(|walk| walk.alarm).collect();
    let (updates, gold): (Vec<f64>, Vec<f64>) =
        rung.iter().map(|(update, gold)| (*update as f64, *gold)).unzip();
    let missed = free.walks.len() - rung.len();
    let in_time = gold.iter().filter(|gold| **gold > 0.0).count();
    let evidence = if rung.is_empty() {
        format!("no alarm on {missed} seeds")
    } else {
        let (at, left) = (over_seeds(&updates), over_seeds(&gold));
        format!(
            "{in_time} of {} seeds; the first alarm comes after {} updates, at gold {}",
            free.walks.len(),
            shown(at),
            shown(left)
        )
    };
    Some(Finding::new(
        Verdict::of(missed == 0 && in_time == free.walks.len()),
        "the guards raise an alarm on every uncontrolled run before its gold falls below 0",
        evidence,
    ))
}

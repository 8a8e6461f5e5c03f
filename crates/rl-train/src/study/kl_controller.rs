//! `kl-controller`: Ziegler's rule brings KL(π ‖ π_ref) to its target, wherever β starts.
//!
//! PPO with the gold reward in the full token world; β₀ = .01, .2 and 2, targets of 1, 2, 4 and 6 nats per response. KL is
//! exact, and what counts is its mean over the last third of the run.   Ziegler 2019, §2.2

use anyhow::Result;

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds};
use super::runs::{Trace, config, parallel, trace};
use super::token::{adaptive, ppo_size, updates};

const TARGETS: [f64; 4] = [1.0, 2.0, 4.0, 6.0];
const STARTS: [f64; 3] = [0.01, 0.2, 2.0];

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let targets = plan.pick(&TARGETS[..], &TARGETS[..1]);
    let mut jobs = Vec::new();
    for &target in targets {
        STARTS.iter().for_each(|&start| jobs.extend(plan.seeds().map(|seed| (target, start, seed))));
    }
    let traces = parallel(&jobs, |&(target, start, seed)| {
        let mut changes = updates(plan, 400, 80);
        changes.extend(ppo_size(plan));
        changes.extend([
            adaptive(start, target),
            "token_world.reward=gold".into(),
            "algo.optimizer.learning_rate=0.02".into(),
            format!("seed={seed}"),
        ]);
        trace(&config("rlhf-token-world", &changes)?, &plan.device)
    })?;

    let mut results = Results::default();
    let (mut within, mut worst) = (0, 0.0_f64);
    let mut curves = Vec::new();
    for (cell, runs) in traces.chunks(plan.seeds as usize).enumerate() {
        let (target, start, _) = jobs[cell * runs.len()];
        let late: Vec<f64> = runs.iter().map(|run| late_mean(&run.column("exact/kl"))).collect();
        let off = late.iter().map(|kl| (kl / target - 1.0).abs()).fold(0.0, f64::max);
        within += usize::from(off <= 0.05);
        worst = worst.max(off);
        let beta = over_seeds(
            &runs.iter().map(|run| late_mean(&run.column("objective/ref_coef"))).collect::<Vec<_>>(),
        );
        results.table.push([
            ("target", target.into()),
            ("beta_start", start.into()),
            ("kl", over_seeds(&late).into()),
            ("beta_end", beta.into()),
            ("largest_error", off.into()),
            ("updates_to_target", arrival(&runs[0], target).into()),
        ]);
        let name = format!("target {target}, β₀ = {start}");
        curves.push((target, name, runs));
    }
    let cells = traces.len() / plan.seeds as usize;
    let finite = traces
        .iter()
        .all(|run| run.broke.is_none() && run.column("objective/ref_coef").iter().all(|b| b.is_finite()));
    results.findings = vec![
        Finding::new(
            Verdict::of(within == cells),
            "KL settles within 5% of its target, from every β₀",
            format!(
                "{within} of {cells} settings, on every seed; the largest error is {:.1}%",
                100.0 * worst
            ),
        ),
        Finding::new(
            Verdict::of(finite),
            "β stays finite, and no run breaks",
            format!("{} runs", traces.len()),
        ),
    ];
    let drawn = |of: &'static str| {
        let each = curves.iter().filter(|(_, _, runs)| !runs.is_empty());
        let each = each.map(|(_, name, runs)| {
            let points = runs[0].rows.iter().filter_map(|row| Some((row.update as f64, row.get(of)?)));
            Curve::exact(name.clone(), Stroke::Line, points)
        });
        each.collect::<Vec<_>>()
    };
    let bounds = targets.iter().map(|&target| {
        let end = traces[0].rows.len() as f64;
        Curve::exact(format!("{target} nats"), Stroke::Bound, [(0.0, target), (end, target)])
    });
    results.pictures = vec![
        Picture {
            name: "kl".into(),
            title: "KL under the adaptive price (first seed)".into(),
            x: Axis::linear("update"),
            y: Axis::linear("KL(π ‖ π_ref), nats per response"),
            curves: drawn("exact/kl").into_iter().chain(bounds).collect(),
        },
        Picture {
            name: "beta".into(),
            title: "The price that holds it (first seed)".into(),
            x: Axis::linear("update"),
            y: Axis::log("β, reward per nat"),
            curves: drawn("objective/ref_coef"),
        },
    ];
    Ok(results)
}

/// The mean of the last third.
fn late_mean(values: &[f64]) -> f64 {
    let late = &values[values.len() * 2 / 3..];
    late.iter().sum::<f64>() / late.len() as f64
}

/// The update after which KL stays within a tenth of its target; NaN if it does not.
fn arrival(run: &Trace, target: f64) -> f64 {
    let seen: Vec<(u64, f64)> =
        run.rows.iter().filter_map(|row| Some((row.update, row.get("exact/kl")?))).collect();
    let inside = |kl: f64| (kl / target - 1.0).abs() <= 0.1;
    let from = seen.iter().rposition(|(_, kl)| !inside(*kl)).map_or(0, |last| last + 1);
    seen.get(from).map_or(f64::NAN, |(update, _)| *update as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_third_counts() {
        assert_eq!(late_mean(&[9.0, 9.0, 9.0, 9.0, 1.0, 2.0]), 1.5);
        assert_eq!(late_mean(&[4.0]), 4.0);
    }
}

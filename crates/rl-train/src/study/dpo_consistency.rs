//! `dpo-consistency`: DPO's distance from π* falls with the number of comparisons.
//!
//! The small token world, a full prefix table, the gold reward. Pairs come from the reference, and their labels are drawn
//! with the Bradley–Terry probabilities that DPO assumes; the loss is followed down on all pairs at once. What is left is
//! what the sample does not say.   Rafailov 2023, §5.1

use anyhow::Result;
use rl_algos::streams;
use rl_core::schedule::Schedule;
use rl_envs::token_world::exact::{kl, objective, tilt, tilted};

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds, shown};
use super::runs::parallel;
use super::token::{DpoRun, drawn_comparisons};
use crate::rlhf::TokenTask;
use crate::rlhf::config::{RewardKind, TableKind, TokenWorldConfig, WorldSize};

const BETAS: [f64; 2] = [1.0, 0.5];
const PAIRS: [usize; 5] = [300, 1000, 3000, 10_000, 30_000];

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let setting = TokenWorldConfig {
        world: WorldSize::Small,
        reward: RewardKind::Gold,
        policy: TableKind::Prefix,
        ..TokenWorldConfig::default()
    };
    let task = TokenTask::new(&setting, 1, &plan.device.device)?;
    let reference = task.world.reference();
    let sizes = plan.pick(&PAIRS[..], &PAIRS[..2]);
    let mut jobs = Vec::new();
    for beta in BETAS {
        sizes.iter().for_each(|&pairs| jobs.extend(plan.seeds().map(|seed| (beta, pairs, seed))));
    }
    let found = parallel(&jobs, |&(beta, pairs, seed)| {
        let comparisons = drawn_comparisons(&task, pairs, &mut streams::judge(seed));
        let run = DpoRun {
            task: &task,
            comparisons: &comparisons,
            beta,
            steps: plan.pick(300, 40),
            batch: pairs,
            learning_rate: Schedule::Cosine { from: 0.1, to: 0.0 },
            seed,
        };
        let law = task.law(&run.train(u64::MAX, |_| ())?, 1.0);
        let best = tilt(reference, &task.reward, beta).objective();
        let share = objective(&law, reference, &task.reward, beta) / best;
        Ok((kl(&law, &tilted(reference, &task.reward, beta)), share))
    })?;

    let mut results = Results::default();
    let mut curves = Vec::new();
    for beta in BETAS {
        let mut points = Vec::new();
        for &pairs in sizes {
            let here = jobs.iter().zip(&found).filter(|((b, n, _), _)| (*b, *n) == (beta, pairs));
            let (to_best, shares): (Vec<f64>, Vec<f64>) = here.map(|(_, both)| *both).unzip();
            let distance = over_seeds(&to_best);
            results.table.push([
                ("beta", beta.into()),
                ("comparisons", (pairs as f64).into()),
                ("kl_to_optimum", distance.into()),
                ("share_of_optimum", over_seeds(&shares).into()),
            ]);
            points.push((pairs as f64, distance));
        }
        let falls = points.windows(2).all(|two| two[1].1.estimate < two[0].1.estimate);
        let (first, last) = (points[0], points[points.len() - 1]);
        let slope = (last.1.estimate / first.1.estimate).ln() / (last.0 / first.0).ln();
        results.findings.push(Finding::new(
            Verdict::of(falls),
            format!("every larger sample brings DPO nearer to π*, β = {beta}"),
            format!(
                "KL(π ‖ π*) = {} nats at {} comparisons, {} at {}: it falls like N^{slope:.2}",
                shown(first.1),
                first.0,
                shown(last.1),
                last.0
            ),
        ));
        let verdict = if last.1.below(0.02) {
            Verdict::Held
        } else if last.1.above(0.02) {
            Verdict::Failed
        } else {
            Verdict::Open
        };
        results.findings.push(Finding::new(
            verdict,
            format!("{} comparisons bring it within .02 nats, β = {beta}", last.0),
            format!("{:.4} [{:.4}, {:.4}]", last.1.estimate, last.1.low, last.1.high),
        ));
        curves.push(Curve::with_intervals(format!("β = {beta}"), Stroke::Line, points));
    }
    let ends = [sizes[0], sizes[sizes.len() - 1]].map(|pairs| (pairs as f64, 0.02));
    curves.push(Curve::exact("the bar of the other roads", Stroke::Bound, ends));
    results.pictures = vec![Picture {
        name: "consistency".into(),
        title: "DPO's distance from π*".into(),
        x: Axis::log("comparisons"),
        y: Axis::log("KL(π ‖ π*), nats"),
        curves,
    }];
    Ok(results)
}

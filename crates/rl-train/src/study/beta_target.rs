//! `beta-target`: how the KL target of PPO's penalty trades return against KL.
//!
//! PPO without a clip, with the penalty β·KL(π_old ‖ π) whose β follows the band rule of the KL-control lecture (×1.5 above
//! twice the target, ÷1.5 below half of it). On CartPole, for targets of .001 to .3 nats per decision.

use anyhow::Result;

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds, shown};
use super::runs::{Trace, config, parallel, trace};

const TARGETS: [f64; 6] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3];

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let targets = plan.pick(&TARGETS[..], &TARGETS[1..4]);
    let jobs: Vec<(f64, u64)> =
        targets.iter().flat_map(|&target| plan.seeds().map(move |seed| (target, seed))).collect();
    let ends = parallel(&jobs, |&(target, seed)| {
        let changes = [
            "algo.clip=off".to_owned(),
            format!("algo.kl={{ kind = \"band\", beta = 1.0, target = {target} }}"),
            format!("total_steps={}", plan.pick(60_000, 4_096)),
            format!("eval.episodes={}", plan.pick(100, 5)),
            format!("seed={seed}"),
        ];
        let run = trace(&config("ppo-cart-pole", &changes)?, &plan.device)?;
        let earned = run.column("charts/episodic_return");
        let average = earned.iter().sum::<f64>() / earned.len().max(1) as f64;
        let (kl, beta) = (middle(&run, "losses/kl"), middle(&run, "objective/kl_coef"));
        Ok([run.last("eval/return_mean"), average, kl, beta, run.most("losses/kl")])
    })?;

    let mut results = Results::default();
    let (mut final_, mut along, mut within) = (Vec::new(), Vec::new(), 0);
    for &target in targets {
        let runs: Vec<[f64; 5]> =
            jobs.iter().zip(&ends).filter(|((at, _), _)| *at == target).map(|(_, end)| *end).collect();
        let [reached, average, kl, beta, most] =
            [0, 1, 2, 3, 4].map(|i| over_seeds(&runs.iter().map(|run| run[i]).collect::<Vec<_>>()));
        within += usize::from((0.5..=2.0).contains(&(kl.estimate / target)));
        results.table.push([
            ("target", target.into()),
            ("return", reached.into()),
            ("return_while_learning", average.into()),
            ("kl", kl.into()),
            ("beta", beta.into()),
            ("largest_kl", most.into()),
        ]);
        final_.push((target, reached));
        along.push((target, average));
    }
    let best = final_.iter().max_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate)).expect("there are targets");
    let ends = [final_[0], final_[final_.len() - 1]];
    let inner = best.0 > ends[0].0 && best.0 < ends[1].0;
    let clear = ends.iter().all(|end| end.1.high < best.1.low);
    results.findings = vec![
        Finding::new(
            Verdict::of(within == targets.len()),
            "the band rule holds KL within a factor of two of its target",
            format!("median KL of the second half, {within} of {} targets", targets.len()),
        ),
        Finding::new(
            match (inner, clear) {
                (true, true) => Verdict::Held,
                (true, false) => Verdict::Open,
                (false, _) => Verdict::Failed,
            },
            "the return is highest at a target between too small (too slow) and too large (too wild)",
            format!(
                "the best target is {}: return {}; {} at {}, {} at {}",
                best.0,
                shown(best.1),
                shown(ends[0].1),
                ends[0].0,
                shown(ends[1].1),
                ends[1].0
            ),
        ),
    ];
    results.pictures = vec![Picture {
        name: "return".into(),
        title: "CartPole: return against the KL target".into(),
        x: Axis::log("target of KL(π_old ‖ π), nats per decision"),
        y: Axis::linear("return"),
        curves: vec![
            Curve::with_intervals("greedy, in the end", Stroke::Line, final_),
            Curve::with_intervals("sampled, over the whole run", Stroke::Line, along),
        ],
    }];
    Ok(results)
}

/// The median of a metric over the second half of a run.
fn middle(run: &Trace, name: &str) -> f64 {
    let all = run.column(name);
    let mut late = all[all.len() / 2..].to_vec();
    late.sort_by(f64::total_cmp);
    if late.is_empty() { f64::NAN } else { rl_core::bootstrap::quantile(&late, 0.5) }
}

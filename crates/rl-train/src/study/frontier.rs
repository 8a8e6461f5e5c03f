//! `frontier`: how much of the best gold at 1 to 5 nats each method of RLHF reaches.
//!
//! The full token world and the gold reward itself, so that what is missing is the method's and not the reward model's.
//! PPO, RLOO and GRPO are held at each KL by the adaptive price; DPO learns from comparisons and is read off where its path
//! crosses each KL; best-of-n is exact. The policy is a table of per-position bigrams, which cannot be π*.   Rafailov 2023,
//! figure 2

use anyhow::Result;
use rl_core::schedule::Schedule;
use rl_envs::token_world::exact::frontier;
use rl_envs::token_world::proxy::comparisons;

use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds, shown};
use super::runs::{config, parallel, trace};
use super::token::{DpoRun, Point, adaptive, best_of_n, gold_at, path, ppo_size, updates};
use super::{Plan, Size};
use crate::rlhf::TokenTask;
use crate::rlhf::config::{RewardKind, TokenWorldConfig, WorldSize};

const TARGETS: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
const METHODS: [&str; 5] = ["PPO", "RLOO", "GRPO", "DPO", "best-of-n"];
/// Comparisons that DPO learns from.
const PAIRS: usize = 20_000;

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let world = if plan.size == Size::Quick { WorldSize::Small } else { WorldSize::Full };
    let setting = TokenWorldConfig { world, reward: RewardKind::Gold, ..TokenWorldConfig::default() };
    let task = TokenTask::new(&setting, 1, &plan.device.device)?;
    let (reference, gold) = (task.world.reference(), task.world.gold());
    let best = |kl: f64| frontier(reference, gold, kl);
    let targets = plan.pick(&TARGETS[..], &TARGETS[..2]);

    let mut jobs = Vec::new();
    for method in 0..METHODS.len() {
        targets.iter().for_each(|&target| jobs.extend(plan.seeds().map(|seed| (method, target, seed))));
    }
    let dpo = parallel(&plan.seeds().collect::<Vec<_>>(), |&seed| {
        let mut rng = rl_algos::streams::judge(seed);
        let pairs = comparisons(&task.world, plan.pick(PAIRS, 300), &mut rng);
        let run = DpoRun {
            task: &task,
            comparisons: &pairs,
            beta: 0.1,
            steps: plan.pick(400, 12),
            batch: 256,
            learning_rate: Schedule::Constant(0.02),
            seed,
        };
        run.path(plan.pick(5, 1))
    })?;
    let bought = best_of_n(&task.world, gold, plan.pick(14, 6));
    let reached: Vec<Option<Point>> = parallel(&jobs, |&(method, target, seed)| {
        let held = |name: &str, size: Vec<String>| -> Result<Option<Point>> {
            let mut changes = updates(plan, 300, 1);
            changes.extend(size);
            changes.extend([adaptive(1.0, target), "token_world.reward=gold".into(), format!("seed={seed}")]);
            let run = trace(&config(name, &changes)?, &plan.device)?;
            Ok(path(&run).last().copied())
        };
        let grouped = || vec![format!("algo.rollout.prompts={}", plan.pick(32, 8))];
        let crossing =
            |path: &[Point]| gold_at(path, target).map(|gold| Point { kl: target, gold, score: gold });
        match METHODS[method] {
            "PPO" => held("rlhf-token-world", ppo_size(plan).into()),
            "RLOO" => held("rloo-token-world", [grouped(), vec![rows(plan)]].concat()),
            "GRPO" => held("grpo-token-world", [grouped(), vec![rows(plan)]].concat()),
            "DPO" => Ok(crossing(&dpo[seed as usize - 1])),
            _ => Ok(crossing(&bought)),
        }
    })?;

    let mut results = Results::default();
    let (mut above, mut short, mut measured) = (0, Vec::new(), 0);
    let mut curves = Vec::new();
    for (m, method) in METHODS.iter().enumerate() {
        let mut points = Vec::new();
        for &target in targets {
            let here = jobs.iter().zip(&reached).filter(|((method, at, _), _)| (*method, *at) == (m, target));
            let found: Vec<Point> = here.filter_map(|(_, point)| *point).collect();
            if found.is_empty() {
                continue;
            }
            let shares: Vec<f64> = found.iter().map(|point| point.gold / best(point.kl)).collect();
            above += found.iter().filter(|point| point.gold > best(point.kl) + 1e-6).count();
            measured += found.len();
            let of = |of: fn(&Point) -> f64| over_seeds(&found.iter().map(of).collect::<Vec<_>>());
            let (share, kl, reward) = (over_seeds(&shares), of(|point| point.kl), of(|point| point.gold));
            if !share.above(0.8) {
                short.push(format!("{method} at {target} nats: {}", shown(share)));
            }
            results.table.push([
                ("method", (*method).into()),
                ("target", target.into()),
                ("runs", (found.len() as f64).into()),
                ("kl", kl.into()),
                ("gold", reward.into()),
                ("share", share.into()),
            ]);
            points.push((kl.estimate, reward, share));
        }
        curves.push((*method, points));
    }
    let evidence = if short.is_empty() { "each of 5 methods".to_owned() } else { short.join("; ") };
    results.findings = vec![
        Finding::new(
            Verdict::of(above == 0),
            "no measured point lies above the exact frontier",
            format!("{above} of {measured} points do"),
        ),
        Finding::new(
            Verdict::of(short.is_empty()),
            "each method reaches 80% of the frontier at every KL",
            evidence,
        ),
    ];
    let of = |name: &str| &curves.iter().find(|(method, _)| *method == name).expect("a method").1;
    let levels = of("PPO").iter().zip(of("DPO"));
    let apart: Vec<f64> = levels.map(|(ppo, dpo)| ppo.2.estimate - dpo.2.estimate).collect();
    let ahead = apart.iter().filter(|difference| **difference < 0.0).count();
    results.findings.push(Finding::new(
        Verdict::of(!apart.is_empty() && ahead == apart.len()),
        "DPO reaches more gold than PPO at every KL",
        format!("it is ahead at {ahead} of {} levels", apart.len()),
    ));
    let steps = (0..=100).map(|i| 0.01 * f64::from(i) * targets[targets.len() - 1] * 1.1);
    let bound = Curve::exact("frontier", Stroke::Bound, steps.map(|kl| (kl, best(kl))));
    let each = curves.into_iter().map(|(method, points)| {
        let points = points.into_iter().map(|(kl, gold, _)| (kl, gold)).collect();
        Curve::with_intervals(method, Stroke::Points, points)
    });
    results.pictures = vec![Picture {
        name: "frontier".into(),
        title: "Gold per nat, against the best there is".into(),
        x: Axis::linear("KL(π ‖ π_ref), nats"),
        y: Axis::linear("gold"),
        curves: each.chain([bound]).collect(),
    }];
    Ok(results)
}

/// The rows of a gradient step of the critic-free methods: the whole rollout.
fn rows(plan: &Plan) -> String {
    format!("algo.steps.minibatch_rows={}", plan.pick(256, 64))
}

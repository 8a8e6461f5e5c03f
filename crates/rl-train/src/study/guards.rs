//! `guards`: what ensembles, normalisation and a KL budget leave of gold, where nothing else holds the policy.
//!
//! PPO without a penalty against reward models that can be cheated: unigram ones of 1,000 comparisons, and bigram ones of
//! 100, which are erratic. Each guard alone; gold is exact, at the end of the run.   Coste 2023; Gao 2022, §3.6

use anyhow::Result;

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, improvement, over_seeds, shown};
use super::runs::{config, parallel, trace};
use super::token::{adaptive, fixed, path, peak, ppo_size, updates};

/// Members of the ensembles.
const MEMBERS: &str = "token_world.members=5";
/// Nats per response that a run may spend; the target of the adaptive price.
const BUDGET: f64 = 1.5;

/// A guard: its name, and what it changes in a run without any.
fn all() -> Vec<(&'static str, Vec<String>)> {
    let of = |changes: &[&str]| changes.iter().map(|change| (*change).to_owned()).collect::<Vec<_>>();
    let budget = format!("guards.kl_budget={BUDGET:?}");
    vec![
        ("none", of(&[])),
        ("mean of 5 models", of(&[MEMBERS, "token_world.combine=mean"])),
        ("mean − deviation of 5", of(&[MEMBERS, "token_world.combine=mean_minus_std"])),
        ("worst of 5", of(&[MEMBERS, "token_world.combine=worst"])),
        ("scores clipped to ±1", of(&["algo.rollout.reward_clip=1.0"])),
        ("rewards whitened", of(&["algo.rollout.reward_norm=whiten"])),
        ("KL budget", of(&[&budget])),
        ("alarms stop the run", of(&["guards.on_alarm=stop"])),
        ("adaptive β", vec![adaptive(1.0, BUDGET)]),
    ]
}

/// The proxies: name, kind, comparisons.
const PROXIES: [(&str, &str, u64); 2] = [("unigram, 1000", "unigram", 1000), ("bigram, 100", "bigram", 100)];

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let guards = all();
    let mut jobs = Vec::new();
    for proxy in 0..PROXIES.len() {
        (0..guards.len()).for_each(|guard| jobs.extend(plan.seeds().map(|seed| (proxy, guard, seed))));
    }
    let ends = parallel(&jobs, |&(proxy, guard, seed)| {
        let (_, kind, pairs) = PROXIES[proxy];
        let mut changes = updates(plan, 250, 12);
        changes.extend(ppo_size(plan));
        changes.extend([
            fixed(0.0),
            format!("token_world.reward={kind}"),
            format!("token_world.pairs={pairs}"),
            "algo.optimizer.learning_rate=0.02".into(),
            format!("seed={seed}"),
        ]);
        changes.extend(guards[guard].1.iter().cloned());
        let run = trace(&config("rlhf-token-world", &changes)?, &plan.device)?;
        let path = path(&run);
        Ok((path[path.len() - 1], peak(&path), run.rows.len() as f64 - 1.0))
    })?;

    let mut results = Results::default();
    let mut points: Vec<Curve> = Vec::new();
    for (p, (proxy, ..)) in PROXIES.iter().enumerate() {
        let of = |guard: usize| -> Vec<_> {
            let here = jobs.iter().zip(&ends).filter(|(job, _)| (job.0, job.1) == (p, guard));
            here.map(|(_, end)| *end).collect()
        };
        let without: Vec<f64> = of(0).iter().map(|(end, ..)| end.gold).collect();
        let mut bars = Vec::new();
        for (guard, (name, _)) in guards.iter().enumerate() {
            let runs = of(guard);
            let gold: Vec<f64> = runs.iter().map(|(end, ..)| end.gold).collect();
            let (end, chance) = (over_seeds(&gold), improvement(&[(&gold, &without)]));
            let best = over_seeds(&runs.iter().map(|(_, peak, _)| peak.gold).collect::<Vec<_>>());
            results.table.push([
                ("proxy", (*proxy).into()),
                ("guard", (*name).into()),
                ("end_gold", end.into()),
                ("peak_gold", best.into()),
                ("end_kl", over_seeds(&runs.iter().map(|(end, ..)| end.kl).collect::<Vec<_>>()).into()),
                (
                    "updates",
                    over_seeds(&runs.iter().map(|(.., updates)| *updates).collect::<Vec<_>>()).into(),
                ),
                ("probability_of_improvement", chance.into()),
            ]);
            bars.push((guard as f64 + 0.12 * p as f64, end));
            if guard > 0 {
                results.findings.push(Finding::new(
                    Verdict::above(chance, 0.5),
                    format!("{name}: gold ends higher than without, {proxy} comparisons"),
                    format!("{} against {}", shown(end), shown(over_seeds(&without))),
                ));
            }
        }
        points.push(Curve::with_intervals(format!("{proxy} comparisons"), Stroke::Points, bars));
    }
    let names: Vec<String> =
        guards.iter().enumerate().map(|(guard, (name, _))| format!("{guard} {name}")).collect();
    results.notes.push(format!("Guards in the picture: {}.", names.join(", ")));
    results.pictures = vec![Picture {
        name: "guards".into(),
        title: "Gold in the end, by guard".into(),
        x: Axis::linear("guard, by number"),
        y: Axis::linear("gold"),
        curves: points,
    }];
    Ok(results)
}

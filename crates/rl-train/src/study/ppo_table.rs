//! `ppo-table`: the eleven settings of PPO's Table 1.
//!
//! No clip and no penalty; clip .1, .2, .3; adaptive KL of .003, .01, .03; fixed β of .3, 1, 3, 10. On CartPole, Acrobot,
//! Pendulum and the gridworld, whose optimum is known. As in the paper a run is scored by its last hundred episodes, and
//! scores are brought to 0 for the untrained policy and 1 for the best setting's mean.   Schulman 2017, §6.1, Table 1

use anyhow::Result;

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, improvement, over_seeds, over_tasks, shown};
use super::runs::{Trace, config, parallel, trace};

/// A setting: its name, and the changes that make it.
fn settings() -> Vec<(String, [String; 2])> {
    let off = || "algo.clip=off".to_owned();
    let mut all = vec![("no clip, no penalty".to_owned(), [off(), "algo.kl=off".to_owned()])];
    all.extend(
        [0.1, 0.2, 0.3]
            .map(|clip| (format!("clip {clip}"), [format!("algo.clip={clip}"), "algo.kl=off".into()])),
    );
    all.extend([0.003, 0.01, 0.03].map(|target| {
        let rule = format!("algo.kl={{ kind = \"schulman\", beta = 1.0, target = {target} }}");
        (format!("adaptive KL {target}"), [off(), rule])
    }));
    all.extend([0.3, 1.0, 3.0, 10.0].map(|beta: f64| {
        (format!("fixed β {beta}"), [off(), format!("algo.kl={{ kind = \"fixed\", beta = {beta:?} }}")])
    }));
    all
}

/// A task: its config, and its steps.
const TASKS: [(&str, &str, u64); 4] = [
    ("CartPole", "ppo-cart-pole", 50_000),
    ("Acrobot", "ppo-acrobot", 100_000),
    ("Pendulum", "ppo-pendulum", 100_000),
    ("gridworld", "ppo-gridworld", 50_000),
];

/// Episodes that a run is scored by.
const EPISODES: f64 = 100.0;

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let settings = settings();
    let tasks = plan.pick(&TASKS[..], &TASKS[3..]);
    let mut jobs = Vec::new();
    for setting in 0..settings.len() {
        (0..tasks.len()).for_each(|task| jobs.extend(plan.seeds().map(|seed| (setting, task, seed))));
    }
    let scores = parallel(&jobs, |&(setting, task, seed)| {
        let (_, name, steps) = tasks[task];
        let mut changes = settings[setting].1.to_vec();
        changes.extend([
            format!("total_steps={}", plan.pick(steps, 4_096)),
            format!("eval.episodes={}", plan.pick(20, 5)),
            format!("seed={seed}"),
        ]);
        let run = trace(&config(name, &changes)?, &plan.device)?;
        let first = run.rows[0].get("eval/return_mean").unwrap_or(f64::NAN);
        Ok((last_episodes(&run), first))
    })?;

    // 0 for the untrained policy, 1 for the best setting's mean, task by task.
    let of = |setting: usize, task: usize| -> Vec<(f64, f64)> {
        let here = jobs.iter().zip(&scores).filter(|(job, _)| (job.0, job.1) == (setting, task));
        here.map(|(_, score)| *score).collect()
    };
    let mean = |scores: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        scores.iter().map(of).sum::<f64>() / scores.len() as f64
    };
    let ends: Vec<(f64, f64)> = (0..tasks.len())
        .map(|task| {
            let each: Vec<Vec<(f64, f64)>> = (0..settings.len()).map(|setting| of(setting, task)).collect();
            let untrained = mean(&each.concat(), |score| score.1);
            let best = each.iter().map(|runs| mean(runs, |score| score.0)).fold(f64::NEG_INFINITY, f64::max);
            (untrained, best)
        })
        .collect();
    let normalised = |setting: usize| -> Vec<Vec<f64>> {
        let task = |task: usize| {
            let (low, high) = ends[task];
            let width = if (high - low).abs() > 1e-9 { high - low } else { 1.0 };
            of(setting, task).iter().map(|(score, _)| (score - low) / width).collect()
        };
        (0..tasks.len()).map(task).collect()
    };

    let mut results = Results::default();
    let all: Vec<Vec<Vec<f64>>> = (0..settings.len()).map(normalised).collect();
    let none: Vec<&[f64]> = all[0].iter().map(Vec::as_slice).collect();
    let (mut bars, mut chances) = (Vec::new(), Vec::new());
    for (setting, (name, _)) in settings.iter().enumerate() {
        let strata: Vec<&[f64]> = all[setting].iter().map(Vec::as_slice).collect();
        let score = over_tasks(&strata);
        let pairs: Vec<(&[f64], &[f64])> = strata.iter().copied().zip(none.iter().copied()).collect();
        let chance = improvement(&pairs);
        let each = strata.concat();
        results.table.push([
            ("setting", name.as_str().into()),
            ("score_iqm", score.into()),
            ("score_mean", over_seeds(&each).into()),
            ("score_std", deviation(&each).into()),
            ("probability_of_improvement_over_none", chance.into()),
        ]);
        bars.push((setting as f64, score));
        chances.push((name.clone(), chance, score, deviation(&each)));
    }
    results.findings = findings(&chances);
    let names: Vec<String> =
        settings.iter().enumerate().map(|(i, (name, _))| format!("{i} {name}")).collect();
    let scales =
        tasks.iter().zip(&ends).map(|((task, ..), (low, high))| format!("{task} {low:.1} and {high:.1}"));
    results.notes.push(format!("Settings in the picture: {}.", names.join(", ")));
    results.notes.push(format!("Returns at 0 and 1: {}.", scales.collect::<Vec<_>>().join(", ")));
    results.pictures = vec![Picture {
        name: "scores".into(),
        title: "PPO's Table 1: interquartile mean of the normalised score".into(),
        x: Axis::linear("setting, by number"),
        y: Axis::linear("normalised score"),
        curves: vec![Curve::with_intervals("score over all tasks", Stroke::Points, bars)],
    }];
    Ok(results)
}

type Scored = (String, rl_core::bootstrap::Interval, rl_core::bootstrap::Interval, f64);

fn findings(all: &[Scored]) -> Vec<Finding> {
    let mut found: Vec<Finding> = all[1..]
        .iter()
        .map(|(name, chance, score, _)| {
            Finding::new(
                Verdict::above(*chance, 0.5),
                format!("{name} is better than no constraint"),
                format!("probability of improvement {}, score {}", shown(*chance), shown(*score)),
            )
        })
        .collect();
    let by_score = |a: &&Scored, b: &&Scored| a.2.estimate.total_cmp(&b.2.estimate);
    let (worst, best) = (all.iter().min_by(by_score), all.iter().max_by(by_score));
    let widest = all.iter().max_by(|a, b| a.3.total_cmp(&b.3));
    if let (Some(worst), Some(best), Some(widest)) = (worst, best, widest) {
        found.push(Finding::new(
            Verdict::of(worst.0 == all[0].0),
            "without a constraint PPO has the lowest score",
            format!("the lowest is that of {}: {}", worst.0, shown(worst.2)),
        ));
        found.push(Finding::new(
            Verdict::of(widest.0 == all[0].0),
            "and the largest spread",
            format!("the largest is that of {}: {:.2}", widest.0, widest.3),
        ));
        let apart = all.iter().filter(|other| other.2.high < best.2.low).count();
        let clear = apart + 1 == all.len();
        found.push(Finding::new(
            match (best.0 == "clip 0.2", clear) {
                (true, true) => Verdict::Held,
                (true, false) => Verdict::Open,
                (false, _) => Verdict::Failed,
            },
            "clip .2 is best, as in the paper",
            format!(
                "the best is {}: {}; {apart} of {} settings lie clearly below it",
                best.0,
                shown(best.2),
                all.len() - 1
            ),
        ));
    }
    found
}

/// The mean return of the last [`EPISODES`] episodes; of a run that broke, the untrained policy's.
fn last_episodes(run: &Trace) -> f64 {
    if run.broke.is_some() {
        return run.rows[0].get("eval/return_mean").unwrap_or(f64::NAN);
    }
    let (mut episodes, mut sum) = (0.0, 0.0);
    for row in run.rows.iter().rev() {
        let Some((n, mean)) = row.get("charts/episodes").zip(row.get("charts/episodic_return")) else {
            continue;
        };
        episodes += n;
        sum += n * mean;
        if episodes >= EPISODES {
            break;
        }
    }
    if episodes > 0.0 { sum / episodes } else { f64::NAN }
}

fn deviation(samples: &[f64]) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    (samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_a_config_of_every_task() {
        for (name, changes) in settings() {
            for (task, file, _) in TASKS {
                config(file, &changes).unwrap_or_else(|error| panic!("{name} on {task}: {error}"));
            }
        }
        assert_eq!(settings().len(), 11);
    }
}

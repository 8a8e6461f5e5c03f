//! `trust-region`: who survives three and ten times its step on CartPole.
//!
//! The shipped configs of REINFORCE, NPG, TRPO and PPO with a constant step of their first value, and three and ten times
//! that. The step of REINFORCE and PPO is their learning rate; that of NPG and TRPO is a length `√(2δ)` in the Fisher
//! metric, so that δ grows ninefold and a hundredfold. Reported are the greedy return in the end and the largest
//! KL(π_old ‖ π) of an update: exact for NPG and TRPO, estimated (k3) for the others.   Schulman 2015, §8.1

use anyhow::Result;

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds, shown};
use super::runs::{config, parallel, trace};

const MULTIPLES: [f64; 3] = [1.0, 3.0, 10.0];
/// The share of its return at one step that a method keeps if it survives.
const SURVIVES: f64 = 0.8;

/// A method: its config, its first step, and its measured KL.
struct Method {
    name: &'static str,
    config: &'static str,
    step: f64,
    kl: &'static str,
}

const METHODS: [Method; 4] = [
    Method { name: "REINFORCE", config: "reinforce-cart-pole", step: 5e-3, kl: "losses/approx_kl" },
    Method { name: "NPG", config: "npg-cart-pole", step: 0.02, kl: "losses/kl" },
    Method { name: "TRPO", config: "trpo-cart-pole", step: 0.02, kl: "losses/kl" },
    Method { name: "PPO", config: "ppo-cart-pole", step: 3e-3, kl: "losses/approx_kl" },
];

impl Method {
    /// The change that multiplies its step.
    fn change(&self, multiple: f64) -> String {
        match self.name {
            "NPG" | "TRPO" => format!("algo.max_kl={:?}", self.delta(multiple)),
            _ => format!("algo.optimizer.learning_rate={:?}", self.step * multiple),
        }
    }

    fn delta(&self, multiple: f64) -> f64 {
        self.step * multiple * multiple
    }
}

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let mut jobs = Vec::new();
    for method in 0..METHODS.len() {
        MULTIPLES.iter().for_each(|&multiple| jobs.extend(plan.seeds().map(|seed| (method, multiple, seed))));
    }
    let ends = parallel(&jobs, |&(method, multiple, seed)| {
        let method = &METHODS[method];
        let mut changes = vec![
            method.change(multiple),
            format!("total_steps={}", plan.pick(60_000, 4_096)),
            format!("eval.episodes={}", plan.pick(100, 5)),
            format!("seed={seed}"),
        ];
        if method.name == "PPO" {
            changes.push("algo.clip=0.2".into());
        }
        let run = trace(&config(method.config, &changes)?, &plan.device)?;
        Ok((run.last("eval/return_mean"), run.most(method.kl), f64::from(u8::from(run.broke.is_some()))))
    })?;

    let mut results = Results::default();
    let (mut returns, mut distances) = (Vec::new(), Vec::new());
    let mut bounded = None;
    for (m, method) in METHODS.iter().enumerate() {
        let (mut line, mut moved, mut one) = (Vec::new(), Vec::new(), f64::NAN);
        for multiple in MULTIPLES {
            let here = jobs.iter().zip(&ends).filter(|((method, at, _), _)| (*method, *at) == (m, multiple));
            let runs: Vec<(f64, f64, f64)> = here.map(|(_, end)| *end).collect();
            let reached = over_seeds(&runs.iter().map(|(reached, ..)| *reached).collect::<Vec<_>>());
            let largest = over_seeds(&runs.iter().map(|(_, kl, _)| *kl).collect::<Vec<_>>());
            let broke: f64 = runs.iter().map(|(.., broke)| broke).sum();
            results.table.push([
                ("method", method.name.into()),
                ("multiple", multiple.into()),
                ("return", reached.into()),
                ("largest_kl", largest.into()),
                ("broke", broke.into()),
            ]);
            if multiple == 1.0 {
                one = reached.estimate;
            } else {
                results.findings.push(Finding::new(
                    Verdict::above(reached, SURVIVES * one),
                    format!("{} survives {multiple} times its step", method.name),
                    format!(
                        "return {} after {one:.1}; largest KL of an update {}",
                        shown(reached),
                        shown(largest)
                    ),
                ));
            }
            if method.name == "TRPO" {
                let over = runs.iter().map(|(_, kl, _)| kl / method.delta(multiple)).fold(0.0, f64::max);
                bounded = Some(bounded.unwrap_or(0.0_f64).max(over));
            }
            line.push((multiple, reached));
            moved.push((multiple, largest));
        }
        returns.push(Curve::with_intervals(method.name, Stroke::Line, line));
        distances.push(Curve::with_intervals(method.name, Stroke::Line, moved));
    }
    results.findings.extend(bounded.map(|most| {
        Finding::new(
            Verdict::of(most <= 1.0 + 1e-6),
            "no update of TRPO costs more than δ",
            format!("the largest cost {most:.3} of it"),
        )
    }));
    let x = Axis::log("multiple of the step");
    results.pictures = vec![
        Picture {
            name: "return".into(),
            title: "CartPole: return in the end against the step".into(),
            x,
            y: Axis::linear("greedy return"),
            curves: returns,
        },
        Picture {
            name: "kl".into(),
            title: "CartPole: the largest KL of an update".into(),
            x,
            y: Axis::log("KL(π_old ‖ π), nats per decision"),
            curves: distances,
        },
    ];
    Ok(results)
}

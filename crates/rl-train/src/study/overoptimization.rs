//! `overoptimization`: what becomes of gold when a policy pleases a proxy, and what holds it.
//!
//! Reward models of two kinds (unigram counts, which cannot see that a third copy of a token hurts; unigram and bigram
//! counts) on 100 to 5,000 comparisons, one per seed. Against each: PPO without a penalty and best-of-n; against those of
//! 1,000 comparisons also PPO with a fixed and with an adaptive β; DPO on the same comparisons. Gold, proxy and KL are
//! exact.   Gao 2022, figures 1, 3, 6 and 9

mod claims;

use anyhow::Result;
use rl_algos::streams;
use rl_core::schedule::Schedule;
use rl_envs::token_world::proxy::comparisons;

use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Results, over_seeds};
use super::runs::{config, parallel, trace};
use super::token::{DpoRun, Point, adaptive, best_of_n, fixed, gold_at, path, peak, ppo_size, updates};
use super::{Plan, Size};
use crate::rlhf::TokenTask;
use crate::rlhf::config::{RewardKind, TokenWorldConfig, WorldSize};

/// Comparisons that reward models are fitted to.
const PAIRS: [usize; 4] = [100, 300, 1000, 5000];
/// Comparisons at which control is compared.
const MIDDLE: usize = 1000;
/// β of the fixed price; the target of the adaptive one, nats.
const FIXED_BETA: f64 = 0.3;
const TARGET: f64 = 1.3;
/// Steps of the pictures and tables, in √nats.
const STEP: f64 = 0.2;

/// What optimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Free,
    Fixed,
    Adaptive,
    BestOfN,
    Dpo,
}

impl Method {
    const ALL: [Self; 5] = [Self::Free, Self::Fixed, Self::Adaptive, Self::BestOfN, Self::Dpo];

    fn name(self) -> &'static str {
        match self {
            Self::Free => "PPO, β = 0",
            Self::Fixed => "PPO, fixed β",
            Self::Adaptive => "PPO, adaptive β",
            Self::BestOfN => "best-of-n",
            Self::Dpo => "DPO",
        }
    }
}

/// One cell of the study.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Setting {
    method: Method,
    proxy: RewardKind,
    pairs: usize,
}

/// A path and what was said on it.
struct Walk {
    path: Vec<Point>,
    /// The update and the measured gold of the first alarm.
    alarm: Option<(u64, f64)>,
}

/// A setting and its walks, one per seed.
struct Cell {
    setting: Setting,
    walks: Vec<Walk>,
}

fn proxy_name(proxy: RewardKind) -> &'static str {
    match proxy {
        RewardKind::Unigram => "unigram",
        RewardKind::Bigram => "bigram",
        RewardKind::Network => "network",
        RewardKind::Gold => "gold",
    }
}

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let mut settings = Vec::new();
    for proxy in [RewardKind::Unigram, RewardKind::Bigram] {
        for &pairs in plan.pick(&PAIRS[..], &PAIRS[2..]) {
            for method in Method::ALL {
                let controlled = matches!(method, Method::Fixed | Method::Adaptive);
                // DPO has no reward model: it is not done twice.
                let twice = method == Method::Dpo && proxy == RewardKind::Bigram;
                if (!controlled || pairs == MIDDLE) && !twice {
                    settings.push(Setting { method, proxy, pairs });
                }
            }
        }
    }
    let jobs: Vec<(Setting, u64)> =
        settings.iter().flat_map(|&setting| plan.seeds().map(move |seed| (setting, seed))).collect();
    let mut walks = parallel(&jobs, |&(setting, seed)| walk(plan, setting, seed))?.into_iter();
    let cells: Vec<Cell> = settings
        .into_iter()
        .map(|setting| Cell { setting, walks: walks.by_ref().take(plan.seeds as usize).collect() })
        .collect();

    let mut results = Results::default();
    for Cell { setting, walks } in &cells {
        let over = |of: &dyn Fn(&Walk) -> f64| over_seeds(&walks.iter().map(of).collect::<Vec<_>>());
        let end = |walk: &Walk| walk.path[walk.path.len() - 1];
        results.table.push([
            ("method", setting.method.name().into()),
            ("proxy", proxy_name(setting.proxy).into()),
            ("comparisons", (setting.pairs as f64).into()),
            ("peak_gold", over(&|walk| peak(&walk.path).gold).into()),
            ("peak_kl", over(&|walk| peak(&walk.path).kl).into()),
            ("end_gold", over(&|walk| end(walk).gold).into()),
            ("end_proxy", over(&|walk| end(walk).score).into()),
            ("end_gap", over(&|walk| end(walk).score - end(walk).gold).into()),
            ("end_kl", over(&|walk| end(walk).kl).into()),
        ]);
    }
    results.findings = claims::of(&cells);
    results.pictures = pictures(&cells);
    results.notes.push(format!(
        "Fixed β = {FIXED_BETA}, adaptive target {TARGET} nats, both against proxies of {MIDDLE} comparisons. Gold and \
         proxy have mean 0 and standard deviation 1 under the reference."
    ));
    Ok(results)
}

fn walk(plan: &Plan, setting: Setting, seed: u64) -> Result<Walk> {
    let Setting { method, proxy, pairs } = setting;
    let world = if plan.size == Size::Quick { WorldSize::Small } else { WorldSize::Full };
    let task = || {
        let setting = TokenWorldConfig { world, reward: proxy, pairs, ..TokenWorldConfig::default() };
        TokenTask::new(&setting, seed, &plan.device.device)
    };
    let control = match method {
        Method::Free => fixed(0.0),
        Method::Fixed => fixed(FIXED_BETA),
        Method::Adaptive => adaptive(1.0, TARGET),
        Method::BestOfN => {
            let task = task()?;
            let path = best_of_n(&task.world, &task.reward, plan.pick(14, 6));
            return Ok(Walk { path, alarm: None });
        }
        Method::Dpo => {
            let task = task()?;
            // The comparisons that the reward models of this seed are fitted to.
            let comparisons = comparisons(&task.world, pairs, &mut streams::judge(seed));
            let run = DpoRun {
                task: &task,
                comparisons: &comparisons,
                beta: 0.1,
                steps: plan.pick(400, 12),
                batch: 256,
                learning_rate: Schedule::Constant(0.02),
                seed,
            };
            return Ok(Walk { path: run.path(plan.pick(20, 4))?, alarm: None });
        }
    };
    let mut changes = updates(plan, 250, 25);
    changes.extend(ppo_size(plan));
    changes.extend([
        control,
        format!("token_world.reward={}", proxy_name(proxy)),
        format!("token_world.pairs={pairs}"),
        "algo.optimizer.learning_rate=0.02".into(),
        format!("seed={seed}"),
    ]);
    let trace = trace(&config("rlhf-token-world", &changes)?, &plan.device)?;
    let first = trace.rows.iter().find(|row| row.get("guards/alarms").is_some_and(|alarms| alarms > 0.0));
    let alarm = first.and_then(|row| Some((row.update, row.get("objective/gold")?)));
    Ok(Walk { path: path(&trace), alarm })
}

impl Cell {
    /// Gold at a distance, averaged over the seeds that get there; `None` if fewer than half do.
    fn gold_at(&self, kl: f64) -> Option<rl_core::bootstrap::Interval> {
        let there: Vec<f64> = self.walks.iter().filter_map(|walk| gold_at(&walk.path, kl)).collect();
        (2 * there.len() >= self.walks.len() && !there.is_empty()).then(|| over_seeds(&there))
    }

    /// Mean gold (or another number) against √KL.
    fn curve(&self, of: fn(&Point) -> f64) -> Vec<(f64, rl_core::bootstrap::Interval)> {
        let mean = |d: f64| {
            let of_walk = |walk: &Walk| {
                let as_gold: Vec<Point> =
                    walk.path.iter().map(|point| Point { gold: of(point), ..*point }).collect();
                gold_at(&as_gold, d * d)
            };
            let there: Vec<f64> = self.walks.iter().filter_map(of_walk).collect();
            (2 * there.len() >= self.walks.len() && !there.is_empty()).then(|| (d, over_seeds(&there)))
        };
        (0..25).filter_map(|i| mean(STEP * f64::from(i))).collect()
    }
}

fn pictures(cells: &[Cell]) -> Vec<Picture> {
    let x = Axis::linear("√KL(π ‖ π_ref), √nats");
    let mut pictures = Vec::new();
    for proxy in ["unigram", "bigram"] {
        let of = |cell: &&Cell| cell.setting.pairs == MIDDLE && proxy_name(cell.setting.proxy) == proxy;
        let mut curves = Vec::new();
        for cell in cells.iter().filter(of) {
            let name = cell.setting.method.name();
            curves.push(Curve::with_intervals(
                format!("{name}: gold"),
                Stroke::Line,
                cell.curve(|point| point.gold),
            ));
        }
        let free = cells.iter().filter(of).filter(|cell| cell.setting.method == Method::Free);
        curves.extend(free.map(|cell| {
            let line = cell.curve(|point| point.score);
            Curve::with_intervals("PPO, β = 0: proxy", Stroke::Bound, line)
        }));
        pictures.push(Picture {
            name: format!("gold-{proxy}"),
            title: format!("Gold against distance: {proxy} proxy of {MIDDLE} comparisons"),
            x,
            y: Axis::linear("gold; proxy in grey"),
            curves,
        });
        for method in [Method::Free, Method::BestOfN] {
            let of = |cell: &&Cell| cell.setting.method == method && proxy_name(cell.setting.proxy) == proxy;
            let curves = cells.iter().filter(of).map(|cell| {
                let name = format!("{} comparisons", cell.setting.pairs);
                Curve::with_intervals(name, Stroke::Line, cell.curve(|point| point.gold))
            });
            let file = if method == Method::Free { "ppo" } else { "best-of-n" };
            pictures.push(Picture {
                name: format!("data-{file}-{proxy}"),
                title: format!("{}, {proxy} proxy: more comparisons", method.name()),
                x,
                y: Axis::linear("gold"),
                curves: curves.collect(),
            });
        }
    }
    pictures
}

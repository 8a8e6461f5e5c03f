//! `kakade-plateau`: Kakade's two-state chain, where the plain gradient stalls at an average reward of 1.
//!
//! Exact gradients of the average reward. The paper's start (visitation .8/.2), where both methods are deterministic, and
//! one start near it per seed. Step sizes are those of the published figure: 1 for the plain gradient, .1 for the
//! natural one.   Kakade 2001, §4

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_envs::kakade::{average_reward, average_reward_gradient, natural_gradient, visitation};

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds, shown};

/// Learnt: nearly all of the best average reward, 2.
const LEARNT: f64 = 1.9;
/// Stalled: near the reward of staying in the wrong state.
const STALL: std::ops::Range<f64> = 0.9..1.1;
/// More updates than any start here takes.
const MOST: usize = 100_000;
/// How far a seed's start may lie from the paper's, in each logit.
const SPREAD: f64 = 0.3;

/// A way to climb: its name, its direction, its step size.
type Method = (&'static str, fn([f64; 2]) -> [f64; 2], f64);
const METHODS: [Method; 2] =
    [("plain", average_reward_gradient as _, 1.0), ("natural", natural_gradient as _, 0.1)];

/// A climb from one start.
struct Climb {
    /// Updates until the average reward is [`LEARNT`].
    updates: f64,
    /// Updates of those spent in [`STALL`].
    stalled: f64,
    /// The smallest share of time in the good state.
    least_visits: f64,
    /// Average reward and visits of the good state at every update.
    path: Vec<[f64; 2]>,
}

fn climb((_, direction, step): Method, start: [f64; 2]) -> Climb {
    let mut logits = start.map(|p: f64| (p / (1.0 - p)).ln());
    let mut path = Vec::new();
    let mut stalled = 0;
    for _ in 0..MOST {
        let stay = logits.map(|z| 1.0 / (1.0 + f64::exp(-z)));
        let eta = average_reward(stay);
        path.push([eta, visitation(stay)[1]]);
        if eta > LEARNT {
            break;
        }
        stalled += usize::from(STALL.contains(&eta));
        let along = direction(stay);
        logits = [0, 1].map(|s| logits[s] + step * along[s]);
    }
    let least_visits = path.iter().map(|at| at[1]).fold(f64::INFINITY, f64::min);
    Climb { updates: (path.len() - 1) as f64, stalled: stalled as f64, least_visits, path }
}

/// The paper's start, moved a little.
fn start(seed: u64) -> [f64; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    [0.8, 0.2].map(|p: f64| {
        let z = (p / (1.0 - p)).ln() + rng.random_range(-SPREAD..SPREAD);
        1.0 / (1.0 + (-z).exp())
    })
}

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let mut results = Results::default();
    let (mut paths, mut spreads) = (Vec::new(), Vec::new());
    for method in METHODS {
        let paper = climb(method, [0.8, 0.2]);
        let climbs: Vec<Climb> = plan.seeds().map(|seed| climb(method, start(seed))).collect();
        let over = |of: fn(&Climb) -> f64| over_seeds(&climbs.iter().map(of).collect::<Vec<_>>());
        let updates = over(|climb| climb.updates);
        results.table.push([
            ("gradient", method.0.into()),
            ("step", method.2.into()),
            ("updates", paper.updates.into()),
            ("updates_near_1", paper.stalled.into()),
            ("least_visits", paper.least_visits.into()),
            ("updates_over_starts", updates.into()),
            ("updates_near_1_over_starts", over(|climb| climb.stalled).into()),
            ("least_visits_over_starts", over(|climb| climb.least_visits).into()),
        ]);
        spreads.push((updates, climbs.iter().map(|climb| climb.updates).fold(0.0, f64::max)));
        paths.push((method.0, paper));
    }
    let [(_, plain), (_, natural)] = &paths[..] else { unreachable!("two methods") };
    let learnt = |climb: &Climb| climb.path.last().is_some_and(|at| at[0] > LEARNT);
    results.findings = vec![
        Finding::new(
            Verdict::of(plain.stalled >= 100.0),
            "from the paper's start the plain gradient stalls near an average reward of 1 for hundreds of updates",
            format!(
                "{} of its {} updates; visits of the good state fall to {:.3}",
                plain.stalled, plain.updates, plain.least_visits
            ),
        ),
        Finding::new(
            Verdict::of(learnt(natural) && natural.updates < 30.0),
            "the natural gradient needs fewer than 30 updates",
            format!("{}; visits of the good state stay above {:.2}", natural.updates, natural.least_visits),
        ),
        Finding::new(
            Verdict::above(spreads[0].0, 100.0),
            "from starts near it the plain gradient needs more than 100 updates on average",
            format!("{} updates, at most {}", shown(spreads[0].0), spreads[0].1),
        ),
        Finding::new(
            Verdict::of(spreads[1].1 < 30.0),
            "from every start near it the natural gradient needs fewer than 30",
            format!("{} updates, at most {}", shown(spreads[1].0), spreads[1].1),
        ),
    ];
    let curves = |of: usize| {
        let each = paths.iter().map(|(name, climb)| {
            let points = climb.path.iter().enumerate().map(|(update, at)| (update as f64 + 1.0, at[of]));
            Curve::exact(format!("{name} gradient"), Stroke::Line, points)
        });
        each.collect::<Vec<_>>()
    };
    let x = Axis::log("update");
    results.pictures = vec![
        Picture {
            name: "average-reward".into(),
            title: "Kakade's chain: average reward".into(),
            x,
            y: Axis::linear("average reward per step"),
            curves: curves(0),
        },
        Picture {
            name: "visits".into(),
            title: "Kakade's chain: how often the good state is visited".into(),
            x,
            y: Axis::log("share of time in the good state"),
            curves: curves(1),
        },
    ];
    Ok(results)
}

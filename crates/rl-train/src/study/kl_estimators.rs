//! `kl-estimators`: bias and noise of k1, k2 and k3, as numbers and as gradients.
//!
//! In the small token world everything is a sum. A policy `π ∝ π_ref·exp(s·f)` is put at a chosen KL from its reference,
//! with f the gold reward or, per seed, random; then for one sample y
//!
//! ```text
//! estimate    k(y)                          bias E[k] − KL, noise σ[k]
//! in a loss   ∂k(y)/∂log π(y) · ∇log π(y)   the sample held fixed
//! in a reward k(y) · ∇log π(y)              the score function
//! ```
//!
//! and the expected gradient is compared with those of KL(π ‖ π_ref) and of KL(π_ref ‖ π). The logits are one number per
//! sentence, so that `∇log π(y) = e_y − π`.

use anyhow::Result;
use burn::tensor::{DType, Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_core::bootstrap::Interval;
use rl_core::kl::KlEstimator;
use rl_core::real::dot;
use rl_envs::token_world::exact::{kl, log_softmax};
use rl_envs::token_world::fixed;

use super::Plan;
use super::picture::{Axis, Curve, Picture, Stroke};
use super::results::{Finding, Results, Verdict, over_seeds, shown};

const DISTANCES: [f64; 6] = [0.01, 0.03, 0.1, 0.3, 1.0, 2.0];
const ESTIMATORS: [(&str, KlEstimator); 3] =
    [("k1", KlEstimator::K1), ("k2", KlEstimator::K2), ("k3", KlEstimator::K3)];
/// Which law is sampled, and thus which way round the divergence is.
const DIRECTIONS: [&str; 2] = ["KL(π ‖ π_ref)", "KL(π_ref ‖ π)"];

/// One estimator at one distance.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// `(E[k] − KL)/KL`
    bias: f64,
    /// `σ[k]/KL`
    noise: f64,
}

/// One way to make a gradient of an estimator.
#[derive(Debug, Clone, Copy)]
struct Gradient {
    /// `‖E[g]‖/‖∇KL(π ‖ π_ref)‖`
    length: f64,
    /// The cosine between E\[g\] and ∇KL(π ‖ π_ref); 0 for no gradient at all.
    forward: f64,
    /// The same with ∇KL(π_ref ‖ π).
    reverse: f64,
    /// `√Var[g]/‖∇KL(π ‖ π_ref)‖`
    noise: f64,
}

/// Everything about one policy.
struct Measured {
    distance: f64,
    /// By direction and estimator.
    estimates: [[Estimate; 3]; 2],
    /// By place (loss, reward) and estimator.
    gradients: [[Gradient; 3]; 2],
}

/// Does the study.
pub fn run(plan: &Plan) -> Result<Results> {
    let world = fixed::small();
    let (reference, gold) = (world.reference(), world.gold());
    let distances = plan.pick(&DISTANCES[..], &DISTANCES[2..5]);
    let tilts: Vec<Measured> = distances
        .iter()
        .map(|&distance| measure(reference, &at_distance(reference, gold, distance)))
        .collect();
    let mut random: Vec<Vec<Measured>> = Vec::new();
    for seed in plan.seeds() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let f: Vec<f64> = gold.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
        let at = |&distance| measure(reference, &at_distance(reference, &f, distance));
        random.push(distances.iter().map(at).collect());
    }

    let mut results = Results::default();
    for (d, &distance) in distances.iter().enumerate() {
        for (e, (name, _)) in ESTIMATORS.iter().enumerate() {
            let tilt = &tilts[d];
            let over = |of: &dyn Fn(&Measured) -> f64| -> Interval {
                over_seeds(&random.iter().map(|path| of(&path[d])).collect::<Vec<_>>())
            };
            results.table.push([
                ("kl", distance.into()),
                ("estimator", (*name).into()),
                ("bias_tilt", tilt.estimates[0][e].bias.into()),
                ("bias", over(&|at| at.estimates[0][e].bias).into()),
                ("noise_tilt", tilt.estimates[0][e].noise.into()),
                ("noise", over(&|at| at.estimates[0][e].noise).into()),
                ("bias_other_direction", over(&|at| at.estimates[1][e].bias).into()),
                ("noise_other_direction", over(&|at| at.estimates[1][e].noise).into()),
                ("loss_length", over(&|at| at.gradients[0][e].length).into()),
                ("loss_cosine_to_kl_policy_reference", over(&|at| at.gradients[0][e].forward).into()),
                ("loss_cosine_to_kl_reference_policy", over(&|at| at.gradients[0][e].reverse).into()),
                ("loss_noise", over(&|at| at.gradients[0][e].noise).into()),
                ("reward_length", over(&|at| at.gradients[1][e].length).into()),
                ("reward_cosine_to_kl_policy_reference", over(&|at| at.gradients[1][e].forward).into()),
                ("reward_noise", over(&|at| at.gradients[1][e].noise).into()),
            ]);
        }
    }
    results.findings = findings(&tilts, &random);
    results.pictures = pictures(distances, &random);
    results.notes.push(format!(
        "Bias and noise are those of one sample, as shares of the divergence. Rows are of {}; the columns \
         *other_direction* are of {}, sampled from the reference. The *tilt* columns are of π ∝ π_ref·exp(gold/β), the \
         others of random directions, one per seed.",
        DIRECTIONS[0], DIRECTIONS[1]
    ));
    Ok(results)
}

/// `π ∝ π_ref·exp(s·f)` with the s > 0 at which `KL(π ‖ π_ref)` is `distance`, by bisection.
fn at_distance(reference: &[f64], f: &[f64], distance: f64) -> Vec<f64> {
    let at = |s: f64| log_softmax(&reference.iter().zip(f).map(|(l, f)| l + s * f).collect::<Vec<_>>());
    let (mut low, mut high) = (0.0, 1.0);
    while kl(&at(high), reference) < distance && high < 1e6 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if kl(&at(middle), reference) < distance { low = middle } else { high = middle }
    }
    at(high)
}

/// Estimate and slope `∂k/∂r` at each log-ratio, by the formulas that training uses.
fn estimate_and_slope(estimator: KlEstimator, log_ratio: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let data = TensorData::new(log_ratio.to_vec(), [log_ratio.len()]);
    let r = Tensor::<1>::from_data(data, (&Device::flex(), DType::F64)).autodiff().require_grad();
    let k = estimator.estimate(r.clone());
    let slope = r.grad(&k.clone().sum().backward()).expect("the estimate depends on the log-ratio");
    let numbers = |x: Tensor<1>| x.into_data().try_into_vec_as::<f64>().expect("floats convert to f64");
    (numbers(k.inner()), numbers(slope))
}

fn measure(reference: &[f64], policy: &[f64]) -> Measured {
    let (forward, reverse) = (kl(policy, reference), kl(reference, policy));
    let p: Vec<f64> = policy.iter().map(|l| l.exp()).collect();
    let q: Vec<f64> = reference.iter().map(|l| l.exp()).collect();
    let ratio = |new: &[f64], old: &[f64]| new.iter().zip(old).map(|(n, o)| n - o).collect::<Vec<_>>();
    let (r, back) = (ratio(reference, policy), ratio(policy, reference));
    let estimates = [(&p, &r, forward), (&q, &back, reverse)].map(|(law, r, truth)| {
        ESTIMATORS.map(|(_, estimator)| {
            let (k, _) = estimate_and_slope(estimator, r);
            let mean = dot(law, &k);
            let variance: f64 = law.iter().zip(&k).map(|(p, k)| p * (k - mean).powi(2)).sum();
            Estimate { bias: mean / truth - 1.0, noise: variance.sqrt() / truth }
        })
    });
    // ∇KL(π ‖ π_ref) = π·(log π/π_ref − KL),   ∇KL(π_ref ‖ π) = π − π_ref
    let to_reference: Vec<f64> = p.iter().zip(&r).map(|(p, r)| p * (-r - forward)).collect();
    let from_reference: Vec<f64> = p.iter().zip(&q).map(|(p, q)| p - q).collect();
    let each = ESTIMATORS.map(|(_, estimator)| {
        let (k, slope) = estimate_and_slope(estimator, &r);
        // r falls as log π rises
        let in_loss: Vec<f64> = slope.iter().map(|slope| -slope).collect();
        [
            gradient(&p, &in_loss, &to_reference, &from_reference),
            gradient(&p, &k, &to_reference, &from_reference),
        ]
    });
    let gradients = [0, 1].map(|place| each.map(|both| both[place]));
    Measured { distance: forward, estimates, gradients }
}

/// The gradient `c(y)·(e_y − π)`, over y ∼ π.
fn gradient(p: &[f64], c: &[f64], forward: &[f64], reverse: &[f64]) -> Gradient {
    let mean_c = dot(p, c);
    let mean: Vec<f64> = p.iter().zip(c).map(|(p, c)| p * (c - mean_c)).collect();
    // ‖e_y − π‖² = 1 − 2π(y) + ‖π‖²
    let norm = dot(p, p);
    let square: f64 = p.iter().zip(c).map(|(p, c)| p * c * c * (1.0 - 2.0 * p + norm)).sum();
    let length = |x: &[f64]| dot(x, x).sqrt();
    let unit = length(forward);
    let relative = length(&mean) / unit;
    // A vector of rounding errors points nowhere.
    let cosine =
        |to: &[f64]| if relative < 1e-9 { 0.0 } else { dot(&mean, to) / (length(&mean) * length(to)) };
    let variance = (square - dot(&mean, &mean)).max(0.0);
    Gradient {
        length: relative,
        forward: cosine(forward),
        reverse: cosine(reverse),
        noise: variance.sqrt() / unit,
    }
}

fn findings(tilts: &[Measured], random: &[Vec<Measured>]) -> Vec<Finding> {
    let all = || tilts.iter().chain(random.iter().flatten());
    let worst = |of: &dyn Fn(&Measured) -> f64| all().map(of).fold(0.0, f64::max);
    let least = |of: &dyn Fn(&Measured) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
    let unbiased = worst(&|at| {
        (0..2).map(|d| at.estimates[d][0].bias.abs().max(at.estimates[d][2].bias.abs())).fold(0.0, f64::max)
    });
    let last = tilts.len() - 1;
    let k2_bias = |d: usize| {
        over_seeds(&random.iter().map(|path| path[d].estimates[0][1].bias.abs()).collect::<Vec<_>>())
    };
    let (small, large) = (k2_bias(0), k2_bias(last));
    let louder =
        |at: &Measured, direction: usize| at.estimates[direction][2].noise / at.estimates[direction][0].noise;
    let calm = |direction: usize, near: bool| {
        let here =
            || all().filter(|at| !near || at.distance < 0.11).map(|at| (at.distance, louder(at, direction)));
        let quiet = here().filter(|(_, ratio)| *ratio < 1.0).count();
        let most = here().fold((0.0, 0.0), |most: (f64, f64), at| if at.1 > most.1 { at } else { most });
        let evidence = format!(
            "{quiet} of {} policies; at most {:.2} times its noise, at {:.2} nats",
            here().count(),
            most.1,
            most.0
        );
        (Verdict::of(quiet == here().count()), evidence)
    };
    let ((near, near_numbers), (far, far_numbers), (back, back_numbers)) =
        (calm(0, true), calm(0, false), calm(1, false));
    let nothing = worst(&|at| at.gradients[0][0].length);
    let k2_right = least(&|at| at.gradients[0][1].forward);
    let k3_right = least(&|at| at.gradients[0][2].forward);
    let k3_other = least(&|at| at.gradients[0][2].reverse);
    let k1_reward = least(&|at| at.gradients[1][0].forward);
    let k3_reward = least(&|at| at.gradients[1][2].forward);
    vec![
        Finding::new(
            Verdict::of(unbiased < 1e-9),
            "k1 and k3 are unbiased in both directions",
            format!("largest bias {unbiased:.0e} of the divergence"),
        ),
        Finding::new(
            Verdict::of(large.estimate > small.estimate && small.estimate < 0.1),
            "k2's bias vanishes with the distance",
            format!(
                "{} of the divergence at {} nats, {} at {}",
                shown(small),
                tilts[0].distance.round_to(2),
                shown(large),
                tilts[last].distance.round_to(2)
            ),
        ),
        Finding::new(near, "k3 is quieter than k1 up to .1 nats", near_numbers),
        Finding::new(far, "k3 is quieter than k1 at every distance", far_numbers),
        Finding::new(
            back,
            "k3 is quieter than k1 at every distance if the reference is sampled and not the policy",
            back_numbers,
        ),
        Finding::new(
            Verdict::of(nothing < 1e-9),
            "k1 in a loss has no gradient in expectation, only noise",
            format!("‖E[g]‖ ≤ {nothing:.0e} of ‖∇KL(π ‖ π_ref)‖"),
        ),
        Finding::new(
            Verdict::of(k2_right > 1.0 - 1e-9),
            "k2 in a loss follows ∇KL(π ‖ π_ref)",
            format!("cosine ≥ {k2_right:.9}"),
        ),
        Finding::new(
            Verdict::of(k3_other > 1.0 - 1e-9 && k3_right < 1.0 - 1e-6),
            "k3 in a loss follows the other direction, ∇KL(π_ref ‖ π), and not ∇KL(π ‖ π_ref)",
            format!("cosine ≥ {k3_other:.9} to the one, down to {k3_right:.2} to the other"),
        ),
        Finding::new(
            Verdict::of(k1_reward > 1.0 - 1e-9),
            "k1 in the reward follows ∇KL(π ‖ π_ref)",
            format!("cosine ≥ {k1_reward:.9}"),
        ),
        Finding::new(
            Verdict::of(k3_reward < 1.0 - 1e-6),
            "k3 in the reward does not: its own derivative is missing",
            format!("cosine down to {k3_reward:.2}"),
        ),
    ]
}

/// Numbers as people read them.
trait RoundTo {
    fn round_to(self, digits: i32) -> f64;
}

impl RoundTo for f64 {
    fn round_to(self, digits: i32) -> f64 {
        let scale = 10f64.powi(digits);
        (self * scale).round() / scale
    }
}

fn pictures(distances: &[f64], random: &[Vec<Measured>]) -> Vec<Picture> {
    let curve = |name: String, of: &dyn Fn(&Measured) -> f64| {
        let points = distances.iter().enumerate().map(|(d, &distance)| {
            (distance, over_seeds(&random.iter().map(|path| of(&path[d])).collect::<Vec<_>>()))
        });
        Curve::with_intervals(name, Stroke::Line, points.collect())
    };
    let x = Axis::log("KL(π ‖ π_ref), nats");
    let estimates = ESTIMATORS.iter().enumerate();
    let noise = estimates.clone().map(|(e, (name, _))| curve((*name).into(), &|at| at.estimates[0][e].noise));
    let gradients = ["loss", "reward"].iter().enumerate().flat_map(|(place, where_)| {
        let each = ESTIMATORS.iter().enumerate();
        each.map(move |(e, (name, _))| (place, e, format!("{name} in the {where_}")))
    });
    let cosines = gradients.map(|(place, e, name)| curve(name, &|at| at.gradients[place][e].forward));
    vec![
        Picture {
            name: "noise".into(),
            title: "Standard deviation of one sample's estimate, as a share of the divergence".into(),
            x,
            y: Axis::log("σ[k] / KL"),
            curves: noise.collect(),
        },
        Picture {
            name: "gradients".into(),
            title: "Which way the expected gradient points".into(),
            x,
            y: Axis::linear("cosine to ∇KL(π ‖ π_ref)"),
            curves: cosines.collect(),
        },
    ]
}

//! Controllers hold the KL that they are told to hold, from wherever β starts.

use rl_core::kl_control::KlController;
use rl_envs::token_world::fixed;
use rl_tests::token_lesson::{Point, TokenLesson};

use crate::{RESPONSES, ppo, slow};
use rl_algos::{AdvantageNorm, KlPlace};
use rl_core::kl::KlEstimator;
use rl_models::Contexts;

const TARGET: f64 = 1.0;
const STARTS: [f64; 6] = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// The run, and the mean KL of its last third.
fn held(controller: KlController, updates: u64) -> (f64, Vec<Point>) {
    let lesson = TokenLesson::exact(fixed::small());
    let mut config = ppo(0.1, KlPlace::Reward, KlEstimator::K1);
    config.rollout.kl = controller;
    config.optimizer.learning_rate = 0.05.into();
    assert_eq!(config.rollout.responses(), RESPONSES);
    let (_, path) = lesson.ppo(&config, updates, 5, 1);
    assert!(path.iter().all(|point| point.beta.is_finite() && point.kl.is_finite()));
    let late = &path[path.len() * 2 / 3..];
    (late.iter().map(|point| point.kl).sum::<f64>() / late.len() as f64, path)
}

/// At most 6% per update: five decades take 200 updates, and the policy keeps up with a β that moves so slowly.
#[test]
fn the_proportional_rule_settles_within_five_percent_of_its_target() {
    for beta in STARTS {
        let controller = KlController::Proportional { beta, target: TARGET, gain: 0.3, min: 1e-6, max: 1e3 };
        let (kl, path) = held(controller, 300);
        let last = path[path.len() - 1].beta;
        println!("proportional from β = {beta}: KL {kl:.3} nats, β {last:.3}");
        assert!((kl - TARGET).abs() < 0.05 * TARGET, "from β = {beta}: KL {kl}, target {TARGET}");
    }
}

/// The targets that are missed by more than 5% from these β₀ in the full world, where a table of per-position bigrams has
/// room for six nats. KL is exact.
fn missed(starts: &[f64], updates: u64) -> Vec<(f64, f64, f64)> {
    let world = fixed::full();
    let contexts = Contexts::bigram(world.vocabulary(), world.length());
    let lesson = TokenLesson { reward: world.gold().into(), contexts, world: world.into() };
    let mut missed = vec![];
    for target in [1.0, 2.0, 4.0, 6.0] {
        for &beta in starts {
            let mut config = ppo(0.1, KlPlace::Reward, KlEstimator::K1);
            config.rollout.kl = KlController::Proportional { beta, target, gain: 0.3, min: 1e-6, max: 1e3 };
            config.advantage_norm = AdvantageNorm::Rollout;
            config.optimizer.learning_rate = 0.02.into();
            let (_, path) = lesson.ppo(&config, updates, 10, 1);
            assert!(path.iter().all(|point| point.beta.is_finite() && point.kl.is_finite()));
            let late = &path[path.len() * 2 / 3..];
            let kl = late.iter().map(|point| point.kl).sum::<f64>() / late.len() as f64;
            println!("target {target} from β = {beta}: KL {kl:.3} nats, β {:.4}", late[late.len() - 1].beta);
            if (kl - target).abs() > 0.05 * target {
                missed.push((target, beta, kl));
            }
        }
    }
    missed
}

#[test]
fn every_target_is_held_from_four_decades_of_prices() {
    let missed = if slow() { missed(&STARTS[1..], 400) } else { vec![] };
    assert!(missed.is_empty(), "(target, β₀, KL): {missed:?}");
}

/// From 1e-4 the policy has narrowed long before β has a say, and comes back the slower: after 400 updates KL was still
/// 9 to 14% below targets of 2, 4 and 6.
#[test]
fn from_a_price_that_is_far_too_low_it_takes_longer() {
    let missed = if slow() { missed(&STARTS[..1], 700) } else { vec![] };
    assert!(missed.is_empty(), "(target, β₀, KL): {missed:?}");
}

#[test]
fn the_band_rules_settle_within_their_bands() {
    for beta in [1e-4, 0.1, 10.0] {
        let (kl, _) = held(KlController::band(beta, TARGET), 200);
        println!("band from β = {beta}: KL {kl:.3} nats");
        assert!((TARGET / 2.0..2.0 * TARGET).contains(&kl), "band from β = {beta}: KL {kl}");
        let (kl, _) = held(KlController::schulman(beta, TARGET), 200);
        println!("Schulman's rule from β = {beta}: KL {kl:.3} nats");
        assert!((TARGET / 1.5..1.5 * TARGET).contains(&kl), "Schulman's rule from β = {beta}: KL {kl}");
    }
}

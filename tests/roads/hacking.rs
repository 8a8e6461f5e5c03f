//! The misspecified world: a proxy that can be cheated is cheated, unless KL is controlled. A slow test.
//!
//! The full token world (8⁶ sentences), a table of per-position bigrams, and a reward model that counts tokens and
//! cannot see that the third copy of a good one hurts. One reward model per seed.

use rl_core::kl_control::KlController;
use rl_envs::env_rng;
use rl_envs::token_world::proxy::{ProxyKind, comparisons, fit};
use rl_envs::token_world::{exact::frontier, fixed};
use rl_models::Contexts;
use rl_tests::token_lesson::{Point, TokenLesson};

use crate::ppo;
use rl_algos::KlPlace;
use rl_core::kl::KlEstimator;

const UPDATES: u64 = 250;

fn lesson(seed: u64) -> TokenLesson {
    let world = fixed::full();
    let mut rng = env_rng(seed, 7);
    let pairs = comparisons(&world, 1000, &mut rng);
    let proxy = fit(&world, ProxyKind::Unigram, &pairs, &mut rng).expect("it learns");
    let contexts = Contexts::bigram(world.vocabulary(), world.length());
    TokenLesson { reward: proxy.into(), contexts, world: world.into() }
}

fn path(lesson: &TokenLesson, controller: KlController, seed: u64) -> Vec<Point> {
    let mut config = ppo(0.1, KlPlace::Reward, KlEstimator::K1);
    config.rollout.kl = controller;
    config.advantage_norm = rl_algos::AdvantageNorm::Rollout;
    config.optimizer.learning_rate = 0.02.into();
    lesson.ppo(&config, UPDATES, 10, seed).1
}

fn best_gold(path: &[Point]) -> f64 {
    path.iter().map(|point| point.gold).fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn uncontrolled_ppo_cheats_and_controlled_ppo_does_not() {
    if !crate::slow() {
        return;
    }
    for seed in 1..=10 {
        let lesson = lesson(seed);
        let free = path(&lesson, KlController::fixed(0.0), seed);
        // From a dear nat down, so that the target is approached from below; Ziegler's gain.
        let held = path(&lesson, KlController::proportional(1.0, 1.3), seed);
        let (free_end, held_end) = (free[free.len() - 1], held[held.len() - 1]);
        println!(
            "seed {seed}: free: gold {:.2} at best, {:.2} at {:.1} nats in the end (proxy {:.2}); held: {:.2} at best, \
             {:.2} at {:.2} nats",
            best_gold(&free),
            free_end.gold,
            free_end.kl,
            free_end.reward,
            best_gold(&held),
            held_end.gold,
            held_end.kl
        );
        assert!(best_gold(&free) > 0.9, "seed {seed}: the uncontrolled run peaks at {}", best_gold(&free));
        assert!(free_end.gold < 0.0, "seed {seed}: the uncontrolled run ends at {}", free_end.gold);
        let lost = best_gold(&held) - held_end.gold;
        assert!(lost <= 0.15, "seed {seed}: the controlled run ends {lost} below its best gold");
        for point in free.iter().chain(&held) {
            let highest = frontier(lesson.world.reference(), lesson.world.gold(), point.kl);
            assert!(point.gold <= highest + 1e-9, "{} at {} nats, frontier {highest}", point.gold, point.kl);
        }
    }
}

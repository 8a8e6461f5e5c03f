//! How much of the exact frontier each method reaches in the full world, with the exact reward. A slow test.
//!
//! Best-of-n by enumeration; PPO with a table of per-position bigrams, which cannot be π*, held at 1, 2 and 4 nats.

use rl_algos::{AdvantageNorm, KlPlace};
use rl_core::kl::KlEstimator;
use rl_core::kl_control::KlController;
use rl_envs::token_world::best_of_n::BestOfN;
use rl_envs::token_world::exact::frontier;
use rl_envs::token_world::fixed;
use rl_models::Contexts;
use rl_tests::token_lesson::TokenLesson;

use crate::ppo;

#[test]
fn every_method_reaches_four_fifths_of_the_frontier_and_none_passes_it() {
    if !crate::slow() {
        return;
    }
    let world = fixed::full();
    let contexts = Contexts::bigram(world.vocabulary(), world.length());
    let lesson = TokenLesson { reward: world.gold().into(), contexts, world: world.into() };
    let (reference, gold) = (lesson.world.reference(), lesson.world.gold());
    let within = |method: &str, kl: f64, reached: f64| {
        let highest = frontier(reference, gold, kl);
        let share = reached / highest;
        println!(
            "{method}: gold {reached:.3} at {kl:.3} nats, {:.1}% of the frontier's {highest:.3}",
            100.0 * share
        );
        assert!(reached <= highest + 1e-9, "{method}: {reached} lies above {highest} at {kl} nats");
        assert!(share >= 0.8, "{method}: only {share} of the frontier at {kl} nats");
    };
    let best = BestOfN::new(reference, gold);
    for n in [6, 16, 64, 256] {
        within(&format!("best of {n}"), best.kl(n), best.expectation(n, gold));
    }
    for target in [1.0, 2.0, 4.0] {
        for seed in [1, 2] {
            let mut config = ppo(0.1, KlPlace::Reward, KlEstimator::K1);
            config.rollout.kl = KlController::proportional(1.0, target);
            config.advantage_norm = AdvantageNorm::Rollout;
            config.optimizer.learning_rate = 0.02.into();
            let (_, path) = lesson.ppo(&config, 300, 50, seed);
            let end = path[path.len() - 1];
            within(&format!("PPO held at {target}, seed {seed}"), end.kl, end.gold);
        }
    }
}

//! All roads lead to π*: in a world whose optimum is known, every method of RLHF must find it.
//!
//! The small token world (4⁴ sentences), a full prefix table that starts at the reference, the exact reward. The bar:
//! KL(π ‖ π*) ≤ .02 nats and an objective of ≥ .99·β·log Z for β = 1 and .5, ≥ .97 for .2. Whatever is measured on the
//! way, no point may lie above the frontier.

mod control;
mod dpo;
mod hacking;
mod share;

use rl_algos::{KlPlace, LmRolloutConfig, PolicyStepsConfig, RlhfPpoConfig, RlooConfig};
use rl_core::kl::KlEstimator;
use rl_core::kl_control::KlController;
use rl_core::schedule::Schedule;
use rl_envs::token_world::exact::frontier;
use rl_envs::token_world::fixed;
use rl_models::TablePolicy;
use rl_tests::token_lesson::{Point, TokenLesson};

/// β, and the share of β·log Z to reach.
const PRICES: [(f64, f64); 3] = [(1.0, 0.99), (0.5, 0.99), (0.2, 0.97)];
const SEEDS: [u64; 3] = [1, 2, 3];
const UPDATES: u64 = 200;
const RESPONSES: usize = 256;

/// Whether slow tests run; says that one does not.
fn slow() -> bool {
    let slow = std::env::var_os("RL_SLOW").is_some();
    if !slow {
        println!("skipped: slow (set RL_SLOW=1, or cargo xtask test --slow)");
    }
    slow
}

/// The step size falls to zero, so that the policy comes to rest.
fn falling(from: f64) -> Schedule {
    Schedule::Cosine { from, to: 0.0 }
}

fn ppo(beta: f64, kl_place: KlPlace, kl_estimator: KlEstimator) -> RlhfPpoConfig {
    let mut config = RlhfPpoConfig {
        rollout: LmRolloutConfig {
            prompts: RESPONSES,
            kl_place,
            kl_estimator,
            kl: KlController::fixed(beta),
            ..LmRolloutConfig::default()
        },
        minibatch_rows: RESPONSES,
        value_coef: 1.0,
        value_clip: None,
        max_grad_norm: None,
        // A price in the loss is a price in units of the reward: whitened advantages would change it.
        advantage_norm: rl_algos::AdvantageNorm::Off,
        ..RlhfPpoConfig::default()
    };
    config.optimizer.learning_rate = falling(0.05);
    config
}

fn rloo(beta: f64) -> RlooConfig {
    let mut steps =
        PolicyStepsConfig { epochs: 4, minibatch_rows: RESPONSES, max_grad_norm: None, ..Default::default() };
    steps.optimizer.learning_rate = falling(0.05);
    let rollout = LmRolloutConfig {
        prompts: RESPONSES / 8,
        group: 8,
        kl: KlController::fixed(beta),
        ..LmRolloutConfig::default()
    };
    RlooConfig { rollout, steps, ..RlooConfig::default() }
}

#[track_caller]
fn arrives(road: &str, train: impl Fn(&TokenLesson, f64, u64) -> (TablePolicy, Vec<Point>)) {
    let lesson = TokenLesson::exact(fixed::small());
    for (beta, share) in PRICES {
        for seed in SEEDS {
            let (policy, path) = train(&lesson, beta, seed);
            let (to_best, reached) = lesson.distance_to_optimum(&policy, beta);
            println!("{road}, β = {beta}, seed {seed}: KL(π ‖ π*) = {to_best:.4}, {reached:.4} of β·log Z");
            assert!(to_best <= 0.02, "{road}, β = {beta}, seed {seed}: KL(π ‖ π*) = {to_best}");
            assert!(reached >= share, "{road}, β = {beta}, seed {seed}: {reached} of β·log Z");
            for point in path {
                let highest = frontier(lesson.world.reference(), lesson.world.gold(), point.kl);
                assert!(
                    point.gold <= highest + 1e-9,
                    "{road}: {} at {} nats lies above the frontier, {highest}",
                    point.gold,
                    point.kl
                );
            }
        }
    }
}

#[test]
fn ppo_with_the_kl_in_its_rewards_arrives() {
    arrives("PPO, KL in the reward", |lesson, beta, seed| {
        lesson.ppo(&ppo(beta, KlPlace::Reward, KlEstimator::K1), UPDATES, 40, seed)
    });
}

#[test]
fn ppo_with_the_kl_in_its_loss_arrives() {
    arrives("PPO, KL in the loss", |lesson, beta, seed| {
        let mut config = ppo(beta, KlPlace::SequenceLoss, KlEstimator::K2);
        // The log-ratio of a response has no critic: its noise wants twice the responses.
        config.rollout.prompts = 2 * RESPONSES;
        (config.minibatch_rows, config.epochs, config.gae_lambda) = (2 * RESPONSES, 2, 1.0);
        lesson.ppo(&config, UPDATES * 5 / 4, 50, seed)
    });
}

#[test]
fn rloo_arrives() {
    arrives("RLOO", |lesson, beta, seed| lesson.rloo(&rloo(beta), UPDATES, 40, seed));
}

/// GRPO's KL, token by token, ignores what a token does to the KL of the tokens after it: it comes to rest, but not at π*.
#[test]
fn a_kl_charged_token_by_token_in_the_loss_leads_elsewhere() {
    let (lesson, beta) = (TokenLesson::exact(fixed::small()), 0.5);
    for seed in SEEDS {
        let mut config = ppo(beta, KlPlace::TokenLoss, KlEstimator::K2);
        config.rollout.prompts = 2 * RESPONSES;
        (config.minibatch_rows, config.epochs, config.gae_lambda) = (2 * RESPONSES, 2, 1.0);
        let (policy, _) = lesson.ppo(&config, UPDATES, UPDATES, seed);
        let (to_best, reached) = lesson.distance_to_optimum(&policy, beta);
        println!("KL per token in the loss, seed {seed}: KL(π ‖ π*) = {to_best:.4}, {reached:.4} of β·log Z");
        assert!(
            to_best > 0.02,
            "seed {seed}: KL(π ‖ π*) = {to_best}: did a token's KL count for later ones?"
        );
    }
}

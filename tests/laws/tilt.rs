//! Laws of the exact optimum of the KL-regularised objective.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::tilt::{kl, objective, tilt};

use crate::{assert_all_near, assert_near};

#[derive(Debug, Clone)]
struct World {
    reference: Vec<f64>,
    rewards: Vec<f64>,
    policy: Vec<f64>,
    beta: f64,
}

fn world() -> impl Strategy<Value = World> {
    let outcomes = vec((1e-3..1.0, -5.0..5.0, 1e-3..1.0), 1..12);
    (outcomes, -3.0..2.0).prop_map(|(outcomes, exponent)| {
        let share = |pick: fn(&(f64, f64, f64)) -> f64| {
            let sum: f64 = outcomes.iter().map(pick).sum();
            outcomes.iter().map(|outcome| pick(outcome) / sum).collect()
        };
        World {
            reference: share(|outcome| outcome.0),
            policy: share(|outcome| outcome.2),
            rewards: outcomes.iter().map(|outcome| outcome.1).collect(),
            beta: 10_f64.powf(exponent),
        }
    })
}

proptest! {
    #[test]
    fn no_policy_beats_beta_log_z(World { reference, rewards, policy, beta } in world()) {
        let reached = objective(&policy, &reference, &rewards, beta);
        let best = tilt(&reference, &rewards, beta).value;
        prop_assert!(reached <= best + 1e-9 * (1.0 + beta), "{reached} beats {best}");
    }

    #[test]
    fn the_tilt_itself_reaches_beta_log_z(World { reference, rewards, beta, .. } in world()) {
        let best = tilt(&reference, &rewards, beta);
        assert_near(objective(&best.policy, &reference, &rewards, beta), best.value, 1e-9 * (1.0 + beta));
        assert_near(best.expected_reward - beta * best.kl, best.value, 1e-9 * (1.0 + beta));
        assert_near(best.policy.iter().sum(), 1.0, 1e-12);
    }

    #[test]
    fn what_a_policy_misses_is_beta_times_its_kl_to_the_tilt(world in world()) {
        let World { reference, rewards, policy, beta } = world;
        // Rewards differ by up to 10: a smaller β makes subnormal probabilities, whose logarithms lack digits.
        let beta = beta.max(0.02);
        let best = tilt(&reference, &rewards, beta);
        let missed = best.value - objective(&policy, &reference, &rewards, beta);
        assert_near(missed, beta * kl(&policy, &best.policy), 1e-9 * (1.0 + beta));
    }

    #[test]
    fn a_small_step_away_from_the_tilt_lowers_the_objective(world in world(), share in 0.01..0.99) {
        let World { reference, rewards, policy, beta } = world;
        let best = tilt(&reference, &rewards, beta);
        let mixed: Vec<f64> =
            best.policy.iter().zip(&policy).map(|(star, p)| (1.0 - share) * star + share * p).collect();
        prop_assert!(objective(&mixed, &reference, &rewards, beta) <= best.value + 1e-9 * (1.0 + beta));
    }

    #[test]
    fn the_tilt_gives_its_reward_back(World { reference, rewards, beta, .. } in world()) {
        let best = tilt(&reference, &rewards, beta);
        for (k, &star) in best.policy.iter().enumerate().filter(|&(_, &star)| star > 1e-300) {
            // r = β·log(π*/π_ref) + β·log Z: Rafailov 2023, eq. 5
            assert_near(beta * (star / reference[k]).ln() + beta * best.log_z, rewards[k], 1e-9 * (1.0 + beta));
        }
    }

    #[test]
    fn a_constant_reward_shifts_the_value_and_nothing_else(world in world(), constant in -5.0..5.0) {
        let World { reference, rewards, beta, .. } = world;
        let (plain, shifted) = (
            tilt(&reference, &rewards, beta),
            tilt(&reference, &rewards.iter().map(|r| r + constant).collect::<Vec<_>>(), beta),
        );
        assert_all_near(&shifted.policy, &plain.policy, 1e-9);
        assert_near(shifted.value, plain.value + constant, 1e-9 * (1.0 + beta));
    }

    #[test]
    fn a_dearer_nat_buys_less_kl_and_less_reward(world in world(), factor in 1.0..10.0) {
        let World { reference, rewards, beta, .. } = world;
        let (cheap, dear) = (tilt(&reference, &rewards, beta), tilt(&reference, &rewards, factor * beta));
        prop_assert!(dear.kl <= cheap.kl + 1e-9 && dear.expected_reward <= cheap.expected_reward + 1e-9);
        prop_assert!(cheap.kl >= -1e-12);
    }
}

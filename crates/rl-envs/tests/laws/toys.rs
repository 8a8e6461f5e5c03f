//! Bandits, the KL toy, and how the classics start.

use proptest::prelude::*;
use rl_envs::{
    Acrobot, Arm, Bandit, CartPole, Env, KlToy, MountainCar, MountainCarContinuous, Pendulum, StepEnd,
    VecEnv, env_rng,
};

/// Mean and standard deviation of the rewards of `action` over `steps` steps.
fn reward_moments<E: Env<Action = usize>>(env: &mut E, action: usize, steps: u32, seed: u64) -> (f64, f64) {
    let (mut rng, mut obs) = (env_rng(seed, 0), vec![0.0; env.obs_dim()]);
    env.reset(&mut rng, &mut obs);
    let rewards: Vec<f64> =
        (0..steps).map(|_| f64::from(env.step(&action, &mut rng, &mut obs).reward)).collect();
    let mean = rewards.iter().sum::<f64>() / f64::from(steps);
    let variance = rewards.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / f64::from(steps);
    (mean, variance.sqrt())
}

/// First states of 500 episodes.
fn starts<E: Env>(mut env: E, seed: u64) -> Vec<Vec<f64>> {
    let (mut rng, mut obs) = (env_rng(seed, 0), vec![0.0; env.obs_dim()]);
    let mut start = || {
        env.reset(&mut rng, &mut obs);
        env.state()
    };
    (0..500).map(|_| start()).collect()
}

/// Whether the starts fill `low..high` in every entry: all inside, mean and extremes near.
fn fills(starts: &[Vec<f64>], bounds: &[(f64, f64)]) -> bool {
    bounds.iter().enumerate().all(|(i, &(low, high))| {
        let values: Vec<f64> = starts.iter().map(|state| state[i]).collect();
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(l, m), &v| (l.min(v), m.max(v)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let span = high - low;
        // The mean of 500 uniforms has a standard deviation of 0.013 spans.
        least >= low
            && most <= high
            && most - least >= 0.9 * span
            && (mean - (low + high) / 2.0).abs() <= 0.08 * span
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_arm_beats_the_best_arm_and_only_the_best_policy_has_no_regret(
        means in prop::collection::vec(prop::collection::vec(-5.0_f64..5.0, 4), 1..5), p in 0.0_f64..1.0,
    ) {
        let arms = means.iter().map(|row| row.iter().map(|&mean| Arm::Normal { mean, std: 1.0 }).collect()).collect();
        let bandit = Bandit::new(arms).unwrap();
        let mut policy = vec![vec![0.0; 4]; means.len()];
        for (context, row) in means.iter().enumerate() {
            let best = bandit.best_arm(context);
            prop_assert!(row.iter().all(|&mean| mean <= bandit.mean(context, best)));
            policy[context][best] = 1.0;
        }
        prop_assert!(bandit.regret(&policy).abs() < 1e-12);
        policy[0].iter_mut().for_each(|chance| *chance = *chance * p + (1.0 - p) / 4.0);
        prop_assert!(bandit.regret(&policy) >= -1e-12);
    }

    #[test]
    fn a_bandit_episode_is_one_pull_and_its_observation_is_the_context(seed: u64, contexts in 1_usize..5) {
        let arms = (0..contexts).map(|c| vec![Arm::Normal { mean: c as f64, std: 0.0 }; 2]).collect();
        let mut bandits = VecEnv::new(vec![Bandit::new(arms).unwrap(); 3], seed);
        for _ in 0..20 {
            let contexts: Vec<f32> = bandits
                .obs()
                .chunks_exact(contexts)
                .map(|one_hot| {
                    assert_eq!(one_hot.iter().sum::<f32>(), 1.0);
                    one_hot.iter().position(|&o| o == 1.0).unwrap() as f32
                })
                .collect();
            let step = bandits.step(|_| &1);
            prop_assert_eq!(&step.rewards, &contexts);
            prop_assert_eq!(&step.ends, &[StepEnd::Terminated; 3]);
        }
    }

    #[test]
    fn the_classics_start_where_gymnasium_starts_them(seed: u64) {
        use std::f64::consts::PI;
        prop_assert!(fills(&starts(CartPole::v1(), seed), &[(-0.05, 0.05); 4]));
        prop_assert!(fills(&starts(Acrobot::v1(), seed), &[(-0.100_001, 0.100_001); 4]));
        prop_assert!(fills(&starts(MountainCar::v0(), seed), &[(-0.6, -0.4)]));
        prop_assert!(fills(&starts(MountainCarContinuous::v0(), seed), &[(-0.6, -0.4)]));
        prop_assert!(fills(&starts(Pendulum::v1(), seed), &[(-PI, PI), (-1.0, 1.0)]));
        prop_assert!(starts(MountainCar::v0(), seed).iter().all(|state| state[1] == 0.0));
    }

    #[test]
    fn the_kl_toy_is_cut_after_two_hundred_steps_and_never_terminates(seed: u64, action in 0_usize..4) {
        let mut toy = VecEnv::new(vec![KlToy::episodic()], seed);
        for t in 1..=400 {
            let end = toy.step(|_| &action).ends[0];
            prop_assert_eq!(end, if t % 200 == 0 { StepEnd::Truncated } else { StepEnd::Continues });
        }
    }
}

#[test]
fn the_kl_toy_pays_the_number_of_the_action_with_half_a_unit_of_noise() {
    for action in 0..4 {
        let (mean, std) = reward_moments(&mut KlToy::new(), action, 20_000, 3);
        assert!((mean - action as f64).abs() < 0.02, "{mean}");
        assert!((std - 0.5).abs() < 0.02, "{std}");
    }
    assert_eq!((KlToy::BEST_ACTION, KlToy::mean_reward(3), KlToy::REWARD_STD), (3, 3.0, 0.5));
}

#[test]
fn the_observations_of_the_kl_toy_are_standard_normal_and_say_nothing() {
    let (mut toy, mut rng, mut obs) = (KlToy::new(), env_rng(8, 0), [0.0; 10]);
    toy.reset(&mut rng, &mut obs);
    let (steps, mut sum, mut squares, mut with_reward) = (5_000, 0.0, 0.0, 0.0);
    for _ in 0..steps {
        let before = obs;
        let step = toy.step(&2, &mut rng, &mut obs);
        sum += before.iter().map(|&o| f64::from(o)).sum::<f64>();
        squares += before.iter().map(|&o| f64::from(o).powi(2)).sum::<f64>();
        with_reward += f64::from(before[0]) * (f64::from(step.reward) - 2.0);
    }
    let count = f64::from(steps);
    assert!((sum / (10.0 * count)).abs() < 0.02, "mean");
    assert!((squares / (10.0 * count) - 1.0).abs() < 0.03, "variance");
    assert!((with_reward / count).abs() < 0.05, "covariance of observation and reward");
}

#[test]
fn every_arm_pays_its_mean() {
    let mut bandit = Bandit::ten_armed(1);
    for arm in 0..10 {
        let (mean, std) = reward_moments(&mut bandit, arm, 20_000, arm as u64);
        assert!((mean - bandit.mean(0, arm)).abs() < 0.04, "arm {arm}: {mean}");
        assert!((std - 1.0).abs() < 0.03, "arm {arm}: {std}");
    }
    let mut coin = Bandit::new(vec![vec![Arm::Bernoulli { chance: 0.3 }]]).unwrap();
    assert!((reward_moments(&mut coin, 0, 20_000, 1).0 - 0.3).abs() < 0.02);
}

#[test]
fn the_ten_armed_testbed_is_drawn_from_its_seed() {
    assert_eq!(Bandit::ten_armed(3), Bandit::ten_armed(3));
    assert_ne!(Bandit::ten_armed(3), Bandit::ten_armed(4));
}

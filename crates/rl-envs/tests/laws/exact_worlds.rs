//! The oracles agree with themselves, with each other, and with what simulation shows.

use proptest::prelude::*;
use rand::RngExt;
use rl_envs::kakade::{average_reward, average_reward_gradient, natural_gradient, visitation};
use rl_envs::{Env, GridWorld, Kakade, Lqr, LqrConfig, StepEnd, TabularMdp, env_rng};

/// A random process of the given size; rows sum to between 0.5 and 1.
fn random_mdp(states: usize, actions: usize, gamma: f64, seed: u64) -> TabularMdp {
    let mut rng = env_rng(seed, 0);
    let mut transitions = Vec::new();
    for _ in 0..states * actions {
        let row: Vec<f64> = (0..states).map(|_| rng.random::<f64>()).collect();
        let scale = rng.random_range(0.5..1.0) / row.iter().sum::<f64>();
        transitions.extend(row.iter().map(|p| p * scale));
    }
    let rewards = (0..states * actions).map(|_| rng.random_range(-1.0..1.0)).collect();
    TabularMdp::new(states, actions, transitions, rewards, gamma).unwrap()
}

fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn random_policy(mdp: &TabularMdp, seed: u64) -> Vec<f64> {
    let mut rng = env_rng(seed, 1);
    let mut policy: Vec<f64> =
        (0..mdp.states() * mdp.actions()).map(|_| rng.random_range(0.01..1.0)).collect();
    for row in policy.chunks_exact_mut(mdp.actions()) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
    }
    policy
}

fn lqr(a: f64, b: f64, r: f64) -> Lqr {
    Lqr::new(LqrConfig { a, b, r, ..LqrConfig::default() }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_fixed_point_of_value_iteration_satisfies_bellmans_equation(
        states in 1_usize..8, actions in 1_usize..5, gamma in 0.0_f64..0.95, seed: u64,
    ) {
        let mdp = random_mdp(states, actions, gamma, seed);
        let values = mdp.value_iteration(1e-13).unwrap().values;
        let q = mdp.q_values(&values);
        let best: Vec<f64> = q.chunks_exact(actions).map(|q| q.iter().copied().fold(f64::MIN, f64::max)).collect();
        prop_assert!(largest_gap(&values, &best) < 1e-12);
    }

    #[test]
    fn the_greedy_policy_earns_the_optimal_values_and_no_policy_earns_more(
        states in 1_usize..8, actions in 1_usize..5, gamma in 0.0_f64..0.95, seed: u64,
    ) {
        let mdp = random_mdp(states, actions, gamma, seed);
        let optimal = mdp.value_iteration(1e-13).unwrap().values;
        let greedy = mdp.evaluate_actions(&mdp.greedy_policy(&optimal)).unwrap();
        prop_assert!(largest_gap(&optimal, &greedy) < 1e-10);
        let other = mdp.policy_evaluation(&random_policy(&mdp, seed)).unwrap();
        prop_assert!(other.iter().zip(&optimal).all(|(other, best)| *other <= best + 1e-10));
    }

    #[test]
    fn policy_evaluation_satisfies_its_own_bellman_equation(
        states in 1_usize..8, actions in 1_usize..5, gamma in 0.0_f64..1.0, seed: u64,
    ) {
        let mdp = random_mdp(states, actions, gamma, seed);
        let policy = random_policy(&mdp, seed);
        let values = mdp.policy_evaluation(&policy).unwrap();
        let q = mdp.q_values(&values);
        let rows = q.chunks_exact(actions).zip(policy.chunks_exact(actions));
        let again: Vec<f64> = rows.map(|(q, pi)| q.iter().zip(pi).map(|(q, pi)| q * pi).sum()).collect();
        prop_assert!(largest_gap(&values, &again) < 1e-10);
    }

    #[test]
    fn riccatis_gain_beats_every_other_gain(
        a in -1.5_f64..1.5, b in 0.2_f64..2.0, r in 0.0_f64..3.0, gamma in 0.05_f64..0.99,
        off in 1e-3_f64..1.0, x in 0.1_f64..3.0,
    ) {
        let world = lqr(a, b, r);
        let best = world.optimum(gamma).unwrap();
        let cost = world.cost_of_gain(best.gain, gamma, x).unwrap();
        let closed = best.curvature * x * x + best.constant;
        prop_assert!((cost - closed).abs() < 1e-9 * closed, "{cost} {closed}");
        for gain in [best.gain - off, best.gain + off] {
            prop_assert!(world.cost_of_gain(gain, gamma, x).unwrap() > cost);
        }
    }

    #[test]
    fn the_curvature_is_a_fixed_point_of_the_riccati_equation(
        a in -1.5_f64..1.5, b in 0.2_f64..2.0, r in 0.01_f64..3.0, gamma in 0.0_f64..0.999,
    ) {
        let p = lqr(a, b, r).optimum(gamma).unwrap().curvature;
        let again = 1.0 + gamma * a * a * p - (gamma * a * b * p).powi(2) / (r + gamma * b * b * p);
        prop_assert!((p - again).abs() < 1e-9 * p, "{p} {again}");
    }

    #[test]
    fn the_gradient_of_the_average_reward_is_its_slope(x in -3.0_f64..3.0, y in -3.0_f64..3.0) {
        let stay = |x: f64, y: f64| [x, y].map(|z: f64| 1.0 / (1.0 + (-z).exp()));
        let eta = |x, y| average_reward(stay(x, y));
        let h = 1e-5;
        let slope = [(eta(x + h, y) - eta(x - h, y)) / (2.0 * h), (eta(x, y + h) - eta(x, y - h)) / (2.0 * h)];
        prop_assert!(largest_gap(&average_reward_gradient(stay(x, y)), &slope) < 1e-8);
        // The natural gradient points into the same half-space: F is positive.
        let natural = natural_gradient(stay(x, y));
        prop_assert!(slope[0] * natural[0] + slope[1] * natural[1] >= -1e-9);
    }
}

#[test]
fn the_greedy_policy_of_the_gridworld_reaches_its_value_in_simulation() {
    let mut world = GridWorld::russell_norvig();
    let mdp = world.model(1.0).unwrap();
    let values = mdp.value_iteration(1e-12).unwrap().values;
    let policy = mdp.greedy_policy(&values);
    let (mut rng, mut obs) = (env_rng(5, 0), vec![0.0; world.obs_dim()]);
    let (episodes, mut sum, mut goals) = (40_000, 0.0, 0);
    for _ in 0..episodes {
        world.reset(&mut rng, &mut obs);
        loop {
            let step = world.step(&policy[world.agent()], &mut rng, &mut obs);
            sum += f64::from(step.reward);
            if step.end == StepEnd::Terminated {
                goals += usize::from(step.reward > 0.0);
                break;
            }
        }
    }
    // A return has a standard deviation below 0.5, so the mean of 40,000 has one below 0.0025.
    assert!(
        (sum / f64::from(episodes) - values[8]).abs() < 0.01,
        "{} {}",
        sum / f64::from(episodes),
        values[8]
    );
    assert!(goals > 35_000, "{goals}");
}

#[test]
fn the_gridworld_moves_as_its_model_says() {
    let mut world = GridWorld::parse("S.\n#X\n.G", 0.3).unwrap();
    let mdp = world.model(0.9).unwrap();
    let (mut rng, mut obs) = (env_rng(9, 0), vec![0.0; world.obs_dim()]);
    let draws = 30_000;
    for (cell, action) in [(0, 1), (0, 2), (1, 3), (4, 1)] {
        let (mut counts, mut reward) = (vec![0.0; mdp.states()], 0.0);
        for _ in 0..draws {
            world.set_state(&[f64::from(cell)]);
            let step = world.step(&action, &mut rng, &mut obs);
            reward += f64::from(step.reward) / f64::from(draws);
            if step.end == StepEnd::Continues {
                counts[world.agent()] += 1.0 / f64::from(draws);
            }
        }
        assert!(largest_gap(&counts, mdp.next(cell as usize, action)) < 0.015, "{cell} {action} {counts:?}");
        assert!((reward - mdp.reward(cell as usize, action)).abs() < 0.02);
    }
}

#[test]
fn the_discounted_cost_of_the_regulator_in_simulation_is_the_closed_form() {
    let (mut world, gamma) = (Lqr::new(LqrConfig { noise: 0.3, ..LqrConfig::default() }).unwrap(), 0.9);
    let best = world.optimum(gamma).unwrap();
    let (mut rng, mut obs) = (env_rng(2, 0), [0.0; 1]);
    for gain in [best.gain, best.gain + 0.4] {
        let (runs, mut cost) = (4_000, 0.0);
        for _ in 0..runs {
            world.set_state(&[1.0]);
            world.observe(&mut obs);
            for t in 0..200 {
                let step = world.step(&[-(gain as f32) * obs[0]], &mut rng, &mut obs);
                cost -= gamma.powi(t) * f64::from(step.reward) / f64::from(runs);
            }
        }
        let want = world.cost_of_gain(gain, gamma, 1.0).unwrap();
        assert!((cost - want).abs() < 0.02 * want, "{cost} {want}");
    }
}

#[test]
fn the_long_run_of_kakades_chain_is_its_average_reward() {
    let (mut world, mut rng, mut obs) = (Kakade::new(), env_rng(4, 0), [0.0; 2]);
    let (stay, steps) = ([0.8, 0.3], 200_000);
    world.reset(&mut rng, &mut obs);
    let (mut sum, mut visits) = (0.0, [0.0; 2]);
    for _ in 0..steps {
        let state = world.state()[0] as usize;
        visits[state] += 1.0 / f64::from(steps);
        let action = usize::from(!rng.random_bool(stay[state]));
        sum += f64::from(world.step(&action, &mut rng, &mut obs).reward);
    }
    assert!((sum / f64::from(steps) - average_reward(stay)).abs() < 0.02);
    assert!(largest_gap(&visits, &visitation(stay)) < 0.01);
}

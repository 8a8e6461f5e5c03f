//! Tables learn what dynamic programming knows.

use proptest::prelude::*;
use rand::RngExt;
use rl_envs::{
    ActionValues, Arm, Bandit, Env, GridWorld, Kakade, SoftmaxTable, StepEnd, TabularMdp, Target, TdConfig,
    env_rng, kakade,
};

fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A random process whose rows sum to 1, and a random table and start for it.
fn random(states: usize, actions: usize, gamma: f64, seed: u64) -> (TabularMdp, SoftmaxTable, Vec<f64>) {
    let mut rng = env_rng(seed, 0);
    let mut simplex = |n: usize| -> Vec<f64> {
        let row: Vec<f64> = (0..n).map(|_| rng.random_range(0.05..1.0)).collect();
        let sum: f64 = row.iter().sum();
        row.iter().map(|p| p / sum).collect()
    };
    let transitions = (0..states * actions).flat_map(|_| simplex(states)).collect();
    let start = simplex(states);
    let rewards = (0..states * actions).map(|_| rng.random_range(-1.0..1.0)).collect();
    let mdp = TabularMdp::new(states, actions, transitions, rewards, gamma).unwrap();
    let mut table = SoftmaxTable::new(states, actions);
    table.theta.iter_mut().for_each(|z| *z = rng.random_range(-1.0..1.0));
    (mdp, table, start)
}

fn objective(mdp: &TabularMdp, table: &SoftmaxTable, start: &[f64]) -> f64 {
    let values = mdp.policy_evaluation(&table.probs()).unwrap();
    values.iter().zip(start).map(|(v, mu)| v * mu).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_tabular_policy_gradient_is_the_slope_of_the_value(
        states in 1_usize..5, actions in 2_usize..4, gamma in 0.0_f64..0.95, seed: u64,
    ) {
        let (mdp, table, start) = random(states, actions, gamma, seed);
        let gradient = table.policy_gradient(&mdp, &start).unwrap();
        let at = |cell: usize, h: f64| {
            let mut moved = table.clone();
            moved.theta[cell] += h;
            objective(&mdp, &moved, &start)
        };
        let h = 1e-5;
        let slope: Vec<f64> = (0..gradient.len()).map(|i| (at(i, h) - at(i, -h)) / (2.0 * h)).collect();
        prop_assert!(largest_gap(&gradient, &slope) < 1e-7, "{gradient:?} {slope:?}");
    }

    #[test]
    fn the_fisher_matrix_times_the_advantage_is_the_policy_gradient(
        states in 1_usize..5, actions in 2_usize..4, gamma in 0.0_f64..0.95, seed: u64,
    ) {
        let (mdp, table, start) = random(states, actions, gamma, seed);
        let (probs, natural) = (table.probs(), table.natural_gradient(&mdp).unwrap());
        let visits = mdp.discounted_visits(&probs, &start).unwrap();
        // F = E_{s∼d, a∼π} [∇log π ∇log πᵀ], written out as the outer products it is the mean of.
        let mut product = vec![0.0; natural.len()];
        for s in 0..states {
            let cells = s * actions..(s + 1) * actions;
            for a in 0..actions {
                let score = |b: usize| f64::from(u8::from(a == b)) - probs[s * actions + b];
                let along: f64 = (0..actions).map(|b| score(b) * natural[s * actions + b]).sum();
                for (b, entry) in product[cells.clone()].iter_mut().enumerate() {
                    *entry += visits[s] * probs[s * actions + a] * score(b) * along;
                }
            }
        }
        let gradient = table.policy_gradient(&mdp, &start).unwrap();
        prop_assert!(largest_gap(&product, &gradient) < 1e-12, "{product:?} {gradient:?}");
    }

    #[test]
    fn natural_gradient_ascent_reaches_the_values_of_value_iteration(seed: u64) {
        let (mdp, mut table, start) = random(4, 3, 0.8, seed);
        let best = mdp.value_iteration(1e-12).unwrap().values;
        for _ in 0..400 {
            let before = objective(&mdp, &table, &start);
            let direction = table.natural_gradient(&mdp).unwrap();
            table.ascend(1.0, &direction);
            prop_assert!(objective(&mdp, &table, &start) >= before - 1e-12, "an exact step never loses");
        }
        let values = mdp.policy_evaluation(&table.probs()).unwrap();
        prop_assert!(largest_gap(&values, &best) < 0.01, "{values:?} {best:?}");
    }
}

#[test]
fn the_mean_of_sampled_reinforce_is_the_exact_gradient() {
    let mut world = GridWorld::parse("S.G\n..X", 0.2).unwrap();
    let gamma = 0.9;
    let mdp = world.model(gamma).unwrap();
    let mut table = SoftmaxTable::new(6, 4);
    table.theta.iter_mut().enumerate().for_each(|(i, z)| *z = (i as f64).sin());
    let mut start = vec![0.0; 6];
    start[0] = 1.0;
    let exact = table.policy_gradient(&mdp, &start).unwrap();
    for baseline in [0.0, 0.5] {
        let (mut rng, episodes) = (env_rng(3, 0), 60_000);
        let mut mean = vec![0.0; exact.len()];
        for _ in 0..episodes {
            let (gradient, _) = table.reinforce(&mut world, gamma, baseline, 200, &mut rng);
            mean.iter_mut().zip(gradient).for_each(|(m, g)| *m += g / f64::from(episodes));
        }
        // One sample's standard deviation is below 1, so the mean's is below 0.0041.
        assert!(largest_gap(&mean, &exact) < 0.02, "baseline {baseline}: {mean:?} {exact:?}");
        assert!(exact.iter().any(|g| g.abs() > 0.1), "the gradient is large enough to be told from 0");
    }
}

#[test]
fn sampled_reinforce_with_a_baseline_finds_the_best_arm() {
    for seed in 1..=5 {
        let arms = [0.2, 0.5, 0.8].map(|chance| Arm::Bernoulli { chance });
        let mut bandit = Bandit::new(vec![arms.to_vec()]).unwrap();
        let (mut table, mut rng, mut mean) = (SoftmaxTable::new(1, 3), env_rng(seed, 0), 0.0);
        for _ in 0..20_000 {
            let (gradient, reward) = table.reinforce(&mut bandit, 1.0, mean, 1, &mut rng);
            table.ascend(0.1, &gradient);
            mean += 0.01 * (reward - mean);
        }
        let regret = bandit.regret(&[table.probs()]);
        assert!(regret < 0.02, "seed {seed}: regret {regret}");
    }
}

#[test]
fn on_kakades_chain_the_natural_gradient_passes_where_the_plain_one_stalls() {
    let mdp = kakade::model(0.95).unwrap();
    let start = [Kakade::START, 1.0 - Kakade::START];
    let best: f64 = {
        let values = mdp.value_iteration(1e-10).unwrap().values;
        values.iter().zip(&start).map(|(v, mu)| v * mu).sum()
    };
    let updates = |natural: bool| {
        let mut table = SoftmaxTable::new(2, 2);
        table.theta = vec![0.8_f64.ln(), 0.2_f64.ln(), 0.2_f64.ln(), 0.8_f64.ln()];
        (0..3000).find(|_| {
            let direction = match natural {
                true => table.natural_gradient(&mdp).unwrap(),
                false => {
                    let gradient = table.policy_gradient(&mdp, &start).unwrap();
                    gradient.iter().map(|g| g * (1.0 - 0.95)).collect() // visits as shares of time
                }
            };
            table.ascend(0.1, &direction);
            objective(&mdp, &table, &start) > 0.95 * best
        })
    };
    let natural = updates(true).expect("the natural gradient arrives");
    let plain = updates(false).unwrap_or(3000);
    assert!(natural < 30 && plain > 10 * natural, "{natural} natural updates, {plain} plain ones");
}

/// ε from 1 to 0 over the first nine tenths; α from ½ to 0.
fn annealed(target: Target, gamma: f64, steps: usize) -> TdConfig {
    TdConfig {
        target,
        gamma,
        epsilon: |p| (1.0 - p / 0.9).max(0.0),
        step_size: |p| 0.5 * (1.0 - p).powi(2) + 1e-3,
        steps,
        longest_episode: 100,
    }
}

/// The greedy policy's exact value in every state.
fn worth(table: &ActionValues, mdp: &TabularMdp) -> Vec<f64> {
    let greedy: Vec<usize> = (0..mdp.states()).map(|s| table.greedy(s)).collect();
    mdp.evaluate_actions(&greedy).unwrap()
}

#[test]
fn q_learning_finds_the_optimal_values_while_it_walks_at_random() {
    let world = GridWorld::russell_norvig();
    let mdp = world.model(0.95).unwrap();
    let best = mdp.value_iteration(1e-12).unwrap().values;
    for seed in 1..=5 {
        let mut table = ActionValues::new(mdp.states(), mdp.actions());
        let config = TdConfig { epsilon: |_| 1.0, ..annealed(Target::QLearning, 0.95, 400_000) };
        table.learn(world.clone(), &config, &mut env_rng(seed, 0));
        let learnt: Vec<f64> = (0..mdp.states()).map(|s| table.value(s)).collect();
        assert!(largest_gap(&learnt, &best) < 0.05, "seed {seed}: {learnt:?} {best:?}");
        let worth = worth(&table, &mdp);
        assert!(largest_gap(&worth, &best) < 0.05, "seed {seed}: {worth:?} {best:?}");
    }
}

#[test]
fn sarsa_finds_the_optimal_policy_as_its_exploration_ends() {
    let world = GridWorld::russell_norvig();
    let mdp = world.model(0.95).unwrap();
    let best = mdp.value_iteration(1e-12).unwrap().values[world.agent()];
    for seed in 1..=5 {
        let mut table = ActionValues::new(mdp.states(), mdp.actions());
        table.learn(world.clone(), &annealed(Target::Sarsa, 0.95, 400_000), &mut env_rng(seed, 0));
        let worth = worth(&table, &mdp)[world.agent()];
        assert!(worth > best - 0.02, "seed {seed}: the greedy policy is worth {worth}, the best {best}");
    }
}

#[test]
fn the_greedy_policy_of_q_is_the_oracles_where_nothing_is_random() {
    let world = GridWorld::parse("S...\n.##.\n...G", 0.0).unwrap();
    let mdp = world.model(0.9).unwrap();
    let best = mdp.value_iteration(1e-12).unwrap().values;
    for target in [Target::QLearning, Target::Sarsa] {
        let mut table = ActionValues::new(mdp.states(), mdp.actions());
        table.learn(world.clone(), &annealed(target, 0.9, 100_000), &mut env_rng(1, 0));
        let (mut agent, mut obs) = (world.clone(), vec![0.0; 12]);
        let mut rng = env_rng(0, 0);
        agent.reset(&mut rng, &mut obs);
        let (mut sum, mut discount) = (0.0, 1.0);
        for _ in 0..5 {
            let step = agent.step(&table.greedy(agent.agent()), &mut rng, &mut obs);
            sum += discount * f64::from(step.reward);
            discount *= 0.9;
            if step.end == StepEnd::Terminated {
                break;
            }
        }
        assert!(
            (sum - best[0]).abs() < 1e-6,
            "{target:?}: the greedy walk earns {sum}, the best {}",
            best[0]
        );
        assert!((table.value(0) - best[0]).abs() < 0.02, "{target:?}: {} {}", table.value(0), best[0]);
    }
}

/// The cliff of Sutton and Barto 2018, example 6.6, with our prizes: the short way along the pits, the safe way above.
#[test]
fn while_exploring_sarsa_keeps_off_the_cliff_and_q_learning_walks_along_it() {
    let world = GridWorld::parse("........\n........\nSXXXXXXG", 0.0).unwrap();
    let start = world.agent();
    for seed in 1..=5 {
        let walk = |target| {
            let config = TdConfig {
                epsilon: |_| 0.3,
                step_size: |p| 0.2 * (1.0 - p) + 0.005,
                ..annealed(target, 1.0, 600_000)
            };
            let mut table = ActionValues::new(24, 4);
            table.learn(world.clone(), &config, &mut env_rng(seed, 0));
            let (mut agent, mut rng, mut obs) = (world.clone(), env_rng(0, 0), vec![0.0; 24]);
            agent.reset(&mut rng, &mut obs);
            let mut rows = vec![];
            for _ in 0..30 {
                rows.push(agent.agent() / world.width());
                if agent.step(&table.greedy(agent.agent()), &mut rng, &mut obs).end.is_over() {
                    break;
                }
            }
            (rows.len(), rows.contains(&0))
        };
        assert_eq!(start, 16);
        assert_eq!(walk(Target::QLearning), (9, false), "seed {seed}: the shortest way");
        assert_eq!(walk(Target::Sarsa), (11, true), "seed {seed}: the way by the top row");
    }
}

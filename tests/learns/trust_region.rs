//! TRPO and NPG in worlds whose best return is known exactly.

use rl_algos::TrpoConfig;
use rl_core::dist::{Categorical, DiagGaussian};
use rl_envs::{Bandit, CartPole, GridWorld, Kakade, Lqr, TimeLimit, kakade};
use rl_tests::numbers;

use crate::lesson;

type Lesson = lesson::Lesson<TrpoConfig>;

const SEEDS: [u64; 3] = [1, 2, 3];

/// Each of two configs with each seed.
fn runs(names: [&'static str; 2]) -> impl Iterator<Item = (&'static str, u64)> {
    names.into_iter().flat_map(|name| SEEDS.map(|seed| (name, seed)))
}

#[test]
fn a_bandit_is_played_almost_as_well_as_its_best_arm() {
    let world = Bandit::ten_armed(0);
    for (name, seed) in runs(["trpo-bandit", "npg-bandit"]) {
        let learnt = Lesson::shipped(name).learn(|| world.clone(), seed);
        let law: Categorical = learnt.law(&[vec![1.0]]);
        let regret = world.regret(&[numbers(law.probs())]);
        println!("{name}, seed {seed}: regret {regret:.4} per pull of best mean {:.4}", world.best_mean());
        assert!(
            regret < 0.1,
            "{name}, seed {seed}: regret {regret} per pull of best mean {}",
            world.best_mean()
        );
    }
}

#[test]
fn a_gridworld_is_walked_as_dynamic_programming_would() {
    let world = GridWorld::russell_norvig();
    for (name, seed) in runs(["trpo-gridworld", "npg-gridworld"]) {
        let lesson = Lesson::shipped(name);
        let model = world.model(lesson.algo.gamma).expect("a discount factor");
        let best = model.value_iteration(1e-10).expect("it converges").values[world.agent()];
        let learnt = lesson.learn(|| TimeLimit::new(world.clone(), 100), seed);
        let cells = world.cells().len();
        let one_hot = |cell: usize| (0..cells).map(|i| f32::from(u8::from(i == cell))).collect();
        let law: Categorical = learnt.law(&(0..cells).map(one_hot).collect::<Vec<Vec<f32>>>());
        let value = model.policy_evaluation(&numbers(law.probs())).expect("γ < 1")[world.agent()];
        println!("{name}, seed {seed}: the policy is worth {value:.4} at the start, the best {best:.4}");
        assert!(value > best - 0.05, "{name}, seed {seed}: the policy is worth {value}, the best {best}");
    }
}

#[test]
fn a_linear_regulator_is_steered_near_the_riccati_cost() {
    let world = Lqr::kakade();
    for (name, seed) in runs(["trpo-lqr", "npg-lqr"]) {
        let lesson = Lesson::shipped(name);
        let gamma = lesson.algo.gamma;
        let best = world.optimum(gamma).expect("a discount factor");
        let cost = |gain: f64| world.cost_of_gain(gain, gamma, 1.0).expect("a discount factor");
        let learnt = lesson.learn_continuous(|| TimeLimit::new(world.clone(), 100), seed);
        let law: DiagGaussian = learnt.law(&[vec![1.0], vec![-1.0]]);
        let actions = numbers(law.mean());
        let gain = (actions[1] - actions[0]) / 2.0;
        let (got, best) = (cost(gain), cost(best.gain));
        println!("{name}, seed {seed}: gain {gain:.4} costs {got:.4}, the best {best:.4}");
        assert!(got < 1.02 * best, "{name}, seed {seed}: gain {gain} costs {got}, the best {best}");
    }
}

/// Staying in `j` for ever is worth 2 a step; the plain gradient stalls near 1, where the policy stays in `i`.
#[test]
fn kakades_chain_is_left_for_the_better_state() {
    for (name, seed) in runs(["trpo-kakade", "npg-kakade"]) {
        let learnt = Lesson::shipped(name).learn(|| TimeLimit::new(Kakade::new(), 100), seed);
        let law: Categorical = learnt.law(&[vec![1.0, 0.0], vec![0.0, 1.0]]);
        let probs = numbers(law.probs()); // by rows: stay and move in i, stay and move in j
        let reward = kakade::average_reward([probs[0], probs[2]]);
        println!("{name}, seed {seed}: average reward {reward:.4} of 2");
        assert!(reward > 1.9, "{name}, seed {seed}: average reward {reward} of 2");
    }
}

/// CartPole in a tenth of the shipped steps: random play lasts about 20.
#[test]
fn ten_thousand_steps_of_cart_pole_teach_most_of_balancing() {
    for (name, checked) in [("trpo-cart-pole", true), ("npg-cart-pole", false)] {
        let mut lesson = Lesson::shipped(name);
        assert_eq!(lesson.algo.line_search.is_some(), checked, "{name}");
        lesson.total_steps = 10_000;
        let mut means: Vec<f64> = SEEDS
            .iter()
            .map(|&seed| lesson.learn(CartPole::v1, seed).evaluate(CartPole::v1, 20).mean())
            .collect();
        means.sort_by(f64::total_cmp);
        println!("{name}: mean returns {means:?}");
        assert!(means[1] >= 150.0, "{name}: mean returns {means:?}");
    }
}

//! TRPO and NPG in worlds whose best return is known exactly.

use rl_algos::TrpoConfig;
use rl_core::dist::{Categorical, DiagGaussian};
use rl_envs::{Bandit, CartPole, GridWorld, Lqr, TimeLimit};
use rl_tests::numbers;

use crate::lesson;

type Lesson = lesson::Lesson<TrpoConfig>;

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn a_bandit_is_played_almost_as_well_as_its_best_arm() {
    let world = Bandit::ten_armed(0);
    for seed in SEEDS {
        let learnt = Lesson::shipped("trpo-bandit").learn(|| world.clone(), seed);
        let law: Categorical = learnt.law(&[vec![1.0]]);
        let regret = world.regret(&[numbers(law.probs())]);
        println!("bandit, seed {seed}: regret {regret:.4} per pull of best mean {:.4}", world.best_mean());
        assert!(regret < 0.1, "seed {seed}: regret {regret} per pull of best mean {}", world.best_mean());
    }
}

#[test]
fn a_gridworld_is_walked_as_dynamic_programming_would() {
    let world = GridWorld::russell_norvig();
    let lesson = Lesson::shipped("trpo-gridworld");
    let model = world.model(lesson.algo.gamma).expect("a discount factor");
    let best = model.value_iteration(1e-10).expect("it converges").values[world.agent()];
    for seed in SEEDS {
        let learnt = lesson.learn(|| TimeLimit::new(world.clone(), 100), seed);
        let cells = world.cells().len();
        let one_hot = |cell: usize| (0..cells).map(|i| f32::from(u8::from(i == cell))).collect();
        let law: Categorical = learnt.law(&(0..cells).map(one_hot).collect::<Vec<Vec<f32>>>());
        let value = model.policy_evaluation(&numbers(law.probs())).expect("γ < 1")[world.agent()];
        println!("gridworld, seed {seed}: the policy is worth {value:.4} at the start, the best {best:.4}");
        assert!(value > best - 0.05, "seed {seed}: the policy is worth {value}, the best {best}");
    }
}

#[test]
fn a_linear_regulator_is_steered_near_the_riccati_cost() {
    let (world, lesson) = (Lqr::kakade(), Lesson::shipped("trpo-lqr"));
    let gamma = lesson.algo.gamma;
    let best = world.optimum(gamma).expect("a discount factor");
    let cost = |gain: f64| world.cost_of_gain(gain, gamma, 1.0).expect("a discount factor");
    for seed in SEEDS {
        let learnt = lesson.learn_continuous(|| TimeLimit::new(world.clone(), 100), seed);
        let law: DiagGaussian = learnt.law(&[vec![1.0], vec![-1.0]]);
        let actions = numbers(law.mean());
        let gain = (actions[1] - actions[0]) / 2.0;
        let (got, best) = (cost(gain), cost(best.gain));
        println!("regulator, seed {seed}: gain {gain:.4} costs {got:.4}, the best {best:.4}");
        assert!(got < 1.02 * best, "seed {seed}: gain {gain} costs {got}, the best {best}");
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

//! PPO in worlds whose best return is known exactly.

use rl_algos::{PpoConfig, PpoReport};
use rl_core::KlController;
use rl_core::dist::{Categorical, DiagGaussian};
use rl_envs::{Bandit, CartPole, GridWorld, KlToy, Lqr, TimeLimit, VecEnv};
use rl_tests::numbers;

use crate::lesson;

type Lesson = lesson::Lesson<PpoConfig>;

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn a_bandit_is_played_almost_as_well_as_its_best_arm() {
    let world = Bandit::ten_armed(0);
    for seed in SEEDS {
        let learnt = Lesson::shipped("ppo-bandit").learn(|| world.clone(), seed);
        let law: Categorical = learnt.law(&[vec![1.0]]);
        let policy = numbers(law.probs());
        let regret = world.regret(&[policy]);
        println!("bandit, seed {seed}: regret {regret:.4} per pull of best mean {:.4}", world.best_mean());
        assert!(regret < 0.1, "seed {seed}: regret {regret} per pull of best mean {}", world.best_mean());
    }
}

#[test]
fn a_gridworld_is_walked_as_dynamic_programming_would() {
    let world = GridWorld::russell_norvig();
    let lesson = Lesson::shipped("ppo-gridworld");
    let model = world.model(lesson.algo.gamma).expect("a discount factor");
    let best = model.value_iteration(1e-10).expect("it converges").values[world.agent()];
    for seed in SEEDS {
        let learnt = lesson.learn(|| TimeLimit::new(world.clone(), 100), seed);
        let cells = world.cells().len();
        let one_hot = |cell: usize| (0..cells).map(|i| f32::from(u8::from(i == cell))).collect();
        let law: Categorical = learnt.law(&(0..cells).map(one_hot).collect::<Vec<Vec<f32>>>());
        let value = model.policy_evaluation(&numbers(law.probs())).expect("γ < 1")[world.agent()];
        println!("gridworld, seed {seed}: the policy is worth {value:.4} at the start, the best {best:.4}");
        assert!(
            value > best - 0.05,
            "seed {seed}: the policy is worth {value} at the start, the best {best}"
        );
    }
}

#[test]
fn a_linear_regulator_is_steered_near_the_riccati_cost() {
    let (world, lesson) = (Lqr::kakade(), Lesson::shipped("ppo-lqr"));
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

/// Observations that say nothing: the chance is averaged over 256 of them.
#[test]
fn the_best_action_of_the_lectures_toy_is_all_but_certain() {
    let toys = VecEnv::new(vec![KlToy::new(); 256], 99);
    let observations: Vec<Vec<f32>> = toys.obs().chunks(toys.obs_dim()).map(<[f32]>::to_vec).collect();
    for seed in SEEDS {
        let learnt = Lesson::shipped("ppo-kl-toy").learn(KlToy::episodic, seed);
        let law: Categorical = learnt.law(&observations);
        let chances = numbers(law.probs().narrow(1, KlToy::BEST_ACTION, 1));
        let chance = chances.iter().sum::<f64>() / chances.len() as f64;
        println!("kl toy, seed {seed}: the best action has probability {chance:.4}");
        assert!(chance > 0.95, "seed {seed}: the best action has probability {chance}");
    }
}

/// One seed of CartPole: twenty greedy episodes of at most 500 steps.
#[track_caller]
fn cart_pole_is_solved(seed: u64) {
    let learnt = Lesson::shipped("ppo-cart-pole").learn(CartPole::v1, seed);
    let mean = learnt.evaluate(CartPole::v1, 20).mean();
    println!("cart pole, seed {seed}: mean return {mean}");
    assert!(mean >= 475.0, "seed {seed}: mean return {mean}");
}

#[test]
fn cart_pole_is_solved_from_seed_1() {
    cart_pole_is_solved(1);
}

#[test]
fn cart_pole_is_solved_from_seed_2() {
    cart_pole_is_solved(2);
}

#[test]
fn cart_pole_is_solved_from_seed_3() {
    cart_pole_is_solved(3);
}

/// The mean measured KL of the second half of a run.
fn late_kl(reports: &[PpoReport]) -> f64 {
    let late: Vec<f64> = reports[reports.len() / 2..].iter().filter_map(|report| report.kl).collect();
    late.iter().sum::<f64>() / late.len() as f64
}

/// The toy's reward never stops pulling, so without a penalty the policy moves as far as the step size lets it.
#[test]
fn an_adaptive_penalty_holds_the_measured_kl_near_its_target() {
    const TARGET: f64 = 0.01;
    let held_by = |controller: KlController| {
        let mut lesson = Lesson::shipped("ppo-kl-toy");
        lesson.algo.clip = None;
        lesson.algo.kl = Some(controller);
        lesson.algo.optimizer.learning_rate = 1e-3.into();
        lesson.algo.entropy_coef = 0.3.into(); // keeps the policy from arriving, so that there is something to hold
        (lesson.envs, lesson.total_steps) = (1, 16_000);
        (lesson.algo.epochs, lesson.algo.minibatch_rows) = (20, 50);
        lesson.learn(KlToy::episodic, 1).reports
    };
    let free = late_kl(&held_by(KlController::fixed(0.0)));
    let held = late_kl(&held_by(KlController::band(0.01, TARGET)));
    println!("kl toy: KL {held:.5} with the controller, {free:.5} without, target {TARGET}");
    assert!((0.5 * TARGET..2.0 * TARGET).contains(&held), "KL {held}, target {TARGET}");
    assert!(free > 2.0 * TARGET, "without a penalty KL is {free} anyway: the test proves nothing");
}

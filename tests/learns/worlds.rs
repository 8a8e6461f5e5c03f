//! PPO in worlds whose best return is known exactly.

use rl_algos::PpoReport;
use rl_core::KlController;
use rl_core::dist::{Categorical, DiagGaussian};
use rl_envs::{Bandit, CartPole, GridWorld, KlToy, Lqr, TimeLimit};
use rl_tests::numbers;

use crate::lesson::Lesson;

const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn a_bandit_is_played_almost_as_well_as_its_best_arm() {
    let world = Bandit::ten_armed(0);
    for seed in SEEDS {
        let learnt = Lesson::shipped("ppo-bandit").learn(|| world.clone(), seed);
        let law: Categorical = learnt.law(&[vec![1.0]]);
        let policy = numbers(law.probs());
        let regret = world.regret(&[policy]);
        assert!(regret < 0.1, "seed {seed}: regret {regret} per pull of best mean {}", world.best_mean());
    }
}

#[test]
fn a_gridworld_is_walked_as_dynamic_programming_would() {
    let world = GridWorld::russell_norvig();
    let lesson = Lesson::shipped("ppo-gridworld");
    let model = world.model(lesson.ppo.gamma).expect("a discount factor");
    let best = model.value_iteration(1e-10).expect("it converges").values[world.agent()];
    for seed in SEEDS {
        let learnt = lesson.learn(|| TimeLimit::new(world.clone(), 100), seed);
        let cells = world.cells().len();
        let one_hot = |cell: usize| (0..cells).map(|i| f32::from(u8::from(i == cell))).collect();
        let law: Categorical = learnt.law(&(0..cells).map(one_hot).collect::<Vec<Vec<f32>>>());
        let value = model.policy_evaluation(&numbers(law.probs())).expect("γ < 1")[world.agent()];
        assert!(value > best - 0.05, "seed {seed}: the policy is worth {value} at the start, the best {best}");
    }
}

#[test]
fn a_linear_regulator_is_steered_near_the_riccati_cost() {
    let (world, lesson) = (Lqr::kakade(), Lesson::shipped("ppo-lqr"));
    let gamma = lesson.ppo.gamma;
    let best = world.optimum(gamma).expect("a discount factor");
    let cost = |gain: f64| world.cost_of_gain(gain, gamma, 1.0).expect("a discount factor");
    for seed in SEEDS {
        let learnt = lesson.learn_continuous(|| TimeLimit::new(world.clone(), 100), seed);
        let law: DiagGaussian = learnt.law(&[vec![1.0], vec![-1.0]]);
        let actions = numbers(law.mean());
        let gain = (actions[1] - actions[0]) / 2.0;
        let (got, best) = (cost(gain), cost(best.gain));
        assert!(got < 1.02 * best, "seed {seed}: gain {gain} costs {got}, the best {best}");
    }
}

/// The mean over decisions of the probability of the toy's best action.
fn chance_of_the_best_action(law: &Categorical) -> f64 {
    let probs = numbers(law.probs());
    let (actions, best) = (4, KlToy::BEST_ACTION);
    let rows = probs.len() / actions;
    probs.iter().skip(best).step_by(actions).sum::<f64>() / rows as f64
}

/// Observations that say nothing, as the toy's do.
fn idle_observations() -> Vec<Vec<f32>> {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(99);
    (0..256).map(|_| (0..10).map(|_| rng.random_range(-1.7..1.7)).collect()).collect()
}

#[test]
fn the_toy_of_the_lecture_is_solved() {
    for seed in SEEDS {
        let learnt = Lesson::shipped("ppo-kl-toy").learn(KlToy::episodic, seed);
        let chance = chance_of_the_best_action(&learnt.law(&idle_observations()));
        assert!(chance > 0.95, "seed {seed}: the best action has probability {chance}");
    }
}

#[test]
fn cart_pole_is_solved_from_every_seed() {
    for seed in SEEDS {
        let learnt = Lesson::shipped("ppo-cart-pole").learn(CartPole::v1, seed);
        let mean = learnt.evaluate(CartPole::v1, 20).mean();
        assert!(mean >= 475.0, "seed {seed}: mean return {mean}");
    }
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
        lesson.ppo.clip = None;
        lesson.ppo.kl = Some(controller);
        lesson.ppo.optimizer.learning_rate = 1e-3.into();
        lesson.ppo.entropy_coef = 0.3.into(); // keeps the policy from arriving, so that there is something to hold
        lesson.total_steps = 16_000;
        lesson.learn(KlToy::episodic, 1).reports
    };
    let free = late_kl(&held_by(KlController::fixed(0.0)));
    let held = late_kl(&held_by(KlController::band(0.01, TARGET)));
    assert!((0.5 * TARGET..2.0 * TARGET).contains(&held), "KL {held}, target {TARGET}");
    assert!(free > 2.0 * TARGET, "without a penalty KL is {free} anyway: the test proves nothing");
}

//! `state` and `set_state`: a run that is stopped and taken up again is the same run.

use std::borrow::Borrow;

use proptest::prelude::*;
use rl_envs::{
    Acrobot, Arm, Bandit, CartPole, Env, GridWorld, Kakade, KlToy, Lqr, LqrConfig, MapObs, MapReward,
    MountainCar, MountainCarContinuous, Pendulum, TimeLimit, VecEnv, VecEnvState, env_rng,
};

use crate::{continuous_actions, discrete_actions, record};

/// Runs `first + rest` steps at once, and again with a stop after `first` steps from which a fresh
/// environment and a cloned generator go on: the rest must be equal bit by bit.
fn resumes<E: Env + Clone, A: Borrow<E::Action> + Clone>(
    name: &str,
    fresh: &E,
    actions: &[A],
    first: usize,
    seed: u64,
) {
    let (mut env, mut rng) = (fresh.clone(), env_rng(seed, 0));
    let mut obs = vec![0.0; env.obs_dim()];
    env.reset(&mut rng, &mut obs);
    record(&mut env, &mut rng, first, |t| actions[t].clone());

    let (mut later, mut later_rng) = (fresh.clone(), rng.clone());
    later.set_state(&env.state());
    assert_eq!(later.state(), env.state(), "{name}: the state comes back as it was");
    let (mut here, mut there) = (vec![0.0; env.obs_dim()], vec![0.0; env.obs_dim()]);
    env.observe(&mut here);
    later.observe(&mut there);
    assert_eq!(here, there, "{name}: the state decides the observation");

    let rest = actions.len() - first;
    let on = record(&mut env, &mut rng, rest, |t| actions[first + t].clone());
    let again = record(&mut later, &mut later_rng, rest, |t| actions[first + t].clone());
    assert_eq!(on, again, "{name}: the resumed run parts ways");
}

fn discrete_resumes<E: Env<Action = usize> + Clone>(name: &str, env: &E, first: usize, seed: u64) {
    resumes(name, env, &discrete_actions(env, seed, first + 60), first, seed);
}

fn continuous_resumes<E: Env<Action = [f32]> + Clone>(name: &str, env: &E, first: usize, seed: u64) {
    resumes(name, env, &continuous_actions(env, seed, first + 60), first, seed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_environment_goes_on_from_its_state_bit_by_bit(seed: u64, first in 0_usize..300) {
        let coins = vec![vec![Arm::Bernoulli { chance: 0.3 }, Arm::Normal { mean: 0.0, std: 1.0 }]; 3];
        discrete_resumes("Acrobot", &Acrobot::v1(), first, seed);
        discrete_resumes("Bandit", &Bandit::new(coins).unwrap(), first, seed);
        discrete_resumes("CartPole", &CartPole::v1(), first, seed);
        discrete_resumes("GridWorld", &TimeLimit::new(GridWorld::russell_norvig(), 30), first, seed);
        discrete_resumes("Kakade", &TimeLimit::new(Kakade::new(), 10), first, seed);
        discrete_resumes("KlToy", &KlToy::episodic(), first, seed);
        discrete_resumes("MountainCar", &MountainCar::v0(), first, seed);
        continuous_resumes("Lqr", &TimeLimit::new(Lqr::new(LqrConfig::default()).unwrap(), 20), first, seed);
        continuous_resumes("MountainCarContinuous", &MountainCarContinuous::v0(), first, seed);
        continuous_resumes("Pendulum", &Pendulum::v1(), first, seed);
        let mapped = MapReward::new(MapObs::new(CartPole::v1(), 2, |o, m| m.copy_from_slice(&[o[0], o[2]])), |r| r * 0.1);
        discrete_resumes("a mapped CartPole", &mapped, first, seed);
    }

    #[test]
    fn a_vector_goes_on_from_its_state_through_json(seed: u64, first in 0_usize..80, envs in 1_usize..6) {
        let actions = discrete_actions(&CartPole::v1(), seed, envs * (first + 80));
        let mut run = VecEnv::new(vec![CartPole::v1(); envs], seed);
        for t in 0..first {
            run.step(|i| &actions[t * envs + i]);
        }
        let json = serde_json::to_string(&run.state()).unwrap();
        // Another seed and another past: everything must come from the saved state.
        let mut resumed = VecEnv::new(vec![CartPole::v1(); envs], !seed);
        resumed.step(|_| &0);
        resumed.set_state(serde_json::from_str::<VecEnvState>(&json).unwrap());
        prop_assert_eq!(resumed.obs(), run.obs());
        for t in first..first + 80 {
            let again = resumed.step(|i| &actions[t * envs + i]).clone();
            prop_assert_eq!(run.step(|i| &actions[t * envs + i]), &again);
            prop_assert_eq!(resumed.obs(), run.obs());
        }
        prop_assert_eq!(resumed.state(), run.state());
    }
}

#[test]
fn a_state_of_another_vector_is_refused_and_changes_nothing() {
    let mut four = VecEnv::new(vec![CartPole::v1(); 4], 1);
    let before = four.state();
    let error = four.try_set_state(VecEnv::new(vec![CartPole::v1(); 8], 1).state()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the saved state holds 8 environments, but this run has 4; resume with the configuration it was saved by"
    );
    let error = four.try_set_state(VecEnv::new(vec![MountainCar::v0(); 4], 1).state()).unwrap_err();
    assert!(error.to_string().contains("3 numbers per environment, but this run has 5"), "{error}");
    assert_eq!(four.state(), before);
}

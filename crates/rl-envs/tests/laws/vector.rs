//! `VecEnv`: environments beside each other do not feel each other.

use proptest::prelude::*;
use rl_envs::{
    CartPole, Env, EpisodeWindow, GridWorld, KlToy, Pendulum, StepEnd, TimeLimit, VecEnv, VecStep, env_rng,
};

use crate::{continuous_actions, discrete_actions};

/// Everything that `steps` steps of a vector show.
fn trajectory<E: Env<Action = usize>>(
    mut envs: VecEnv<E>,
    actions: &[usize],
    steps: usize,
) -> Vec<(VecStep, Vec<f32>)> {
    let count = envs.len();
    (0..steps)
        .map(|t| {
            let step = envs.step(|i| &actions[t * count + i]).clone();
            (step, envs.obs().to_vec())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_same_seed_gives_the_same_trajectory_for_any_number_of_threads(
        seed: u64, envs in 1_usize..9, threads in 2_usize..12,
    ) {
        let world = TimeLimit::new(GridWorld::russell_norvig(), 20);
        let actions = discrete_actions(&world, seed, envs * 40);
        let one = trajectory(VecEnv::new(vec![world.clone(); envs], seed), &actions, 40);
        let many = trajectory(VecEnv::new(vec![world; envs], seed).with_threads(threads), &actions, 40);
        prop_assert_eq!(one, many);
    }

    #[test]
    fn an_environment_does_not_feel_how_many_others_there_are(seed: u64, envs in 2_usize..8) {
        let mut few = VecEnv::new(vec![KlToy::episodic(); envs], seed);
        let mut more = VecEnv::new(vec![KlToy::episodic(); envs + 3], seed);
        for _ in 0..30 {
            let alone = few.step(|_| &2).rewards.clone();
            prop_assert_eq!(&more.step(|_| &2).rewards[..envs], &alone[..]);
            prop_assert_eq!(&more.obs()[..few.obs().len()], few.obs());
        }
    }

    #[test]
    fn auto_reset_keeps_the_final_observation_and_shows_the_next_episode(seed: u64, envs in 1_usize..6) {
        let actions = discrete_actions(&CartPole::v1(), seed, envs * 200);
        let mut vector = VecEnv::new(vec![CartPole::v1(); envs], seed);
        // The same lanes by hand, one environment and one generator each.
        let mut by_hand: Vec<_> = (0..envs)
            .map(|i| {
                let (mut env, mut rng, mut obs) = (CartPole::v1(), env_rng(seed, i as u64), [0.0; 4]);
                env.reset(&mut rng, &mut obs);
                (env, rng, obs)
            })
            .collect();
        let mut ended = 0;
        for t in 0..200 {
            let step = vector.step(|i| &actions[t * envs + i]).clone();
            let mut finals = Vec::new();
            for (i, (env, rng, obs)) in by_hand.iter_mut().enumerate() {
                let want = env.step(&actions[t * envs + i], rng, obs);
                prop_assert_eq!((step.rewards[i], step.ends[i]), (want.reward, want.end));
                if want.end.is_over() {
                    finals.push((i, obs.to_vec()));
                    env.reset(rng, obs);
                }
                prop_assert_eq!(&vector.obs()[i * 4..(i + 1) * 4], &obs[..]);
            }
            prop_assert_eq!(step.episodes.len(), finals.len());
            ended += finals.len();
            prop_assert_eq!(step.final_obs, finals);
        }
        prop_assert!(ended > 0, "a random policy drops the pole");
    }

    #[test]
    fn episodes_account_for_every_step_and_every_reward(seed: u64, envs in 1_usize..5) {
        let mut vector = VecEnv::new(vec![TimeLimit::new(GridWorld::russell_norvig(), 15); envs], seed);
        let actions = discrete_actions(&GridWorld::russell_norvig(), seed, envs * 100);
        let (mut running, mut finished) = (vec![(0.0_f64, 0_usize); envs], EpisodeWindow::new(1_000));
        for t in 0..100 {
            let step = vector.step(|i| &actions[t * envs + i]);
            let mut episodes = step.episodes.iter();
            for (i, account) in running.iter_mut().enumerate() {
                *account = (account.0 + f64::from(step.rewards[i]), account.1 + 1);
                if step.ends[i].is_over() {
                    let episode = episodes.next().unwrap();
                    prop_assert_eq!((episode.env, episode.return_sum, episode.length), (i, account.0, account.1));
                    *account = (0.0, 0);
                }
            }
            prop_assert!(episodes.next().is_none());
            finished.extend(step.episodes.iter().copied());
        }
        let counted = finished.mean_length().unwrap_or(0.0) * finished.len() as f64;
        let open: usize = running.iter().map(|account| account.1).sum();
        prop_assert_eq!(counted.round() as usize + open, envs * 100);
    }

    #[test]
    fn continuous_actions_are_handed_out_by_environment(seed: u64) {
        let actions = continuous_actions(&Pendulum::v1(), seed, 6);
        let mut three = VecEnv::new(vec![Pendulum::v1(); 3], seed).with_threads(2);
        let mut boxed: VecEnv<Box<dyn Env<Action = [f32]>>> =
            VecEnv::new((0..3).map(|_| Box::new(Pendulum::v1()) as _).collect(), seed);
        for t in 0..2 {
            let step = three.step(|i| &actions[t * 3 + i]).clone();
            prop_assert_eq!(boxed.step(|i| &actions[t * 3 + i]), &step);
        }
    }
}

#[test]
fn a_reset_abandons_running_episodes_without_counting_them() {
    let mut vector = VecEnv::new(vec![TimeLimit::new(KlToy::new(), 3)], 1);
    vector.step(|_| &0);
    vector.reset();
    assert!(vector.step(|_| &0).episodes.is_empty());
    assert!(vector.step(|_| &0).episodes.is_empty());
    let step = vector.step(|_| &0);
    assert_eq!((step.ends[0], step.episodes[0].length), (StepEnd::Truncated, 3));
}

#[test]
#[should_panic(expected = "environment 1 has another observation size")]
fn environments_of_different_shape_do_not_make_a_vector() {
    let line = |map| GridWorld::parse(map, 0.0).unwrap();
    VecEnv::new(vec![line("S.G"), line("S..G")], 1);
}

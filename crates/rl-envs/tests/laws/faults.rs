//! Environments that fail are named, on any number of threads, and can be gone back from.

use std::time::Duration;

use rl_envs::flaky::{Failure, Flaky};
use rl_envs::{CartPole, EnvFault, Misdeed, TimeLimit, VecEnv};

type Envs = VecEnv<Flaky<TimeLimit<CartPole>>>;

/// Five poles; the fourth fails in its 30th step.
fn envs(failure: Failure, threads: usize) -> Envs {
    let env = |i| Flaky::new(CartPole::v1(), failure, if i == 3 { 30 } else { 0 });
    VecEnv::new((0..5).map(env).collect(), 2).with_threads(threads)
}

/// Steps until something fails; the episode and the step that environment 3 is in are counted beside it.
fn first_fault(envs: &mut Envs) -> (EnvFault, u64, usize) {
    let (mut episode, mut step) = (1, 0);
    for _ in 0..100 {
        step += 1;
        match envs.try_step(|_| &1) {
            Err(fault) => return (fault, episode, step),
            Ok(seen) if seen.ends[3].is_over() => (episode, step) = (episode + 1, 0),
            Ok(_) => {}
        }
    }
    panic!("nothing failed in 100 steps");
}

#[test]
fn a_failing_environment_is_named_with_its_episode_and_step() {
    for threads in [1, 3] {
        let cases = [
            (Failure::Panic, Misdeed::Panicked("the simulator has crashed".into())),
            (Failure::Reward(f32::INFINITY), Misdeed::Reward(f32::INFINITY)),
            (
                Failure::Observation(f32::NEG_INFINITY),
                Misdeed::Observation { entry: 3, value: f32::NEG_INFINITY },
            ),
        ];
        for (failure, what) in cases {
            let (fault, episode, step) = first_fault(&mut envs(failure, threads));
            assert!(episode > 1, "the pole fell within 30 steps");
            assert_eq!(fault, EnvFault { env: 3, name: "Flaky".into(), episode, step, what });
        }
        let (fault, ..) = first_fault(&mut envs(Failure::Shape, threads));
        assert!(matches!(&fault.what, Misdeed::Panicked(_)) && fault.env == 3, "{fault}");
        let (fault, ..) = first_fault(&mut envs(Failure::Reward(f32::NAN), threads));
        assert!(fault.to_string().ends_with("its reward is NaN"), "{fault}");
    }
}

#[test]
fn of_two_that_fail_the_first_is_named_on_any_number_of_threads() {
    for threads in [1, 2, 4] {
        let env = |i| Flaky::new(CartPole::v1(), Failure::Panic, if i % 2 == 1 { 4 } else { 0 });
        let mut envs = VecEnv::new((0..4).map(env).collect(), 2).with_threads(threads);
        assert_eq!(first_fault_of(&mut envs), 1, "{threads} threads");
    }
}

fn first_fault_of(envs: &mut Envs) -> usize {
    (0..10).find_map(|_| envs.try_step(|_| &0).err()).expect("two of them fail").env
}

#[test]
fn after_a_fault_an_earlier_state_goes_on_as_if_there_had_been_none() {
    let mut sound = envs(Failure::Panic, 1);
    let mut shaken = envs(Failure::Panic, 1);
    for _ in 0..20 {
        shaken.step(|_| &1);
    }
    let state = shaken.state();
    first_fault(&mut shaken);
    shaken.set_state(state);
    // The same, but for the failure that has not come yet.
    let mut never = VecEnv::new((0..5).map(|_| CartPole::v1()).collect(), 2);
    for _ in 0..20 {
        never.step(|_| &1);
        sound.step(|_| &1);
    }
    for _ in 0..60 {
        assert_eq!(shaken.step(|_| &1), never.step(|_| &1));
    }
    assert_eq!(shaken.state().episodes, never.state().episodes);
    assert_eq!(first_fault(&mut sound).0.env, 3);
}

#[test]
fn a_state_without_episode_numbers_is_taken_up() {
    let mut envs = envs(Failure::Hang(Duration::ZERO), 1);
    for _ in 0..40 {
        envs.step(|_| &1);
    }
    let mut state = envs.state();
    assert!(state.episodes.iter().all(|episode| *episode > 1));
    state.episodes.clear();
    envs.set_state(state);
    assert_eq!(envs.state().episodes, [1; 5]);
}

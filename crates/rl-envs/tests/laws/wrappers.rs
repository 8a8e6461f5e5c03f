//! `TimeLimit`, `MapObs` and `MapReward`: what they change, and that they change nothing else.

use proptest::prelude::*;
use rl_envs::{CartPole, Env, Kakade, MapObs, MapReward, Pendulum, StepEnd, TimeLimit, env_rng};

use crate::{continuous_actions, discrete_actions};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_time_limit_truncates_exactly_at_the_limit(limit in 1_usize..50, seed: u64) {
        let (mut env, mut rng, mut obs) = (TimeLimit::new(Kakade::new(), limit), env_rng(seed, 0), [0.0; 2]);
        for _ in 0..2 {
            env.reset(&mut rng, &mut obs);
            for t in 1..=limit {
                let want = if t == limit { StepEnd::Truncated } else { StepEnd::Continues };
                prop_assert_eq!(env.step(&1, &mut rng, &mut obs).end, want);
            }
        }
    }

    #[test]
    fn a_step_that_ends_by_itself_at_the_limit_is_terminated(seed: u64) {
        let (mut bare, mut rng, mut obs) = (CartPole::new(), env_rng(seed, 0), [0.0; 4]);
        bare.reset(&mut rng, &mut obs);
        let start = bare.state();
        let fall = (1..).find(|_| bare.step(&0, &mut rng, &mut obs).end.is_over()).unwrap();
        for (limit, want) in [(fall, StepEnd::Terminated), (fall - 1, StepEnd::Truncated)] {
            let mut env = TimeLimit::new(CartPole::new(), limit);
            env.set_state(&[&start[..], &[0.0]].concat());
            let end = (0..).map(|_| env.step(&0, &mut rng, &mut obs).end).find(|end| end.is_over());
            prop_assert_eq!((end, env.elapsed()), (Some(want), limit));
        }
    }

    #[test]
    fn a_time_limit_changes_nothing_but_the_end(seed: u64, limit in 1_usize..40) {
        let (mut bare, mut limited) = (Pendulum::new(), TimeLimit::new(Pendulum::new(), limit));
        let (mut one, mut two) = (env_rng(seed, 0), env_rng(seed, 0));
        let (mut obs, mut limited_obs) = ([0.0; 3], [0.0; 3]);
        bare.reset(&mut one, &mut obs);
        limited.reset(&mut two, &mut limited_obs);
        for action in continuous_actions(&bare, seed, limit) {
            let step = bare.step(&action, &mut one, &mut obs);
            prop_assert_eq!(limited.step(&action, &mut two, &mut limited_obs).reward, step.reward);
            prop_assert_eq!(obs, limited_obs);
        }
    }

    #[test]
    fn mapping_and_then_stepping_is_stepping_and_then_mapping(seed: u64, scale in -3.0_f32..3.0) {
        let mut mapped = MapObs::new(MapReward::new(CartPole::v1(), move |r| scale * r), 3, |o, m| {
            m.copy_from_slice(&[o[3], o[0] * o[1], 1.0]);
        });
        let (mut raw, mut one, mut two) = (CartPole::v1(), env_rng(seed, 0), env_rng(seed, 0));
        let (mut obs, mut m) = ([0.0; 4], [0.0; 3]);
        raw.reset(&mut one, &mut obs);
        mapped.reset(&mut two, &mut m);
        for action in discrete_actions(&raw, seed, 30) {
            let (step, other) = (raw.step(&action, &mut one, &mut obs), mapped.step(&action, &mut two, &mut m));
            prop_assert_eq!((other.reward, other.end), (scale * step.reward, step.end));
            prop_assert_eq!(m, [obs[3], obs[0] * obs[1], 1.0]);
            let mut again = [0.0; 3];
            mapped.observe(&mut again);
            prop_assert_eq!(m, again);
        }
    }
}

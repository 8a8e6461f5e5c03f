//! Laws of group advantages.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::group::{groups_without_signal, grpo, grpo_no_scale, rloo};

use crate::{assert_all_near, assert_near};

/// Rewards of one to five groups of `K` in 2..8.
fn groups() -> impl Strategy<Value = (Vec<f64>, usize)> {
    (2usize..8, 1usize..6).prop_flat_map(|(k, groups)| (vec(-5.0..5.0, k * groups), Just(k)))
}

proptest! {
    #[test]
    fn the_advantages_of_a_group_sum_to_zero((rewards, k) in groups()) {
        for advantages in [rloo(&rewards, k), grpo(&rewards, k), grpo_no_scale(&rewards, k)] {
            for group in advantages.chunks(k) {
                assert_near(group.iter().sum(), 0.0, 1e-9);
            }
        }
    }

    #[test]
    fn leaving_one_out_stretches_the_centred_reward((rewards, k) in groups()) {
        let stretch = k as f64 / (k as f64 - 1.0);
        let stretched: Vec<f64> = grpo_no_scale(&rewards, k).iter().map(|a| stretch * a).collect();
        assert_all_near(&rloo(&rewards, k), &stretched, 1e-12);
    }

    #[test]
    fn a_response_is_not_in_its_own_baseline((rewards, k) in groups(), more in -5.0..5.0) {
        let mut other = rewards.clone();
        other[0] += more;
        assert_near(rloo(&other, k)[0] - rloo(&rewards, k)[0], more, 1e-12);
    }

    #[test]
    fn groups_do_not_see_each_other((rewards, k) in groups(), foreign in -100.0..100.0) {
        let mut other = rewards.clone();
        other[k..].fill(foreign);
        for advantages in [rloo, grpo, grpo_no_scale] {
            prop_assert_eq!(&advantages(&rewards, k)[..k], &advantages(&other, k)[..k]);
        }
    }

    #[test]
    fn a_constant_reward_has_no_advantage(reward in any::<f32>().prop_filter("finite", |x| x.is_finite()), k in 2usize..9) {
        let rewards = vec![reward; k];
        for advantages in [rloo, grpo, grpo_no_scale] {
            prop_assert_eq!(advantages(&rewards, k), vec![0.0; k]);
        }
        prop_assert_eq!(groups_without_signal(&rewards, k), 1);
    }
}

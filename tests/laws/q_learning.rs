//! Laws of action values: who chooses, who judges, and what an end hides.

use burn::tensor::{Bool, Int, Tensor, TensorData};
use proptest::prelude::*;
use rl_core::q_learning::{chosen, double_value, greedy_value, target};
use rl_core::value_loss::{huber, squared};
use rl_tests::{check_gradient, devices, gradient, numbers, tensor};

use crate::{assert_all_near, assert_near};

fn values(n: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-5.0..5.0, n)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_value_of_a_choice_is_never_above_the_best_and_is_it_where_one_network_does_both(
        q in values(12), judge in values(12),
    ) {
        for (_, device) in devices() {
            let (q, judge) = (tensor(&q, [3, 4], &device), tensor(&judge, [3, 4], &device));
            let best = numbers(greedy_value(judge.clone()));
            let double = numbers(double_value(q, judge.clone()));
            prop_assert!(double.iter().zip(&best).all(|(d, b)| d <= b));
            prop_assert_eq!(numbers(double_value(judge.clone(), judge)), best);
        }
    }

    #[test]
    fn what_comes_after_an_end_is_hidden_be_it_no_number_at_all(
        rewards in values(2), next in -5.0..5.0, gamma in 0.0..1.0,
    ) {
        for (_, device) in devices() {
            let ended = Tensor::<1, Bool>::from_data([true, false], &device);
            let rewards = tensor(&rewards, [2], &device);
            let y = numbers(target(rewards.clone(), tensor(&[f64::NAN, next], [2], &device), ended, gamma));
            let r = numbers(rewards);
            assert_all_near(&y, &[r[0], r[1] + gamma * next], 1e-12);
        }
    }

    #[test]
    fn only_the_action_taken_is_learnt(q in values(8), actions in prop::collection::vec(0_i64..4, 2)) {
        for (_, device) in devices() {
            let q = tensor(&q, [2, 4], &device);
            let taken = Tensor::<1, Int>::from_data(TensorData::new(actions.clone(), [2]), &device);
            check_gradient(|q| chosen(q, taken.clone()).square(), &q);
            let slope = gradient(|q| chosen(q, taken.clone()), &q);
            for (row, &action) in actions.iter().enumerate() {
                for a in 0..4 {
                    prop_assert_eq!(slope[4 * row + a], f64::from(u8::from(action == a as i64)));
                }
            }
        }
    }

    #[test]
    fn huber_is_half_the_square_near_by_and_never_pulls_harder_than_one(value in -4.0..4.0, goal in -4.0..4.0) {
        for (_, device) in devices() {
            let (v, r) = (tensor(&[value], [1], &device), tensor(&[goal], [1], &device));
            let (loss, error) = (numbers(huber(v.clone(), r.clone()))[0], value - goal);
            let pull = gradient(|v| huber(v, r.clone()), &v)[0];
            assert_near(pull, error.clamp(-1.0, 1.0), 1e-12);
            prop_assert!(loss <= numbers(squared(v, r))[0] + 1e-12);
            assert_near(loss, if error.abs() <= 1.0 { 0.5 * error * error } else { error.abs() - 0.5 }, 1e-12);
        }
    }
}

//! Laws of the policy-gradient surrogates.

use burn::tensor::{Device, Tensor};
use proptest::prelude::*;
use rl_core::dist::{Categorical, Distribution};
use rl_core::surrogate::{
    clipped, clipped_between, importance_weighted, kl_penalised, ratio, ratio_of, score_function,
};
use rl_tests::{devices, gradient, numbers, tensor};

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

fn number(x: f64, device: &Device) -> Tensor<1> {
    tensor(&[x], [1], device)
}

proptest! {
    #[test]
    fn at_ratio_one_every_surrogate_has_the_policy_gradient(z in prop::collection::vec(-3.0..3.0, 12),
        advantage in prop::collection::vec(-2.0..2.0, 3), actions in prop::collection::vec(0..4_usize, 3))
    {
        for (_, device) in devices() {
            let z = tensor(&z, [3, 4], &device);
            let event = Categorical::event(&actions, 3, &device);
            let advantage = tensor(&advantage, [3], &device);
            let old = Categorical::new(z.clone());
            let log_prob_old = old.log_prob(&event);
            let rho = |z: Tensor<2>| ratio(Categorical::new(z).log_prob(&event), log_prob_old.clone());

            let policy_gradient = gradient(|z| score_function(Categorical::new(z).log_prob(&event), advantage.clone()), &z);
            let weighted = gradient(|z| importance_weighted(rho(z), advantage.clone()), &z);
            let ppo = gradient(|z| clipped(rho(z), advantage.clone(), 0.2), &z);
            let both = gradient(|z| {
                let kl = old.kl(&Categorical::new(z.clone()));
                kl_penalised(clipped(rho(z), advantage.clone(), 0.2), kl, 10.0)
            }, &z);
            prop_assert_eq!(numbers(rho(z.clone())), vec![1.0; 3]);
            prop_assert!(close(&weighted, &policy_gradient, 1e-13));
            prop_assert!(close(&ppo, &policy_gradient, 1e-13));
            prop_assert!(close(&both, &policy_gradient, 1e-12));
        }
    }

    #[test]
    fn clipping_never_raises_the_objective(log_ratio in -3.0..3.0, advantage in -2.0..2.0, clip in 0.01..0.9) {
        for (_, device) in devices() {
            let rho = ratio_of(number(log_ratio, &device));
            let plain = numbers(importance_weighted(rho.clone(), number(advantage, &device)))[0];
            prop_assert!(numbers(clipped(rho, number(advantage, &device), clip))[0] <= plain + 1e-15);
        }
    }

    #[test]
    fn the_clipped_surrogate_is_the_smaller_of_its_two_terms(log_ratio in -3.0..3.0, advantage in -2.0..2.0,
        low in 0.01..0.9, high in 0.01..0.9)
    {
        let rho = f64::exp(log_ratio);
        let want = f64::min(rho * advantage, rho.clamp(1.0 - low, 1.0 + high) * advantage);
        for (_, device) in devices() {
            let got = clipped_between(number(rho, &device), number(advantage, &device), low, high);
            prop_assert!((numbers(got)[0] - want).abs() < 1e-13);
        }
    }

    #[test]
    fn beyond_the_bound_on_its_own_side_a_decision_has_no_gradient(log_ratio in -3.0..3.0, advantage in -2.0..2.0) {
        let rho = f64::exp(log_ratio);
        let held_back = (advantage > 0.0 && rho > 1.2) || (advantage < 0.0 && rho < 0.8);
        for (_, device) in devices() {
            let g = gradient(|rho| clipped(rho, number(advantage, &device), 0.2), &number(rho, &device));
            prop_assert_eq!(g[0], if held_back { 0.0 } else { advantage });
        }
    }

    #[test]
    fn the_penalty_lowers_the_objective(surrogate in -2.0..2.0, kl in 0.001..2.0, beta in 0.001..10.0) {
        for (_, device) in devices() {
            let penalised = kl_penalised(number(surrogate, &device), number(kl, &device), beta);
            prop_assert!(numbers(penalised)[0] < surrogate);
        }
    }

    #[test]
    fn no_log_ratio_makes_the_objective_infinite(log_ratio in -1e4..1e4, advantage in -1e3..1e3) {
        for (_, device) in devices() {
            let objective = |r: Tensor<1>| clipped(ratio_of(r), number(advantage, &device), 0.2);
            prop_assert!(numbers(objective(number(log_ratio, &device)))[0].is_finite());
            prop_assert!(gradient(objective, &number(log_ratio, &device))[0].is_finite());
        }
    }
}

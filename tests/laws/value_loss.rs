//! Laws of the value losses.

use burn::tensor::{Device, Tensor};
use proptest::prelude::*;
use rl_core::value_loss::{clipped_max, clipped_sb3, squared};
use rl_tests::{devices, gradient, numbers, tensor};

fn number(x: f64, device: &Device) -> Tensor<1> {
    tensor(&[x], [1], device)
}

proptest! {
    #[test]
    fn clipping_never_lowers_the_loss(value in -3.0..3.0, old in -3.0..3.0, target in -3.0..3.0, clip in 0.01..2.0) {
        for (_, device) in devices() {
            let [v, o, r] = [value, old, target].map(|x| number(x, &device));
            let plain = numbers(squared(v.clone(), r.clone()))[0];
            prop_assert!(numbers(clipped_max(v, o, r, clip))[0] >= plain - 1e-15);
        }
    }

    #[test]
    fn within_the_clip_all_three_have_one_gradient(old in -3.0..3.0, step in -0.099..0.099, target in -3.0..3.0) {
        for (_, device) in devices() {
            let [v, o, r] = [old + step, old, target].map(|x| number(x, &device));
            let plain = gradient(|v| squared(v, r.clone()), &v)[0];
            let larger = gradient(|v| clipped_max(v, o.clone(), r.clone(), 0.1), &v)[0];
            let sb3 = gradient(|v| clipped_sb3(v, o.clone(), r.clone(), 0.1), &v)[0];
            prop_assert_eq!(plain, old + step - target);
            prop_assert_eq!(larger, plain);
            prop_assert_eq!(sb3, 2.0 * plain);
        }
    }

    #[test]
    fn beyond_the_clip_the_sb3_form_never_learns_and_the_maximum_learns_only_to_come_back(old in -3.0..3.0,
        step in prop_oneof![0.11..2.0, -2.0..-0.11], target in -3.0..3.0)
    {
        for (_, device) in devices() {
            let [v, o, r] = [old + step, old, target].map(|x| number(x, &device));
            prop_assert_eq!(gradient(|v| clipped_sb3(v, o.clone(), r.clone(), 0.1), &v)[0], 0.0);
            let pull = -gradient(|v| clipped_max(v, o.clone(), r.clone(), 0.1), &v)[0];
            let plain = target - (old + step);
            prop_assert!(pull == 0.0 || (pull == plain && pull * step < 0.0), "pull {} after a step of {}", pull, step);
        }
    }

    #[test]
    fn a_value_that_did_not_move_pays_the_squared_error(value in -3.0..3.0, target in -3.0..3.0) {
        for (_, device) in devices() {
            let [v, r] = [value, target].map(|x| number(x, &device));
            let plain = numbers(squared(v.clone(), r.clone()))[0];
            prop_assert_eq!(numbers(clipped_max(v.clone(), v.clone(), r.clone(), 0.2))[0], plain);
            prop_assert!((numbers(clipped_sb3(v.clone(), v, r, 0.2))[0] - 2.0 * plain).abs() < 1e-12);
        }
    }
}

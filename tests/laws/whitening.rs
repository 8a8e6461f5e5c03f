//! Laws of whitening on the host.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::whiten::{Variance, moments, whiten, whiten_keeping_mean};

use crate::{assert_all_near, assert_near};

/// Values and which of them count.
fn masked() -> impl Strategy<Value = (Vec<f64>, Vec<bool>)> {
    vec((-100.0..100.0, any::<bool>()), 0..40).prop_map(|pairs| pairs.into_iter().unzip())
}

fn variance() -> impl Strategy<Value = Variance> {
    prop_oneof![Just(Variance::Biased), Just(Variance::Unbiased)]
}

/// Values whose variance is far above the floor under the root.
fn spread() -> impl Strategy<Value = (Vec<f64>, Vec<bool>, Variance)> {
    (masked(), variance())
        .prop_map(|((values, mask), variance)| (values, mask, variance))
        .prop_filter("a spread", |(values, mask, variance)| {
            moments(values, Some(mask), *variance).is_some_and(|of| of.variance > 1.0)
        })
}

/// The values that count.
fn chosen(values: &[f64], mask: &[bool]) -> Vec<f64> {
    values.iter().zip(mask).filter(|&(_, &real)| real).map(|(&x, _)| x).collect()
}

proptest! {
    #[test]
    fn whitened_values_have_mean_zero_and_deviation_one((values, mask, variance) in spread()) {
        let spread = moments(&values, Some(&mask), variance).unwrap().variance;
        let white = whiten(&values, Some(&mask), variance);
        let of = moments(&white, Some(&mask), variance).unwrap();
        assert_near(of.mean, 0.0, 1e-9);
        assert_near(of.variance, spread / (spread + 1e-8), 1e-9);
    }

    #[test]
    fn what_padding_holds_does_not_matter(
        (values, mask) in masked(),
        variance in variance(),
        junk in prop::sample::select(vec![0.0, 99.0, f64::NAN, f64::INFINITY]),
    ) {
        let mut padded = values.clone();
        for (x, real) in padded.iter_mut().zip(&mask) {
            if !real {
                *x = junk;
            }
        }
        prop_assert_eq!(whiten(&values, Some(&mask), variance), whiten(&padded, Some(&mask), variance));
    }

    #[test]
    fn a_mask_is_the_same_as_leaving_values_out((values, mask) in masked(), variance in variance()) {
        let white = whiten(&values, Some(&mask), variance);
        prop_assert_eq!(chosen(&white, &mask), whiten(&chosen(&values, &mask), None, variance));
        prop_assert!(white.iter().zip(&mask).all(|(&x, &real)| real || x == 0.0));
    }

    #[test]
    fn keeping_the_mean_keeps_it((values, mask) in masked(), variance in variance()) {
        let Some(of) = moments(&values, Some(&mask), variance) else { return Ok(()) };
        let kept = whiten_keeping_mean(&values, Some(&mask), variance);
        assert_near(moments(&kept, Some(&mask), variance).unwrap().mean, of.mean, 1e-9);
        let shifted: Vec<f64> = whiten(&values, Some(&mask), variance).iter().map(|x| x + of.mean).collect();
        assert_all_near(&chosen(&kept, &mask), &chosen(&shifted, &mask), 1e-12);
    }

    #[test]
    fn units_do_not_matter(
        (values, mask, variance) in spread(),
        scale in 0.5..100.0,
        shift in -100.0..100.0,
    ) {
        let other: Vec<f64> = values.iter().map(|x| scale * x + shift).collect();
        let white = whiten(&values, Some(&mask), variance);
        assert_all_near(&whiten(&other, Some(&mask), variance), &white, 1e-6);
    }

    #[test]
    fn too_few_values_for_a_variance_pass_through(value in -100.0..100.0_f64, junk in any::<f64>()) {
        prop_assert_eq!(whiten(&[value], None, Variance::Unbiased), [value]);
        prop_assert_eq!(whiten(&[junk, value], Some(&[false, true]), Variance::Unbiased), [0.0, value]);
        prop_assert_eq!(whiten(&[junk, junk], Some(&[false, false]), Variance::Biased), [0.0, 0.0]);
    }

    #[test]
    fn two_values_become_opposite(one in -100.0..100.0_f64, two in -100.0..100.0_f64) {
        let white = whiten(&[one, two], None, Variance::Unbiased);
        prop_assert!(white.iter().all(|x| x.is_finite()));
        assert_near(white[0], -white[1], 1e-9);
    }
}

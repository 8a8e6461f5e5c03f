//! Laws of the KL controllers.

use proptest::collection::vec;
use proptest::prelude::*;
use rl_core::KlController;

use crate::assert_near;

/// Any measurement, the broken ones too.
fn any_kl() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..20.0,
        2 => -1.0..1.0,
        1 => any::<f64>(),
        2 => prop::sample::select(vec![
            f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE,
        ]),
    ]
}

/// Any measurement that is one: not NaN and not −∞.
fn measured_kl() -> impl Strategy<Value = f64> {
    any_kl().prop_filter("a measurement", |kl| *kl > f64::NEG_INFINITY)
}

/// A valid adaptive controller of each kind.
fn adaptive() -> impl Strategy<Value = KlController> {
    let numbers = (1e-3..10.0, 1e-4..10.0, 1e-3..4.999, 0.0..1.0, 1.0..1e6);
    (0..3, numbers).prop_map(|(kind, (beta, target, gain, below, above))| {
        let (min, max) = (beta * (below + 1e-9), beta * above);
        match kind {
            0 => KlController::Band { beta, target, min, max },
            1 => KlController::Schulman { beta, target, min, max },
            _ => KlController::Proportional { beta, target, gain, min, max },
        }
    })
}

fn caps(controller: KlController) -> (f64, f64) {
    match controller {
        KlController::Fixed { beta } => (beta, beta),
        KlController::Band { min, max, .. }
        | KlController::Schulman { min, max, .. }
        | KlController::Proportional { min, max, .. } => (min, max),
    }
}

/// The largest factor by which one update may change β.
fn step(controller: KlController) -> f64 {
    match controller {
        KlController::Fixed { .. } => 1.0,
        KlController::Band { .. } => 1.5,
        KlController::Schulman { .. } => 2.0,
        KlController::Proportional { gain, .. } => (1.0 + 0.2 * gain).max(1.0 / (1.0 - 0.2 * gain)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn under_any_sequence_of_measurements_beta_stays_finite_and_within_its_caps(
        controller in adaptive(),
        kls in vec(any_kl(), 0..60),
    ) {
        prop_assert_eq!(controller.validate(), Ok(()));
        let (min, max) = caps(controller);
        let mut controller = controller;
        for kl in kls {
            controller = controller.after(kl);
            prop_assert!(controller.beta().is_finite());
            prop_assert!((min..=max).contains(&controller.beta()), "{kl}: {controller:?}");
        }
        prop_assert_eq!(controller.validate(), Ok(()));
    }

    #[test]
    fn every_controller_moves_beta_in_the_right_direction(controller in adaptive(), kl in any_kl()) {
        let (before, after) = (controller.beta(), controller.after(kl).beta());
        let target = controller.target().unwrap();
        if kl.is_nan() || kl == f64::NEG_INFINITY {
            prop_assert_eq!(after, before);
        } else if kl > target {
            prop_assert!(after >= before);
        } else {
            prop_assert!(after <= before);
        }
    }

    #[test]
    fn far_from_the_target_beta_really_moves(controller in adaptive(), kl in any_kl()) {
        let (min, max) = caps(controller);
        let (before, after) = (controller.beta(), controller.after(kl).beta());
        let target = controller.target().unwrap();
        if kl > 2.5 * target && before < max {
            prop_assert!(after > before);
        }
        if kl < target / 2.5 && kl > f64::NEG_INFINITY && before > min {
            prop_assert!(after < before);
        }
    }

    #[test]
    fn a_larger_kl_never_gives_a_smaller_beta(
        controller in adaptive(),
        one in measured_kl(),
        two in measured_kl(),
    ) {
        let (low, high) = if one <= two { (one, two) } else { (two, one) };
        prop_assert!(controller.after(low).beta() <= controller.after(high).beta());
    }

    #[test]
    fn one_update_changes_beta_by_no_more_than_the_step_of_its_rule(controller in adaptive(), kl in any_kl()) {
        let ratio = controller.after(kl).beta() / controller.beta();
        let step = step(controller) * (1.0 + 1e-12);
        prop_assert!((1.0 / step..=step).contains(&ratio), "{ratio}");
    }
}

proptest! {
    #[test]
    fn on_target_beta_stays(controller in adaptive()) {
        prop_assert_eq!(controller.after(controller.target().unwrap()), controller);
    }

    #[test]
    fn a_fixed_beta_never_moves(beta in 0.0..1e6, kls in vec(any_kl(), 0..20)) {
        let controller = KlController::fixed(beta);
        prop_assert_eq!(kls.into_iter().fold(controller, KlController::after), controller);
    }

    #[test]
    fn where_kl_falls_as_beta_rises_every_controller_finds_its_target(
        start in 0.01..10.0,
        target in 0.01..10.0,
        needed in 0.01..10.0,
    ) {
        let world = |beta: f64| target * needed / beta; // at β = needed the KL is the target
        let settle = |mut controller: KlController| {
            for _ in 0..2_000 {
                controller = controller.after(world(controller.beta()));
            }
            world(controller.beta()) / target
        };
        prop_assert!((0.5..=2.0).contains(&settle(KlController::band(start, target))));
        let schulman = settle(KlController::schulman(start, target));
        prop_assert!((1.0 / 1.5..=1.5).contains(&schulman), "{schulman}");
        assert_near(settle(KlController::proportional(start, target)), 1.0, 1e-6);
    }

    #[test]
    fn a_controller_read_back_from_its_checkpoint_is_the_same_to_the_bit(
        controller in adaptive(),
        kls in vec(any_kl(), 0..10),
    ) {
        let controller = kls.into_iter().fold(controller, KlController::after);
        let text = serde_json::to_string(&controller).unwrap();
        prop_assert_eq!(serde_json::from_str::<KlController>(&text).unwrap(), controller);
    }

    #[test]
    fn a_target_that_cannot_be_held_is_refused(
        controller in adaptive(),
        bad in prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY]),
    ) {
        let controller = match controller {
            KlController::Band { beta, min, max, .. } => KlController::Band { beta, target: bad, min, max },
            KlController::Schulman { beta, min, max, .. } => KlController::Schulman { beta, target: bad, min, max },
            KlController::Proportional { beta, gain, min, max, .. } => {
                KlController::Proportional { beta, target: bad, gain, min, max }
            }
            fixed => fixed,
        };
        let error = controller.validate().unwrap_err().to_string();
        prop_assert!(error.starts_with("`kl.target` must be in (0, ∞)"), "{error}");
    }
}

//! Laws of the losses that learn from comparisons.

use burn::tensor::{Device, Tensor};
use proptest::prelude::*;
use rl_core::preference::{
    PairLogProb, accuracy, apo_down, apo_zero, bco_pair, bradley_terry, cdpo, dpo, exo_pair, hinge,
    implicit_reward, ipo, kto_pair, nca_pair, preference_prob, robust, sppo_hard, tie_fraction,
};
use rl_tests::{devices, gradient, numbers, tensor};

const LN_2: f64 = std::f64::consts::LN_2;

fn number(x: f64, device: &Device) -> Tensor<1> {
    tensor(&[x], [1], device)
}

fn pair(chosen: f64, rejected: f64, device: &Device) -> PairLogProb {
    PairLogProb::new(number(chosen, device), number(rejected, device))
}

fn only(x: Tensor<1>) -> f64 {
    numbers(x)[0]
}

/// The gradients in the two log-probabilities of the policy.
fn gradients(loss: impl Fn(PairLogProb) -> Tensor<1>, policy: PairLogProb) -> (f64, f64) {
    let PairLogProb { chosen, rejected } = policy;
    let up = gradient(|chosen| loss(PairLogProb::new(chosen, rejected.clone())), &chosen)[0];
    let down = gradient(|rejected| loss(PairLogProb::new(chosen.clone(), rejected)), &rejected)[0];
    (up, down)
}

type Loss = fn(PairLogProb, PairLogProb) -> Tensor<1>;

/// The losses that see a pair only through the difference of its log-ratios.
const OF_THE_DIFFERENCE: [(&str, Loss); 6] = [
    ("dpo", |p, r| dpo(p, r, 0.3)),
    ("cdpo", |p, r| cdpo(p, r, 0.3, 0.2)),
    ("robust", |p, r| robust(p, r, 0.3, 0.2)),
    ("ipo", |p, r| ipo(p, r, 0.3)),
    ("hinge", |p, r| hinge(p, r, 0.3)),
    ("exo_pair", |p, r| exo_pair(p, r, 0.3, 0.2)),
];

type LossAt = fn(PairLogProb, PairLogProb, f64) -> Tensor<1>;

/// Every loss of the family, at any β.
const FAMILY: [(&str, LossAt); 12] = [
    ("dpo", dpo),
    ("cdpo", |p, r, beta| cdpo(p, r, beta, 0.1)),
    ("robust", |p, r, beta| robust(p, r, beta, 0.1)),
    ("ipo", ipo),
    ("hinge", hinge),
    ("exo_pair", |p, r, beta| exo_pair(p, r, beta, 0.1)),
    ("sppo_hard", sppo_hard),
    ("nca_pair", nca_pair),
    ("bco_pair", bco_pair),
    ("apo_zero", apo_zero),
    ("apo_down", apo_down),
    ("kto_pair", kto_pair),
];

proptest! {
    #[test]
    fn no_log_ratio_and_no_beta_makes_a_loss_or_a_gradient_infinite(a in -1e4..1e4, b in -1e4..1e4,
        digits in -8.0..2.0, tie in proptest::bool::ANY)
    {
        let (beta, b) = (10f64.powf(digits), if tie { a } else { b });
        for (_, device) in devices() {
            let reference = pair(0.0, 0.0, &device);
            for (name, loss) in FAMILY {
                let policy = pair(a, b, &device);
                let value = only(loss(policy.clone(), reference.clone(), beta));
                let (chosen, rejected) = gradients(|p| loss(p, reference.clone(), beta), policy);
                let finite = [value, chosen, rejected].iter().all(|x| x.is_finite());
                prop_assert!(finite, "{name}, a {a}, b {b}, β {beta}: {value}, {chosen}, {rejected}");
            }
        }
    }

    #[test]
    fn a_policy_equal_to_its_reference_pays_log_two_and_learns_which_answer_was_chosen(w in -50.0..0.0, l in -50.0..0.0,
        beta in 0.01..5.0)
    {
        for (_, device) in devices() {
            let reference = pair(w, l, &device);
            prop_assert!((only(dpo(reference.clone(), reference.clone(), beta)) - LN_2).abs() < 1e-15);
            let (chosen, rejected) = gradients(|p| dpo(p, reference.clone(), beta), reference.clone());
            prop_assert!((chosen + beta / 2.0).abs() < 1e-15 && (rejected - beta / 2.0).abs() < 1e-15);
        }
    }

    #[test]
    fn the_gradient_of_dpo_is_weighted_by_how_wrong_the_model_is(a in -20.0..20.0, b in -20.0..20.0, beta in 0.01..2.0) {
        for (_, device) in devices() {
            let reference = pair(0.0, 0.0, &device);
            let (chosen, rejected) = gradients(|p| dpo(p, reference.clone(), beta), pair(a, b, &device));
            let weight = 1.0 / (1.0 + f64::exp(beta * (a - b))); // σ(r̂_l − r̂_w)
            prop_assert!((chosen + beta * weight).abs() < 1e-12 && (rejected - beta * weight).abs() < 1e-12);
        }
    }

    #[test]
    fn dpo_is_bradley_terry_on_implicit_rewards(w in -9.0..0.0, l in -9.0..0.0, w_ref in -9.0..0.0, l_ref in -9.0..0.0) {
        for (_, device) in devices() {
            let (policy, reference) = (pair(w, l, &device), pair(w_ref, l_ref, &device));
            let chosen = implicit_reward(policy.chosen.clone(), reference.chosen.clone(), 0.3);
            let rejected = implicit_reward(policy.rejected.clone(), reference.rejected.clone(), 0.3);
            let rewards = only(bradley_terry(chosen, rejected));
            prop_assert!((only(dpo(policy, reference, 0.3)) - rewards).abs() < 1e-14);
        }
    }

    #[test]
    fn a_loss_of_the_difference_is_blind_to_a_common_shift(w in -9.0..0.0, l in -9.0..0.0, shift in -40.0..0.0) {
        for (_, device) in devices() {
            for (name, loss) in OF_THE_DIFFERENCE {
                let at = |shift: f64| only(loss(pair(w + shift, l + shift, &device), pair(-4.0, -5.0, &device)));
                prop_assert!((at(0.0) - at(shift)).abs() < 1e-10 * at(0.0).abs().max(1.0), "{}", name);
            }
        }
    }

    #[test]
    fn without_smoothing_the_noisy_label_losses_are_dpo(w in -9.0..0.0, l in -9.0..0.0) {
        for (_, device) in devices() {
            let (policy, reference) = (pair(w, l, &device), pair(-4.0, -5.0, &device));
            let plain = only(dpo(policy.clone(), reference.clone(), 0.3));
            prop_assert!((only(cdpo(policy.clone(), reference.clone(), 0.3, 0.0)) - plain).abs() < 1e-15);
            prop_assert!((only(robust(policy, reference, 0.3, 0.0)) - plain).abs() < 1e-15);
        }
    }

    #[test]
    fn robust_dpo_under_flipped_labels_is_dpo_in_expectation(w in -9.0..0.0, l in -9.0..0.0, flips in 0.0..0.45) {
        for (_, device) in devices() {
            let (reference, flipped) = (pair(-4.0, -5.0, &device), pair(-5.0, -4.0, &device));
            let seen = only(robust(pair(w, l, &device), reference.clone(), 0.3, flips));
            let swapped = only(robust(pair(l, w, &device), flipped, 0.3, flips));
            let want = only(dpo(pair(w, l, &device), reference, 0.3));
            prop_assert!(((1.0 - flips) * seen + flips * swapped - want).abs() < 1e-11);
        }
    }

    #[test]
    fn one_of_two_answers_is_preferred(chosen in -30.0..30.0, rejected in -30.0..30.0) {
        for (_, device) in devices() {
            let (w, l) = (number(chosen, &device), number(rejected, &device));
            let (p, q) = (only(preference_prob(w.clone(), l.clone())), only(preference_prob(l.clone(), w.clone())));
            prop_assert!((p + q - 1.0).abs() < 1e-14);
            prop_assert!((only(bradley_terry(w, l)) + p.ln()).abs() < 1e-9);
        }
    }

    #[test]
    fn each_squared_loss_is_zero_at_its_own_target(beta in 0.05..2.0) {
        let target = 0.5 / beta;
        for (_, device) in devices() {
            let reference = pair(0.0, 0.0, &device);
            prop_assert!(only(ipo(pair(target, 0.0, &device), reference.clone(), beta)) < 1e-24);
            prop_assert!(only(sppo_hard(pair(target, -target, &device), reference, beta)) < 1e-24);
        }
    }

    #[test]
    fn exo_is_a_divergence_that_vanishes_at_the_smoothed_label(h in -20.0..20.0, smoothing in 0.01..0.49) {
        for (_, device) in devices() {
            let reference = pair(0.0, 0.0, &device);
            let at = |h: f64| only(exo_pair(pair(h, 0.0, &device), reference.clone(), 1.0, smoothing));
            prop_assert!(at(h) >= -1e-14);
            prop_assert!(at(((1.0 - smoothing) / smoothing).ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn bco_raises_the_chosen_and_lowers_the_rejected_wherever_they_are(a in -20.0..20.0, b in -20.0..20.0) {
        for (_, device) in devices() {
            let reference = pair(0.0, 0.0, &device);
            let (chosen, rejected) = gradients(|p| bco_pair(p, reference.clone(), 0.3), pair(a, b, &device));
            prop_assert!(chosen < 0.0 && rejected > 0.0);
        }
    }

    #[test]
    fn wins_losses_and_ties_add_up(c in prop::collection::vec(-2..3_i32, 8), r in prop::collection::vec(-2..3_i32, 8)) {
        for (_, device) in devices() {
            let scores = |x: &[i32]| tensor(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), [8], &device);
            let (c, r) = (scores(&c), scores(&r));
            let total = only(accuracy(&c, &r)) + only(accuracy(&r, &c)) + only(tie_fraction(&c, &r));
            prop_assert_eq!(total, 1.0);
        }
    }
}

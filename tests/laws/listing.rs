//! The errors of the worked PPO listing that concern formulas: each test fails on the listing's version and passes on
//! ours. (How the listing computes something is written out here, beside what is right.)

use burn::tensor::{DType, Device, Tensor};
use rl_core::dist::{Categorical, Distribution};
use rl_core::kl::exact_kl_mean;
use rl_core::surrogate::{kl_penalised, ratio};
use rl_tests::{devices, gradient, numbers, tensor};

const OLD: [f64; 4] = [0.5, -0.2, 0.1, -0.4];
const NEW: [f64; 4] = [1.5, -1.2, 0.6, -0.9];

fn law(z: &[f64], device: &Device) -> Categorical {
    Categorical::new(tensor(z, [1, z.len()], device))
}

/// KL(π_old ‖ π) after a step of gradient descent on `loss(KL)`, from NEW.
fn kl_after_a_step(device: &Device, loss: impl Fn(Tensor<1>) -> Tensor<1>) -> f64 {
    let old = law(&OLD, device);
    let z = tensor(&NEW, [1, 4], device);
    let slope = gradient(|z| loss(old.kl(&Categorical::new(z))), &z);
    let stepped: Vec<f64> = NEW.iter().zip(slope).map(|(z, g)| z - 0.1 * g).collect();
    numbers(exact_kl_mean(&old, &law(&stepped, device)))[0]
}

#[test]
fn a_step_on_our_penalty_lowers_the_kl_and_a_step_on_the_listings_sign_raises_it() {
    let beta = 0.5;
    for (name, device) in devices() {
        let before = numbers(law(&OLD, &device).kl(&law(&NEW, &device)))[0];
        let nothing = tensor(&[0.0], [1], &device);
        let ours = kl_after_a_step(&device, |kl| kl_penalised(nothing.clone(), kl, beta).neg());
        let listing = kl_after_a_step(&device, |kl| nothing.clone().neg() - kl * beta); // loss = −L − β·KL, minimised
        assert!(ours < before && before < listing, "{name}: {ours} < {before} < {listing}");
    }
}

#[test]
fn the_probabilities_of_the_sampled_actions_alone_are_not_a_kl() {
    for (name, device) in devices() {
        // The listing sums p_old·(log p_old − log p) over the sampled actions of the batch. Say action 0 was sampled,
        // which the new policy likes better than the old one did:
        let (old, new) = (law(&OLD, &device), law(&NEW, &device));
        let taken = Categorical::event(&[0], 1, &device);
        let (log_old, log_new) = (numbers(old.log_prob(&taken))[0], numbers(new.log_prob(&taken))[0]);
        let listing = log_old.exp() * (log_old - log_new);
        assert!(listing < 0.0, "{name}: no divergence is negative, but this is {listing}");
        assert!(
            numbers(exact_kl_mean(&old, &new))[0] > 0.0,
            "{name}: the whole distribution gives a divergence"
        );
    }
}

#[test]
fn a_policy_that_moved_can_look_unmoved_through_its_sampled_actions() {
    for (name, device) in devices() {
        // Equal on the sampled action 0, different everywhere else.
        let (old, new) = (law(&[0.0, 1.0, -1.0], &device), law(&[0.0, -1.0, 1.0], &device));
        let taken = Categorical::event(&[0], 1, &device);
        let listing = numbers((old.log_prob(&taken) - new.log_prob(&taken)) * old.log_prob(&taken).exp())[0];
        assert!(listing.abs() < 1e-15, "{name}");
        assert!(numbers(old.kl(&new))[0] > 0.5, "{name}");
    }
}

#[test]
fn differences_of_log_probabilities_survive_where_quotients_of_probabilities_do_not() {
    for (name, device) in devices() {
        let single = |z: f64| Categorical::new(tensor(&[0.0, z], [1, 2], &device).cast(DType::F32));
        let rare = Categorical::event(&[1], 1, &device);
        let (old, new) = (single(-110.0), single(-109.0));
        let quotient = new.probs() / old.probs(); // what the listing stores and divides
        assert!(numbers(quotient)[1].is_nan(), "{name}: 0/0");
        let ours = numbers(ratio(new.log_prob(&rare), old.log_prob(&rare)))[0];
        assert!((ours - 1.0_f64.exp()).abs() < 1e-4, "{name}: {ours}");
    }
}

#[test]
fn kl_has_a_direction_and_its_name_says_which() {
    for (name, device) in devices() {
        let (old, new) = (law(&OLD, &device), law(&NEW, &device));
        let (from_old, from_new) = (numbers(old.kl(&new))[0], numbers(new.kl(&old))[0]);
        let by_hand = |p: &Categorical, q: &Categorical| {
            let (p, q) = (numbers(p.probs()), numbers(q.probs()));
            p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum::<f64>()
        };
        assert!((from_old - by_hand(&old, &new)).abs() < 1e-14, "{name}: kl is KL(self ‖ other)");
        assert!((from_old - from_new).abs() > 1e-3, "{name}: the two directions differ");
    }
}

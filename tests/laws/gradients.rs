//! Every differentiable formula of rl-core against a central difference in double precision.

use burn::tensor::{Bool, Device, Int, Tensor};
use proptest::prelude::*;
use rl_core::dist::{Categorical, DiagGaussian, Distribution};
use rl_core::grpo::{TokenLogProbs, TokenLoss, mean_over_budget, mean_over_sequences, mean_over_tokens};
use rl_core::kl::{KlEstimator, k1, k2, k3};
use rl_core::masked::{masked_mean, masked_var, row_means, row_sums};
use rl_core::preference::{
    PairLogProb, apo_down, apo_zero, batch_kl, bco_pair, bradley_terry, bradley_terry_with_margin, cdpo,
    centring, dpo, exo_pair, hinge, implicit_reward, ipo, ipo_norm, kto_pair, log_sigmoid, nca_pair,
    preference_prob, robust, sppo_hard,
};
use rl_core::surrogate::{
    clipped, clipped_between, importance_weighted, kl_penalised, ratio, score_function,
};
use rl_core::token_log_prob::{mean_log_prob, next_token_laws, sequence_log_prob, token_log_probs};
use rl_core::value_loss::{clipped_max, clipped_sb3, squared};
use rl_tests::{check_gradient, devices, gradient, tensor};

fn numbers(n: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-3.0..3.0, n)
}

/// Moves numbers off the kinks at `kinks` (a central difference has nothing to say there).
fn away_from(kinks: &[f64], x: &[f64]) -> Vec<f64> {
    x.iter().map(|&x| if kinks.iter().any(|k| (x - k).abs() < 1e-3) { x + 0.01 } else { x }).collect()
}

type Loss = fn(PairLogProb, PairLogProb) -> Tensor<1>;

const DPO_FAMILY: [(&str, Loss); 11] = [
    ("dpo", |p, r| dpo(p, r, 0.3)),
    ("cdpo", |p, r| cdpo(p, r, 0.3, 0.1)),
    ("robust", |p, r| robust(p, r, 0.3, 0.1)),
    ("ipo", |p, r| ipo(p, r, 0.3)),
    ("ipo_norm", |p, r| {
        let lengths = PairLogProb::new(
            p.chosen.clone().inner().full_like(3.0),
            p.chosen.clone().inner().full_like(7.0),
        );
        ipo_norm(p, r, lengths, 0.3)
    }),
    ("exo_pair", |p, r| exo_pair(p, r, 0.3, 0.1)),
    ("sppo_hard", |p, r| sppo_hard(p, r, 0.3)),
    ("nca_pair", |p, r| nca_pair(p, r, 0.3)),
    ("bco_pair", |p, r| bco_pair(p, r, 0.3)),
    ("apo_zero", |p, r| apo_zero(p, r, 0.3)),
    ("apo_down", |p, r| apo_down(p, r, 0.3)),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_categorical_quantities(z in numbers(8), q in numbers(8), actions in prop::collection::vec(0..4_usize, 2)) {
        for (_, device) in devices() {
            let (z, q) = (tensor(&z, [2, 4], &device), Categorical::new(tensor(&q, [2, 4], &device)));
            let event = Categorical::event(&actions, 2, &device);
            check_gradient(|z| Categorical::new(z).log_prob(&event), &z);
            check_gradient(|z| Categorical::new(z).entropy(), &z);
            check_gradient(|z| Categorical::new(z).mean_entropy(), &z);
            check_gradient(|z| Categorical::new(z).kl(&q), &z);
            check_gradient(|z| q.kl(&Categorical::new(z)), &z);
            check_gradient(|z| Categorical::new(z.clone()).kl(&Categorical::new(z * 0.5 + 0.1)), &z);
            check_gradient(|z| Categorical::new(z).log_probs().square().sum(), &z);
            check_gradient(|z| Categorical::new(z).probs().square().sum(), &z);
            // Several quantities of one law, as PPO uses them.
            check_gradient(|z| {
                let law = Categorical::new(z);
                law.log_prob(&event).exp() + law.entropy() * 0.3 - q.kl(&law)
            }, &z);
        }
    }

    #[test]
    fn of_masked_categorical_quantities(z in numbers(8), q in numbers(8)) {
        for (_, device) in devices() {
            let allowed = || Tensor::<2, Bool>::from_data([[true, false, true, true], [true, true, true, false]], &device);
            let (z, q) = (tensor(&z, [2, 4], &device), Categorical::masked(tensor(&q, [2, 4], &device), allowed()));
            let event = Categorical::event(&[2, 1], 2, &device);
            check_gradient(|z| {
                let law = Categorical::masked(z, allowed());
                law.log_prob(&event) + law.entropy() + law.kl(&q) + q.kl(&law)
            }, &z);
        }
    }

    #[test]
    fn of_gaussian_quantities(mean in numbers(4), log_std in prop::collection::vec(-1.0..1.0, 4), x in numbers(4)) {
        for (_, device) in devices() {
            let [mean, log_std, x] = [mean.clone(), log_std.clone(), x.clone()].map(|x| tensor(&x, [2, 2], &device));
            let q = DiagGaussian::new(mean.clone() * 0.5 + 0.1, log_std.clone() * 0.5 - 0.1);
            let z = DiagGaussian::new(mean, log_std).params();
            let law = |z: Tensor<2>| q.with_params(z);
            check_gradient(|z| law(z).log_prob(&x), &z);
            check_gradient(|z| law(z).entropy(), &z);
            check_gradient(|z| law(z).kl(&q), &z);
            check_gradient(|z| q.kl(&law(z)), &z);
        }
    }

    #[test]
    fn of_kl_estimators(r in numbers(3), reference in numbers(3)) {
        for (_, device) in devices() {
            let (r, reference) = (tensor(&r, [3], &device), tensor(&reference, [3], &device));
            check_gradient(k1, &r);
            check_gradient(k2, &r);
            check_gradient(k3, &r);
            check_gradient(k3, &(r.clone() * 1e-3));
            for estimator in [KlEstimator::K2, KlEstimator::K3] {
                check_gradient(|x| estimator.loss(x, reference.clone()).unwrap(), &r);
            }
        }
    }

    #[test]
    fn of_surrogates(log_ratio in prop::collection::vec(-1.0..1.0, 4), advantage in numbers(4)) {
        for (_, device) in devices() {
            let log_ratio = away_from(&[0.8_f64.ln(), 1.2_f64.ln(), 1.3_f64.ln()], &log_ratio);
            let (x, advantage) = (tensor(&log_ratio, [4], &device), tensor(&advantage, [4], &device));
            let rho = |x: Tensor<1>| ratio(x.clone(), x.zeros_like().inner());
            check_gradient(|x| score_function(x, advantage.clone()), &x);
            check_gradient(|x| importance_weighted(rho(x), advantage.clone()), &x);
            check_gradient(|x| clipped(rho(x), advantage.clone(), 0.2), &x);
            check_gradient(|x| clipped_between(rho(x), advantage.clone(), 0.2, 0.3), &x);
            check_gradient(|x| kl_penalised(clipped(rho(x.clone()), advantage.clone(), 0.2), k3(x), 0.7), &x);
        }
    }

    #[test]
    fn of_value_losses(old in numbers(4), step in prop::collection::vec(-1.0..1.0, 4), target in numbers(4)) {
        for (_, device) in devices() {
            let step = away_from(&[-0.2, 0.2], &step);
            let (old, step, target) = (tensor(&old, [4], &device), tensor(&step, [4], &device), tensor(&target, [4], &device));
            let value = old.clone() + step;
            check_gradient(|v| squared(v, target.clone()), &value);
            check_gradient(|v| clipped_max(v, old.clone(), target.clone(), 0.2), &value);
            check_gradient(|v| clipped_sb3(v, old.clone(), target.clone(), 0.2), &value);
        }
    }

    #[test]
    fn of_masked_reductions(x in numbers(6), m in prop::collection::vec(any::<bool>(), 6)) {
        for (_, device) in devices() {
            let mask = Tensor::<1, Bool>::from_data(m.as_slice(), &device);
            let rows = mask.clone().reshape([2, 3]);
            check_gradient(|x| masked_mean(x, &mask), &tensor(&x, [6], &device));
            check_gradient(|x| masked_var(x, &mask), &tensor(&x, [6], &device));
            check_gradient(|x| row_sums(x.square(), &rows), &tensor(&x, [2, 3], &device));
            check_gradient(|x| row_means(x.square(), &rows), &tensor(&x, [2, 3], &device));
        }
    }

    #[test]
    fn of_the_bradley_terry_losses(chosen in numbers(3), rejected in numbers(3), margin in numbers(3)) {
        for (_, device) in devices() {
            let [c, r, m] = [&chosen, &rejected, &margin].map(|x| tensor(x, [3], &device));
            check_gradient(|c| bradley_terry(c, r.clone()), &c);
            check_gradient(|r| bradley_terry(c.clone(), r), &r);
            check_gradient(|c| bradley_terry_with_margin(c, r.clone(), m.clone()), &c);
            check_gradient(|r| centring(c.clone(), r), &r);
            check_gradient(|c| preference_prob(c, r.clone()), &c);
            check_gradient(log_sigmoid, &c);
            check_gradient(|c| implicit_reward(c, r.clone(), 0.3), &c);
        }
    }

    #[test]
    fn of_the_dpo_family(w in numbers(3), l in numbers(3), w_ref in numbers(3), l_ref in numbers(3)) {
        for (name, device) in devices() {
            let [w, l, w_ref, l_ref] = [&w, &l, &w_ref, &l_ref].map(|x| tensor(x, [3], &device));
            let reference = PairLogProb::new(w_ref, l_ref);
            for (loss_name, loss) in DPO_FAMILY {
                eprintln!("{loss_name} on {name}");
                check_gradient(|w| loss(PairLogProb::new(w, l.clone()), reference.clone()), &w);
                check_gradient(|l| loss(PairLogProb::new(w.clone(), l), reference.clone()), &l);
            }
        }
    }

    #[test]
    fn of_the_hinge_on_either_side_of_its_kink(h in away_from_two()) {
        for (_, device) in devices() {
            let zero = tensor(&[0.0], [1], &device);
            let reference = PairLogProb::new(zero.clone(), zero.clone());
            check_gradient(|w| hinge(PairLogProb::new(w, zero.clone()), reference.clone(), 0.5), &tensor(&[h], [1], &device));
        }
    }

    #[test]
    fn of_kto_with_the_batch_kl_held_fixed(w in numbers(3), l in numbers(3)) {
        for (_, device) in devices() {
            let [w, l] = [&w, &l].map(|x| tensor(x, [3], &device));
            let zero = w.zeros_like();
            let reference = PairLogProb::new(zero.clone(), zero);
            let got = gradient(|w| kto_pair(PairLogProb::new(w, l.clone()), reference.clone(), 0.3), &w);
            // The same with KL_b a number: the chosen half is 1 − σ(β(a − KL_b)); the rejected half does not move.
            let fixed = |w: Tensor<1>| log_sigmoid((w - batch_kl(&l)) * -0.3).exp();
            check_gradient(fixed, &w);
            let want = gradient(fixed, &w);
            prop_assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-14));
        }
    }

    #[test]
    fn of_the_grpo_losses(log_ratio in prop::collection::vec(-1.0..1.0, 6), reference in numbers(6), advantage in numbers(6)) {
        let settings = TokenLoss { clip_low: 0.2, clip_high: 0.28, beta: 0.4 };
        for (_, device) in devices() {
            let log_ratio = away_from(&[0.8_f64.ln(), 1.28_f64.ln()], &log_ratio);
            let mask = Tensor::<1, Bool>::from_data([true, true, false, true, true, true], &device);
            let [old, reference, advantage] = [&vec![-1.0; 6], &reference, &advantage].map(|x| tensor(x, [6], &device));
            let current = tensor(&log_ratio, [6], &device) + old.clone();
            let loss = |current: Tensor<1>| {
                let log_probs = TokenLogProbs { current, old: old.clone(), reference: reference.clone() };
                settings.per_token(log_probs, advantage.clone(), &mask)
            };
            check_gradient(loss, &current);
            check_gradient(|x| mean_over_sequences(loss(x), &mask, 2), &current);
            check_gradient(|x| mean_over_tokens(loss(x), &mask), &current);
            check_gradient(|x| mean_over_budget(loss(x), &mask, 2, 5), &current);
        }
    }

    #[test]
    fn of_sequence_log_probabilities(z in numbers(2 * 3 * 4), ids in prop::collection::vec(0..4_i64, 6)) {
        for (_, device) in devices() {
            let ids = Tensor::<1, Int>::from_data(ids.as_slice(), &device).reshape([2, 3]);
            let mask = Tensor::<2, Bool>::from_data([[true, false], [true, true]], &device);
            let z = tensor(&z, [2, 3, 4], &device);
            check_gradient(|z| sequence_log_prob(token_log_probs(z, ids.clone()), &mask), &z);
            check_gradient(|z| mean_log_prob(token_log_probs(z, ids.clone()), &mask), &z);
            check_gradient(|z| next_token_laws(z, ids.clone()).0.entropy(), &z);
        }
    }
}

/// Differences well away from 2, where the hinge with β = ½ bends.
fn away_from_two() -> impl Strategy<Value = f64> {
    prop_oneof![-5.0..1.99, 2.01..5.0]
}

#[test]
#[should_panic(expected = "the central difference")]
fn a_wrong_gradient_is_caught() {
    // x² with the gradient of half of it: the other half is off the tape.
    let x = tensor(&[3.0], [1], &Device::default());
    check_gradient(|x| x.clone() * x.inner(), &x);
}

//! Laws of KL divergences and of their estimators.

use burn::tensor::{DType, Device, Tensor};
use proptest::prelude::*;
use rl_core::CoreError;
use rl_core::dist::{Categorical, DiagGaussian, Distribution};
use rl_core::kl::{KlEstimator, exact_kl_mean, k1, k2, k3, masked_exact_kl_mean};
use rl_tests::{devices, gradient, numbers, tensor};

const ACTIONS: usize = 5;

fn logits() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-3.0..3.0, ACTIONS)
}

fn row(z: &[f64], device: &Device) -> Tensor<2> {
    tensor(z, [1, z.len()], device)
}

fn law(z: &[f64], device: &Device) -> Categorical {
    Categorical::new(row(z, device))
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

/// `log π(k)` of every action as N = A decisions, on the tape of z.
fn every_log_prob(z: Tensor<2>) -> Tensor<1> {
    let device = z.clone().inner().device();
    let each: Vec<usize> = (0..ACTIONS).collect();
    Categorical::new(z.repeat(&[ACTIONS, 1])).log_prob(&Categorical::event(&each, ACTIONS, &device))
}

/// The expected gradient over a ∼ π of `loss(log π(a), log π_ref(a))`, the sampling probabilities being constants.
fn expected_gradient(
    z: &[f64],
    z_ref: &[f64],
    device: &Device,
    loss: impl Fn(Tensor<1>, Tensor<1>) -> Tensor<1>,
) -> Vec<f64> {
    let weights = law(z, device).probs().reshape([ACTIONS]);
    let log_ref = every_log_prob(row(z_ref, device));
    gradient(|z| loss(every_log_prob(z), log_ref.clone()) * weights.clone(), &row(z, device))
}

proptest! {
    #[test]
    fn kl_is_never_negative_and_zero_only_between_equals(z in logits(), step in 0.01..1.0) {
        for (_, device) in devices() {
            let p = law(&z, &device);
            let mut moved = z.clone();
            moved[0] += step;
            let q = law(&moved, &device);
            prop_assert_eq!(numbers(p.kl(&p)), vec![0.0]);
            prop_assert!(numbers(p.kl(&q))[0] > 0.0 && numbers(q.kl(&p))[0] > 0.0);

            let gauss = |mean: f64, log_std: f64| DiagGaussian::new(row(&[mean], &device), row(&[log_std], &device));
            let p = gauss(z[0], z[1]);
            prop_assert_eq!(numbers(p.kl(&p)), vec![0.0]);
            prop_assert!(numbers(p.kl(&gauss(z[0] + step, z[1])))[0] > 0.0);
            prop_assert!(numbers(p.kl(&gauss(z[0], z[1] + step)))[0] > 0.0);
        }
    }

    #[test]
    fn kl_in_single_precision_is_never_negative_either(z in logits(), noise in prop::collection::vec(-1e-5..1e-5, ACTIONS)) {
        for (_, device) in devices() {
            let p = Categorical::new(row(&z, &device).cast(DType::F32));
            let q = p.with_params(p.params() + row(&noise, &device).cast(DType::F32));
            prop_assert!(numbers(p.kl(&q))[0] >= 0.0);
        }
    }

    #[test]
    fn the_gradient_of_kl_vanishes_at_equality(z in logits()) {
        for (_, device) in devices() {
            let p = law(&z, &device);
            prop_assert!(close(&gradient(|z| p.kl(&Categorical::new(z)), &p.params()), &[0.0; ACTIONS], 1e-14));
            prop_assert!(close(&gradient(|z| Categorical::new(z).kl(&p), &p.params()), &[0.0; ACTIONS], 1e-14));
        }
    }

    #[test]
    fn kl_is_infinite_from_what_the_other_forbids_and_finite_the_other_way(z in logits(), q in logits()) {
        for (_, device) in devices() {
            let mut narrow = q.clone();
            narrow[2] = f64::NEG_INFINITY;
            let (p, q) = (law(&z, &device), law(&narrow, &device));
            prop_assert_eq!(numbers(p.kl(&q)), vec![f64::INFINITY]);
            prop_assert!(numbers(q.kl(&p))[0].is_finite());
        }
    }

    #[test]
    fn k1_and_k3_are_unbiased(z in logits(), q in logits()) {
        for (_, device) in devices() {
            let (p, log_p) = (numbers(law(&z, &device).probs()), every_log_prob(row(&z, &device)));
            let log_ratio = every_log_prob(row(&q, &device)) - log_p;
            let exact = numbers(law(&z, &device).kl(&law(&q, &device)))[0];
            for estimator in [k1, k3] {
                let mean: f64 = numbers(estimator(log_ratio.clone())).iter().zip(&p).map(|(k, p)| k * p).sum();
                prop_assert!((mean - exact).abs() < 1e-10, "{} is not {}", mean, exact);
            }
        }
    }

    #[test]
    fn k2_and_k3_are_never_negative(r in prop_oneof![-20.0..20.0, -1e-3..1e-3, -1e-7..1e-7]) {
        for (_, device) in devices() {
            for dtype in [DType::F32, DType::F64] {
                let r = tensor(&[r], [1], &device).cast(dtype);
                prop_assert!(numbers(k2(r.clone()))[0] >= 0.0);
                prop_assert!(numbers(k3(r))[0] >= 0.0);
            }
        }
    }

    #[test]
    fn as_a_loss_k2_has_the_gradient_of_kl_to_the_reference(z in logits(), z_ref in logits()) {
        for (_, device) in devices() {
            let got = expected_gradient(&z, &z_ref, &device, |p, q| KlEstimator::K2.loss(p, q).unwrap());
            let reference = law(&z_ref, &device);
            let want = gradient(|z| Categorical::new(z).kl(&reference), &row(&z, &device));
            prop_assert!(close(&got, &want, 1e-11), "{:?} is not {:?}", got, want);
        }
    }

    #[test]
    fn as_a_loss_k3_has_the_gradient_of_the_other_direction(z in logits(), z_ref in logits()) {
        for (_, device) in devices() {
            let got = expected_gradient(&z, &z_ref, &device, |p, q| KlEstimator::K3.loss(p, q).unwrap());
            let reference = law(&z_ref, &device);
            let want = gradient(|z| reference.kl(&Categorical::new(z)), &row(&z, &device));
            prop_assert!(close(&got, &want, 1e-11), "{:?} is not {:?}", got, want);
        }
    }

    #[test]
    fn as_a_loss_k1_has_no_gradient_and_is_refused(z in logits(), z_ref in logits()) {
        for (_, device) in devices() {
            let got = expected_gradient(&z, &z_ref, &device, |p, q| k1(q - p));
            prop_assert!(close(&got, &[0.0; ACTIONS], 1e-13));
            let log_prob = every_log_prob(row(&z, &device));
            let refused = KlEstimator::K1.loss(log_prob.clone(), log_prob);
            prop_assert_eq!(refused.unwrap_err(), CoreError::NoGradientInK1);
        }
    }

    #[test]
    fn padding_does_not_move_the_mean_kl(z in logits(), q in logits()) {
        for (_, device) in devices() {
            let nan = [f64::NAN; ACTIONS];
            let padded = |z: &[f64]| Categorical::new(tensor(&[z, &nan].concat(), [2, ACTIONS], &device));
            let mask = Tensor::from_data([true, false], &device);
            let plain = numbers(exact_kl_mean(&law(&z, &device), &law(&q, &device)));
            prop_assert_eq!(numbers(masked_exact_kl_mean(&padded(&z), &padded(&q), &mask)), plain);
        }
    }
}

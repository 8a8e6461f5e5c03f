//! Laws of action distributions.

use burn::tensor::{Bool, DType, Device, Tensor};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_core::dist::{Categorical, DiagGaussian, Distribution};
use rl_tests::{devices, gradient, numbers, tensor};

/// Two rows of A logits.
fn logits(a: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-5.0..5.0, 2 * a)
}

fn categorical(z: &[f64], device: &Device) -> Categorical {
    Categorical::new(tensor(z, [2, z.len() / 2], device))
}

fn gaussian(mean: &[f64], log_std: &[f64], device: &Device) -> DiagGaussian {
    let shape = [1, mean.len()];
    DiagGaussian::new(tensor(mean, shape, device), tensor(log_std, shape, device))
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

proptest! {
    #[test]
    fn probabilities_sum_to_one(z in (1..7_usize).prop_flat_map(logits)) {
        for (_, device) in devices() {
            let sums = numbers(categorical(&z, &device).probs().sum_dim(1));
            prop_assert!(close(&sums, &[1.0, 1.0], 1e-14));
        }
    }

    #[test]
    fn a_shift_of_all_logits_changes_nothing(z in logits(4), q in logits(4), shift in -1e3..1e3) {
        for (_, device) in devices() {
            let (p, q) = (categorical(&z, &device), categorical(&q, &device));
            let shifted = p.with_params(p.params() + shift);
            prop_assert!(close(&numbers(p.log_probs()), &numbers(shifted.log_probs()), 1e-11));
            prop_assert!(close(&numbers(p.entropy()), &numbers(shifted.entropy()), 1e-11));
            prop_assert!(close(&numbers(p.kl(&q)), &numbers(shifted.kl(&q)), 1e-11));
            prop_assert!(close(&numbers(q.kl(&p)), &numbers(q.kl(&shifted)), 1e-11));
            prop_assert!(close(&numbers(p.kl(&shifted)), &[0.0, 0.0], 1e-11));
        }
    }

    #[test]
    fn entropy_is_the_expected_surprise(z in logits(5)) {
        for (_, device) in devices() {
            let p = categorical(&z, &device);
            let surprise = numbers((p.probs() * p.log_probs()).sum_dim(1).neg());
            prop_assert!(close(&numbers(p.entropy()), &surprise, 1e-13));
            prop_assert!(close(&numbers(p.mean_entropy()), &numbers(p.entropy().mean()), 1e-14));
        }
    }

    #[test]
    fn entropy_is_largest_for_the_uniform_law(z in (1..7_usize).prop_flat_map(logits)) {
        for (_, device) in devices() {
            let p = categorical(&z, &device);
            let uniform = p.with_params(p.params().zeros_like());
            let most = ((z.len() / 2) as f64).ln();
            prop_assert!(close(&numbers(uniform.entropy()), &[most, most], 1e-14));
            prop_assert!(numbers(p.entropy()).iter().all(|&h| (-1e-14..=most + 1e-14).contains(&h)));
        }
    }

    #[test]
    fn forbidding_an_action_renormalises_the_others(z in logits(4)) {
        for (_, device) in devices() {
            let allowed = Tensor::<2, Bool>::from_data([[true, true, false, true]; 2], &device);
            let masked = Categorical::masked(tensor(&z, [2, 4], &device), allowed);
            let three: Vec<f64> = z.chunks(4).flat_map(|z| [z[0], z[1], z[3]]).collect();
            let three = categorical(&three, &device);
            prop_assert!(close(&numbers(masked.entropy()), &numbers(three.entropy()), 1e-13));
            let p = numbers(masked.probs());
            let kept: Vec<f64> = p.chunks(4).flat_map(|p| [p[0], p[1], p[3]]).collect();
            prop_assert!(close(&kept, &numbers(three.probs()), 1e-13));
            prop_assert_eq!((p[2], p[6]), (0.0, 0.0));
        }
    }

    #[test]
    fn a_forbidden_action_is_never_drawn(z in logits(3), seed: u64) {
        for (_, device) in devices() {
            let allowed = Tensor::<2, Bool>::from_data([[false, true, false], [true, true, false]], &device);
            let masked = Categorical::masked(tensor(&z, [2, 3], &device), allowed);
            let (mut actions, mut log_probs) = (vec![], vec![]);
            masked.draw(&mut ChaCha8Rng::seed_from_u64(seed), &mut actions, &mut log_probs);
            prop_assert_eq!((actions[0], log_probs[0]), (1, 0.0));
            prop_assert_ne!(actions[1], 2);
        }
    }

    #[test]
    fn a_seed_draws_the_same_actions_on_every_device(z in logits(6), seed: u64) {
        let draw = |device: &Device| {
            let law = Categorical::new(tensor(&z, [2, 6], device).cast(DType::F32));
            Categorical::elems(&law.sample(&mut ChaCha8Rng::seed_from_u64(seed)))
        };
        let all: Vec<_> = devices().iter().map(|(_, device)| draw(device)).collect();
        prop_assert!(all.windows(2).all(|two| two[0] == two[1]));
    }

    #[test]
    fn a_draw_reports_the_log_probability_of_what_it_drew(z in logits(4), mean in prop::collection::vec(-3.0..3.0, 3),
        log_std in prop::collection::vec(-2.0..1.0, 3), seed: u64)
    {
        for (_, device) in devices() {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (mut actions, mut log_probs) = (vec![], vec![]);
            let law = categorical(&z, &device);
            law.draw(&mut rng, &mut actions, &mut log_probs);
            let again = numbers(law.log_prob(&Categorical::event(&actions, 2, &device)));
            prop_assert!(again.iter().zip(&log_probs).all(|(a, &b)| (a - f64::from(b)).abs() < 1e-6));

            let (mut actions, mut log_probs) = (vec![], vec![]);
            let law = gaussian(&mean, &log_std, &device);
            law.draw(&mut rng, &mut actions, &mut log_probs);
            let again = numbers(law.log_prob(&DiagGaussian::event(&actions, 1, &device)));
            prop_assert!((again[0] - f64::from(log_probs[0])).abs() < 1e-5);
        }
    }

    #[test]
    fn the_fisher_product_is_symmetric_and_positive(z in logits(4), u in logits(4), v in logits(4)) {
        for (_, device) in devices() {
            let law = categorical(&z, &device);
            let product = |x: &[f64]| numbers(law.fisher_vec(tensor(x, [2, 4], &device)));
            prop_assert!((dot(&u, &product(&v)) - dot(&v, &product(&u))).abs() < 1e-12);
            prop_assert!(dot(&v, &product(&v)) >= -1e-12);
        }
    }

    #[test]
    fn the_fisher_matrix_is_the_covariance_of_the_score(z in logits(3), v in logits(3)) {
        for (_, device) in devices() {
            let law = categorical(&z, &device);
            let p = numbers(law.probs());
            let mut want = vec![0.0; 6];
            for a in 0..3 {
                let log_prob = |z| Categorical::new(z).log_prob(&Categorical::event(&[a, a], 2, &device));
                let score = gradient(log_prob, &law.params());
                for row in 0..2 {
                    let cells = 3 * row..3 * row + 3;
                    let along = dot(&score[cells.clone()], &v[cells.clone()]);
                    cells.for_each(|k| want[k] += p[3 * row + a] * score[k] * along);
                }
            }
            let got = numbers(law.fisher_vec(tensor(&v, [2, 3], &device)));
            prop_assert!(close(&got, &want, 1e-12));
        }
    }

    #[test]
    fn the_fisher_product_is_the_hessian_of_kl_at_equality(z in logits(4), v in logits(4),
        mean in prop::collection::vec(-3.0..3.0, 2), log_std in prop::collection::vec(-1.0..1.0, 2))
    {
        for (_, device) in devices() {
            let law = categorical(&z, &device);
            let v = tensor(&v, [2, 4], &device);
            prop_assert!(close(&hessian_of_kl(&law, v.clone()), &numbers(law.fisher_vec(v)), 1e-6));

            let law = gaussian(&mean, &log_std, &device);
            let v = tensor(&[0.3, -1.0, 0.7, 0.5], [1, 4], &device);
            prop_assert!(close(&hessian_of_kl(&law, v.clone()), &numbers(law.fisher_vec(v)), 1e-6));
        }
    }
}

/// `(∇KL(π_z ‖ π_{z+hv}) − ∇KL(π_z ‖ π_{z−hv}))/2h`, the gradient being that in the second law.
fn hessian_of_kl<D: Distribution>(law: &D, v: Tensor<2>) -> Vec<f64> {
    let h = 1e-5;
    let at = |h: f64| gradient(|z| law.kl(&law.with_params(z)), &(law.params() + v.clone() * h));
    at(h).iter().zip(at(-h)).map(|(up, down)| (up - down) / (2.0 * h)).collect()
}

#[test]
fn sampling_frequencies_match_probabilities() {
    for (name, device) in devices() {
        let z = [0.0, 1.0, -1.0, f64::NEG_INFINITY, 2.5];
        let rows = 20_000;
        let law = Categorical::new(tensor(&z.repeat(rows), [rows, 5], &device));
        let p = &numbers(law.probs())[..5];
        let (mut actions, mut log_probs) = (vec![], vec![]);
        law.draw(&mut ChaCha8Rng::seed_from_u64(7), &mut actions, &mut log_probs);
        let mut chi_squared = 0.0;
        for (k, &p) in p.iter().enumerate() {
            let count = actions.iter().filter(|&&a| a == k).count() as f64;
            let expected = p * rows as f64;
            chi_squared += if expected > 0.0 { (count - expected).powi(2) / expected } else { count };
        }
        assert!(
            chi_squared < 16.3,
            "{name}: χ² = {chi_squared} on 3 degrees of freedom (0.1 % lies above 16.3)"
        );
    }
}

#[test]
fn gaussian_draws_have_their_mean_and_deviation() {
    for (name, device) in devices() {
        let rows = 20_000;
        let params = [3.0, -2.0, 0.5_f64.ln(), 2.0_f64.ln()].repeat(rows);
        let law = gaussian(&[0.0; 2], &[0.0; 2], &device);
        let law = DiagGaussian::new(law.mean().repeat(&[rows, 1]), law.log_std().repeat(&[rows, 1]));
        let law = law.with_params(tensor(&params, [rows, 4], &device));
        let x = numbers(law.sample(&mut ChaCha8Rng::seed_from_u64(3)));
        for (d, mean, std) in [(0, 3.0, 0.5), (1, -2.0, 2.0)] {
            let column: Vec<f64> = x.iter().skip(d).step_by(2).map(|x| (x - mean) / std).collect();
            let average = column.iter().sum::<f64>() / rows as f64;
            let variance = column.iter().map(|x| x * x).sum::<f64>() / rows as f64;
            assert!(average.abs() < 0.025 && (variance - 1.0).abs() < 0.035, "{name}: {average} {variance}");
        }
    }
}

#[test]
fn a_gaussian_density_integrates_to_one_and_its_entropy_is_the_expected_surprise() {
    for (name, device) in devices() {
        let (mean, log_std, cells) = (1.5, 0.4_f64.ln(), 4001);
        let x: Vec<f64> = (0..cells).map(|i| mean - 4.0 + 8.0 * i as f64 / (cells - 1) as f64).collect();
        let law = gaussian(&[mean], &[log_std], &device);
        let many = DiagGaussian::new(law.mean().repeat(&[cells, 1]), law.log_std().repeat(&[cells, 1]));
        let log_density = numbers(many.log_prob(&tensor(&x, [cells, 1], &device)));
        let width = 8.0 / (cells - 1) as f64;
        let mass: f64 = log_density.iter().map(|l| l.exp() * width).sum();
        let surprise: f64 = log_density.iter().map(|l| -l * l.exp() * width).sum();
        assert!((mass - 1.0).abs() < 1e-9, "{name}: mass {mass}");
        assert!((surprise - numbers(law.entropy())[0]).abs() < 1e-9, "{name}: entropy {surprise}");
    }
}

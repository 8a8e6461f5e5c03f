//! A reward model learns an order of texts, whatever their padding.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{PairBatch, RewardModelConfig, RewardModelling, TokenPair, Update};
use rl_core::schedule::Schedule;
use rl_models::Tokens;
use rl_models::lm::{LmConfig, RewardModel, Transformer};
use rl_tests::numbers;

#[test]
fn a_reward_model_learns_which_answers_are_liked() {
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(7));
    let config = LmConfig { max_positions: 16, ..LmConfig::llama(12, 16, 1, 2, 2) };
    let mut model = RewardModel::new(Transformer::new(config, &mut rng, &device));
    // Liked is what says 5 somewhere; lengths differ.
    let answers: Vec<(Vec<u32>, Vec<u32>)> =
        (0..16).map(|i| (vec![3 + i % 2, 5, 6 + i % 5], vec![3 + i % 2, 6 + i % 5])).collect();
    let pairs: Vec<TokenPair> =
        answers.iter().map(|(chosen, rejected)| TokenPair { prompt: &[1, 2], chosen, rejected }).collect();
    let batch = PairBatch::new(&pairs, 0, &device).expect("no answer is empty");

    let mut settings = RewardModelConfig { centring_coef: 0.01, ..RewardModelConfig::default() };
    settings.optimizer.learning_rate = Schedule::Constant(1e-2);
    settings.validate().expect("the settings can work");
    let mut algorithm = RewardModelling::new(settings, 60);
    let mut reports = vec![];
    for _ in 0..60 {
        let (next, report) = algorithm.update(model, &batch, &mut rng).expect("numbers stay finite");
        model = next;
        reports.push(report);
    }
    assert!((reports[0].loss - 2f64.ln()).abs() < 1e-6 && reports[0].ties == 1.0, "{:?}", reports[0]);
    assert!(reports[59].accuracy == 1.0 && reports[59].loss < 0.2, "{:?}", reports[59]);

    let together = numbers(model.score(&batch.tokens));
    for (i, (chosen, _)) in answers.iter().enumerate() {
        let alone = numbers(model.score(&Tokens::new(&[(&[1, 2], chosen)], 0, &device)));
        assert!((alone[0] - together[i]).abs() < 1e-4, "padding moves {} to {}", alone[0], together[i]);
    }
    let normal = numbers(model.normalised_on(&together).score(&batch.tokens));
    let n = normal.len() as f64;
    let mean = normal.iter().sum::<f64>() / n;
    let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    assert!(mean.abs() < 1e-4 && (variance - 1.0).abs() < 1e-3, "mean {mean}, variance {variance}");
}

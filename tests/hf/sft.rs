//! Supervised fine-tuning: what counts, what a micro-batch changes (nothing), and that text is learnt.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{Fit, Sft, SftConfig, Update};
use rl_core::schedule::Schedule;
use rl_envs::story::story;
use rl_models::Tokens;
use rl_models::flat_params::flatten;
use rl_models::lm::{LmConfig, Transformer, score};
use rl_models::text::{TextTokenizer, Units};
use rl_tests::numbers;

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn model(vocabulary: usize) -> Transformer {
    let config = LmConfig { max_positions: 96, ..LmConfig::llama(vocabulary, 32, 1, 2, 2) };
    Transformer::new(config, &mut rng(1), &Device::flex())
}

fn settings(batch: usize, micro_batch: usize) -> SftConfig {
    let mut config = SftConfig { batch, micro_batch, ..SftConfig::default() };
    config.optimizer.learning_rate = Schedule::Constant(1e-2);
    config.validate().expect("the settings can work");
    config
}

/// Six rows of unlike lengths.
fn rows() -> Tokens {
    let rows: Vec<(Vec<u32>, Vec<u32>)> =
        (1..7u32).map(|i| (vec![1; i as usize % 3 + 1], (0..2 * i).map(|t| (t * i) % 9).collect())).collect();
    let pairs: Vec<(&[u32], &[u32])> = rows.iter().map(|(x, y)| (x.as_slice(), y.as_slice())).collect();
    Tokens::new(&pairs, 0, &Device::flex())
}

#[test]
fn accumulated_micro_batches_are_the_large_batch() {
    let after = |micro: usize| {
        let mut sft = Sft::new(&settings(6, micro), 10);
        let (model, report) = sft.update(model(9), &rows(), &mut rng(2)).expect("numbers stay finite");
        (numbers(flatten(&model)), report)
    };
    let (whole, report) = after(6);
    assert_eq!(report.fit.tokens, 42);
    for micro in [1, 2, 3] {
        let (pieces, of_pieces) = after(micro);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-5 * a.abs().max(1.0);
        assert!(near(report.fit.nll, of_pieces.fit.nll) && near(report.grad_norm, of_pieces.grad_norm));
        assert_eq!(report.fit.tokens, of_pieces.fit.tokens);
        // Adam's first step has the size of the learning rate however small a gradient is: compare those that are not.
        let far = whole.iter().zip(&pieces).filter(|(a, b)| (*a - *b).abs() > 1e-3).count();
        assert!(far * 100 < whole.len(), "{far} of {} parameters differ", whole.len());
    }
}

#[test]
fn the_loss_is_the_mean_over_the_tokens_of_the_responses_alone() {
    let (model, rows) = (model(9), rows());
    let log_probs = numbers(score(&model, &rows, 8).log_prob);
    let mean = -log_probs.iter().sum::<f64>() / 42.0;
    let mut sft = Sft::new(&settings(6, 6), 10);
    let (_, report) = sft.update(model.clone(), &rows, &mut rng(2)).expect("numbers stay finite");
    assert!((report.fit.nll - mean).abs() < 1e-6, "{} is not {mean}", report.fit.nll);
    let measured = Fit::measure(&model, &rows, 4);
    assert!((measured.nll - mean).abs() < 1e-6 && measured.tokens == 42, "{measured:?}");
    assert!((measured.perplexity().ln() - mean).abs() < 1e-6);
    assert!((report.fit.accuracy - measured.accuracy).abs() < 1e-6);
}

#[test]
fn a_model_learns_the_words_of_stories() {
    let mut rng = rng(3);
    let texts: Vec<String> = (0..200).map(|_| story(&mut rng).text()).collect();
    let tokenizer = TextTokenizer::from_scratch(Units::Words, texts.iter().map(String::as_str));
    let encoded: Vec<Vec<u32>> =
        texts.iter().map(|text| tokenizer.encode(text).expect("its own words")).collect();
    let batch = |from: usize| {
        let pairs: Vec<(&[u32], &[u32])> =
            encoded[from..from + 8].iter().map(|y| (&[1u32][..], y.as_slice())).collect();
        Tokens::new(&pairs, 0, &Device::flex())
    };
    let (mut model, mut sft) = (model(tokenizer.vocabulary()), Sft::new(&settings(8, 8), 40));
    let before = Fit::measure(&model, &batch(192), 8);
    for update in 0..40 {
        (model, _) = sft.update(model, &batch(update * 8 % 184), &mut rng).expect("numbers stay finite");
    }
    let after = Fit::measure(&model, &batch(192), 8);
    // From about ln 190 = 5.2 nats.
    assert!((before.nll - (tokenizer.vocabulary() as f64).ln()).abs() < 0.3, "{before:?}");
    assert!(after.nll < 2.6 && after.accuracy > 0.35, "{before:?} to {after:?}");
}

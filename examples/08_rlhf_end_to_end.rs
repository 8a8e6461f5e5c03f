//! RLHF from nothing, with a reward function of your own: a model learns sentences, then which of them are liked, and a
//! controller holds it near what it was.
//!
//! The sentences say that somebody is in one of four moods, two of them good. Because the reference is almost uniform
//! over them, the best policy at a distance of 0.3 nats can be worked out: it is in a good mood with a chance of 0.87.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::*;
use rl_core::{KlController, Schedule};
use rl_models::lm::{LmActorCritic, LmConfig, Transformer};
use rl_models::text::{Specials, TextTokenizer};
use rl_models::{ActorCritic, Policy, Sampling, Tokens};

const NAMES: [&str; 3] = ["Tom is ", "Lily is ", "Max is "];
const MOODS: [&str; 4] = ["glad.", "happy.", "angry.", "sad."];
const TARGET: f64 = 0.3;

/// Your reward function: any number for any text. A program, a test suite, or a model works as well.
fn reward(answer: &str) -> f64 {
    if ["glad.", "happy."].contains(&answer) { 1.0 } else { -1.0 }
}

fn adam(from: f64) -> AdamConfig {
    AdamConfig { learning_rate: Schedule::Cosine { from, to: 0.0 }, ..AdamConfig::default() }
}

/// Trains, and returns the mean score before and after, and KL(π ‖ π_ref) in nats per answer.
fn align(seed: u64) -> (f64, f64, f64) {
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(seed));

    // 1. Tokens: letters, an end, and padding, which is something else than an end.
    let letters = TextTokenizer::characters_of(&[NAMES.concat(), MOODS.concat()].concat());
    let n = letters.vocabulary() as u32;
    let (end, pad) = (n, n + 1);
    let encode = |text: &str| letters.encode(text).expect("the alphabet is that of the texts");
    let decode = |tokens: &[u32]| {
        let spoken: Vec<u32> = tokens.iter().copied().filter(|&token| token < n).collect();
        letters.decode(&spoken, Specials::Hidden).expect("every token is a letter")
    };

    // 2. Supervised: every name in every mood.
    let prompts = NAMES.map(encode);
    let moods = MOODS.map(|mood| [encode(mood), vec![end]].concat());
    let rows: Vec<(&[u32], &[u32])> =
        prompts.iter().flat_map(|name| moods.iter().map(|mood| (&name[..], &mood[..]))).collect();
    let rows = Tokens::new(&rows, pad, &device);
    let shape = LmConfig { bos: None, eos: vec![end], pad, ..LmConfig::llama(n as usize + 2, 32, 1, 2, 2) };
    let mut model = Transformer::new(shape, &mut rng, &device);
    let config = SftConfig { batch: 12, micro_batch: 12, optimizer: adam(1e-2), ..SftConfig::default() };
    let mut sft = Sft::new(&config, 120);
    for _ in 0..120 {
        (model, _) = sft.update(model, &rows, &mut rng).expect("all is finite");
    }
    // Each answer is chosen once among four: ln 4 nats, spread over its letters.
    println!("sentences: {:.3} nats per letter", Fit::measure(&model, &rows, 12).nll);

    // 3. RLHF: PPO whose rewards pay β for each nat between policy and reference; a controller moves β.
    let updates = 40;
    let rollout =
        LmRolloutConfig { prompts: 96, kl: KlController::proportional(1.0, TARGET), ..Default::default() };
    let config = RlhfPpoConfig {
        rollout,
        minibatch_rows: 96,
        value_clip: None,
        optimizer: adam(1e-3),
        ..Default::default()
    };
    config.validate().expect("these settings can work");
    let how = Sampling { temperature: 1.0, max_tokens: 8, stop: vec![end] };
    let mut collector = LmCollector::new(config.rollout.clone(), prompts.to_vec(), how, pad, &device);
    let (mut ppo, reference) = (RlhfPpo::new(&config, updates), model.clone());
    let mut model = LmActorCritic::new(model);
    let (mut scores, mut kl) = (vec![], 0.0);
    for update in 1..=updates {
        let answers = collector.collect(
            &model,
            ActorCritic::policy,
            |tokens| Policy::policy(&reference, tokens),
            |_, written| written.iter().map(|answer| reward(&decode(&answer.tokens))).collect(),
            &mut rng,
        );
        kl = answers.mean_kl();
        scores.push(Responses::mean(&answers.raw_score));
        collector.move_beta(kl);
        if update % 10 == 1 {
            let (score, beta) = (scores[scores.len() - 1], answers.price.beta);
            println!("update {update:>2}: score {score:>6.3}, KL {kl:.3} of {TARGET} nats, β {beta:.3}");
        }
        (model, _) = ppo.update(model, &answers, &mut rng).expect("all is finite");
    }
    let last = &scores[scores.len() - 5..];
    (scores[0], last.iter().sum::<f64>() / 5.0, kl)
}

fn main() {
    let (before, after, kl) = align(1);
    println!("score {before:.2} before, {after:.2} after, at {kl:.2} nats; the best there is at 0.3 is 0.73");
}

#[test]
fn the_score_rises_and_the_distance_is_held() {
    let (before, after, kl) = align(1);
    assert!(before.abs() < 0.3 && after > 0.5, "{before} {after}");
    assert!((0.6 * TARGET..1.5 * TARGET).contains(&kl), "{kl}");
}

//! DPO on your own pairs: a few questions, each with an answer that is wanted and one that is not.
//!
//! The model is a transformer that has never seen a word, so that the example needs no file; with a trained one, leave
//! `sft_coef` at 0 and load it as `06_hugging_face_model` does.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{AdamConfig, Dpo, DpoConfig, PairBatch, TokenPair, Update};
use rl_core::Schedule;
use rl_models::lm::{Generation, LmConfig, Transformer, generate};
use rl_models::text::{Specials, TextTokenizer};

/// What was asked, what should be answered, what should not.
const PAIRS: [[&str; 3]; 4] = [
    ["How are you? ", "Well, and you?", "Busy."],
    ["Who are you? ", "A small model.", "Your master."],
    ["Is it late? ", "Not yet.", "Who cares."],
    ["Do you like rain? ", "On some days.", "Stupid question."],
];

/// Trains, and returns the share of pairs in the right order, and the likeliest answer to each question.
fn learn(seed: u64) -> (f64, Vec<String>) {
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(seed));

    // 1. Text becomes tokens: one per letter, and one more that ends an answer.
    let letters = TextTokenizer::characters_of(&PAIRS.concat().concat());
    let end = letters.vocabulary() as u32;
    let encode = |text: &str| letters.encode(text).expect("the alphabet is that of the pairs");
    let whole = |text: &str| [encode(text), vec![end]].concat();
    let tokens = PAIRS.map(|[prompt, good, bad]| (encode(prompt), whole(good), whole(bad)));

    // 2. A model, and what it thinks of the answers before it has learnt anything: the reference, which never changes.
    let shape = LmConfig { bos: None, eos: vec![end], ..LmConfig::llama(end as usize + 1, 32, 1, 2, 2) };
    let mut model = Transformer::new(shape, &mut rng, &device);
    let pairs: Vec<TokenPair> =
        tokens.iter().map(|(prompt, chosen, rejected)| TokenPair { prompt, chosen, rejected }).collect();
    let batch = PairBatch::new(&pairs, 0, &device).expect("no answer is empty").with_reference(&model, 4);

    // 3. DPO: −log σ(β·(log-ratio of the chosen − log-ratio of the rejected)), plus the chosen answers' own likelihood,
    //    which teaches this newborn model to spell.
    let learning_rate = Schedule::Cosine { from: 1e-2, to: 0.0 };
    let config = DpoConfig {
        beta: 0.1,
        sft_coef: 1.0,
        optimizer: AdamConfig { learning_rate, ..AdamConfig::default() },
        ..DpoConfig::default()
    };
    config.validate(batch.pairs()).expect("these settings can work");
    let steps = 150;
    let (mut dpo, mut accuracy) = (Dpo::new(config, steps), 0.0);
    for step in 1..=steps {
        let (next, report) = dpo.update(model, &batch, &mut rng).expect("all is finite");
        if step == 1 || step % 50 == 0 {
            let margin = report.reward_chosen - report.reward_rejected;
            println!("step {step:>3}: loss {:.3}, margin {margin:.3}", report.loss);
        }
        (model, accuracy) = (next, report.accuracy);
    }

    // 4. What does it answer now?
    let prompts: Vec<&[u32]> = tokens.iter().map(|(prompt, ..)| prompt.as_slice()).collect();
    let how = Generation { temperature: 0.0, max_tokens: 20, stop: vec![end], ..Generation::default() };
    let mut streams = vec![rng; prompts.len()];
    let written = generate(&model, &prompts, &mut streams, &how, |_, _| ());
    let text = |tokens: &[u32]| {
        let spoken: Vec<u32> = tokens.iter().copied().filter(|&token| token != end).collect();
        letters.decode(&spoken, Specials::Hidden).expect("every token is a letter")
    };
    (accuracy, written.iter().map(|answer| text(&answer.tokens)).collect())
}

fn main() {
    let (accuracy, answers) = learn(1);
    println!("{:.0} % of the pairs are in the right order", 100.0 * accuracy);
    PAIRS.iter().zip(answers).for_each(|([prompt, ..], answer)| println!("{prompt}{answer}"));
}

#[test]
fn the_wanted_answers_are_given() {
    let (accuracy, answers) = learn(1);
    assert_eq!(accuracy, 1.0);
    assert_eq!(answers, PAIRS.map(|[_, wanted, _]| wanted));
}

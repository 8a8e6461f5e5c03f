//! CPU seconds of a step of DPO and of reward modelling on the tiny Llama of `shared/bench`: 8 pairs of 128 tokens.
//!
//! `cargo bench -p rl-algos -p rl-train --bench preference -- dpo 5` (or `reward`); compare with
//! `bench_trl.py --task dpo_torch|reward_torch --threads 1` in the same sitting. One thread: `RAYON_NUM_THREADS=1`.

use burn::tensor::Device;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::{Dpo, DpoConfig, PairBatch, RewardModelConfig, RewardModelling, TokenPair, Update};
use rl_models::lm::{LmConfig, RewardModel, Transformer};

const PAIRS: usize = 8;
const PROMPT: usize = 32;
const ANSWER: usize = 96;

fn model(rng: &mut ChaCha8Rng, device: &Device) -> Transformer {
    let shape = LmConfig { intermediate: 688, tied: false, ..LmConfig::llama(512, 256, 4, 4, 4) };
    Transformer::new(shape, rng, device)
}

fn batch(rng: &mut ChaCha8Rng, device: &Device) -> PairBatch {
    let mut text = |n: usize| (0..n).map(|_| rng.random_range(3..512)).collect::<Vec<u32>>();
    let texts: Vec<[Vec<u32>; 3]> = (0..PAIRS).map(|_| [PROMPT, ANSWER, ANSWER].map(&mut text)).collect();
    let pairs: Vec<TokenPair> =
        texts.iter().map(|[prompt, chosen, rejected]| TokenPair { prompt, chosen, rejected }).collect();
    PairBatch::new(&pairs, 0, device).expect("no answer is empty")
}

/// User and system seconds of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("a name in brackets").split(' ').collect();
    let ticks = |i: usize| fields[i].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let task = words.first().map_or("dpo", String::as_str);
    let steps: u32 = words.get(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(1));
    let (reference, batch) = (model(&mut rng, &device), batch(&mut rng, &device));
    let mut step: Box<dyn FnMut(&mut ChaCha8Rng)> = match task {
        "dpo" => {
            let batch = batch.with_reference(&reference, PAIRS);
            let (mut dpo, mut policy) = (Dpo::new(DpoConfig::default(), 1000), Some(reference));
            Box::new(move |rng| {
                let model = policy.take().expect("the last step gave it back");
                policy = Some(dpo.update(model, &batch, rng).expect("numbers stay finite").0);
            })
        }
        "reward" => {
            let mut algorithm = RewardModelling::new(RewardModelConfig::default(), 1000);
            let mut scorer = Some(RewardModel::new(reference));
            Box::new(move |rng| {
                let model = scorer.take().expect("the last step gave it back");
                scorer = Some(algorithm.update(model, &batch, rng).expect("numbers stay finite").0);
            })
        }
        other => panic!("no task `{other}`; there are dpo and reward"),
    };
    step(&mut rng);
    let before = cpu_seconds();
    (0..steps).for_each(|_| step(&mut rng));
    let seconds = (cpu_seconds() - before) / f64::from(steps);
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let rate = PAIRS as f64 / seconds;
    println!("{task}: {:.0} ms of CPU per step of {PAIRS} pairs, {rate:.2} pairs/s; {peak}", 1e3 * seconds);
}

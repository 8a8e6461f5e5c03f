//! CPU seconds of a step on the tiny Llama of `shared/bench` (3.4 million parameters): generation of 16 × 128 tokens,
//! a training step of 8 × 128, DPO and reward modelling with 8 pairs of 128, RLHF-PPO with 16 responses of 64.
//!
//! `cargo xtask bench lm` runs each beside its Python counterpart. Alone, on one thread:
//! `RAYON_NUM_THREADS=1 cargo bench --workspace --bench lm -- dpo 5`.

use burn::tensor::Device;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rl_algos::{
    Dpo, DpoConfig, LmCollector, LmRolloutConfig, PairBatch, RewardModelConfig, RewardModelling, RlhfPpo,
    RlhfPpoConfig, Sft, SftConfig, TokenPair, Update,
};
use rl_models::lm::{Generation, LmActorCritic, LmConfig, RewardModel, Transformer, generate};
use rl_models::{ActorCritic, Policy, Response, Sampling, Tokens};

const PAD: u32 = 0;
const TASKS: [&str; 5] = ["generate", "train", "dpo", "reward", "rlhf"];

/// The command's heap.
#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A step of a task, to be called again and again.
type Step = Box<dyn FnMut(&mut ChaCha8Rng)>;

fn model(rng: &mut ChaCha8Rng) -> Transformer {
    let shape = LmConfig { intermediate: 688, tied: false, ..LmConfig::llama(512, 256, 4, 4, 4) };
    Transformer::new(shape, rng, &Device::flex())
}

fn text(tokens: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    (0..tokens).map(|_| rng.random_range(3..512)).collect()
}

/// 16 greedy answers of 128 tokens to prompts of 32.
fn generation(rng: &mut ChaCha8Rng) -> Step {
    let (model, prompts) = (model(rng), (0..16).map(|_| text(32, rng)).collect::<Vec<_>>());
    let how = Generation { temperature: 0.0, max_tokens: 128, ..Generation::default() };
    Box::new(move |rng| {
        let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let mut rngs = vec![rng.clone(); prompts.len()];
        generate(&model, &prompts, &mut rngs, &how, |_, _| ());
    })
}

/// Forward, backward and AdamW on 8 rows of 128 tokens.
fn training(rng: &mut ChaCha8Rng) -> Step {
    let mut held = Some(model(rng));
    let rows: Vec<Vec<u32>> = (0..8).map(|_| text(129, rng)).collect();
    let pairs: Vec<(&[u32], &[u32])> = rows.iter().map(|row| row.split_at(1)).collect();
    let rows = Tokens::new(&pairs, PAD, &Device::flex());
    let mut sft = Sft::new(&SftConfig { batch: 8, micro_batch: 8, ..SftConfig::default() }, 1000);
    Box::new(move |rng| held = Some(sft.update(take(&mut held), &rows, rng).expect("numbers stay finite").0))
}

/// 8 pairs of 128 tokens, of which 96 answer.
fn pairs(rng: &mut ChaCha8Rng) -> PairBatch {
    let texts: Vec<[Vec<u32>; 3]> = (0..8).map(|_| [32, 96, 96].map(|n| text(n, rng))).collect();
    let pairs: Vec<TokenPair> =
        texts.iter().map(|[prompt, chosen, rejected]| TokenPair { prompt, chosen, rejected }).collect();
    PairBatch::new(&pairs, PAD, &Device::flex()).expect("no answer is empty")
}

/// The reference reads the pairs anew in every step, as TRL's does; `rl-train` reads them once and keeps the numbers.
fn dpo(rng: &mut ChaCha8Rng) -> Step {
    let (reference, batch) = (model(rng), pairs(rng));
    let (mut dpo, mut held) = (Dpo::new(DpoConfig::default(), 1000), Some(reference.clone()));
    Box::new(move |rng| {
        let batch = batch.clone().with_reference(&reference, 8);
        held = Some(dpo.update(take(&mut held), &batch, rng).expect("numbers stay finite").0);
    })
}

fn reward(rng: &mut ChaCha8Rng) -> Step {
    let (mut held, batch) = (Some(RewardModel::new(model(rng))), pairs(rng));
    let mut algorithm = RewardModelling::new(RewardModelConfig::default(), 1000);
    Box::new(move |rng| {
        held = Some(algorithm.update(take(&mut held), &batch, rng).expect("numbers stay finite").0);
    })
}

/// 16 responses of 64 tokens to prompts of 32, judged by a model of the same size, and 4 epochs on them.
fn rlhf(rng: &mut ChaCha8Rng) -> Step {
    let (reference, judge) = (model(rng), RewardModel::new(model(rng)));
    let rollout = LmRolloutConfig { prompts: 16, ..LmRolloutConfig::default() };
    let config = RlhfPpoConfig { rollout, minibatch_rows: 16, ..RlhfPpoConfig::default() };
    let prompts = (0..64).map(|_| text(32, rng)).collect();
    let how = Sampling { temperature: 1.0, max_tokens: 64, stop: vec![] };
    let mut collector = LmCollector::new(config.rollout.clone(), prompts, how, PAD, &Device::flex());
    let (mut ppo, mut held) = (RlhfPpo::new(&config, 1000), Some(LmActorCritic::new(reference.clone())));
    let scores = move |prompts: &[&[u32]], written: &[Response]| {
        let rows: Vec<(&[u32], &[u32])> =
            prompts.iter().zip(written).map(|(prompt, answer)| (*prompt, &answer.tokens[..])).collect();
        judge.scores(&rows, 16)
    };
    Box::new(move |rng| {
        let model = take(&mut held);
        let answers = collector.collect(
            &model,
            ActorCritic::policy,
            |tokens| Policy::policy(&reference, tokens),
            &scores,
            rng,
        );
        held = Some(ppo.update(model, &answers, rng).expect("numbers stay finite").0);
    })
}

fn take<M>(held: &mut Option<M>) -> M {
    held.take().expect("the last step gave it back")
}

/// User and system seconds of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("a name in brackets").split(' ').collect();
    let ticks = |i: usize| fields[i].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

fn measure(task: &str, steps: u32) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut step = match task {
        "generate" => generation(&mut rng),
        "train" => training(&mut rng),
        "dpo" => dpo(&mut rng),
        "reward" => reward(&mut rng),
        "rlhf" => rlhf(&mut rng),
        other => panic!("no task `{other}`; there are {}", TASKS.join(", ")),
    };
    step(&mut rng);
    let before = cpu_seconds();
    (0..steps).for_each(|_| step(&mut rng));
    let ms = 1e3 * (cpu_seconds() - before) / f64::from(steps);
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: f64 = peak.trim().trim_end_matches(" kB").parse().unwrap_or(f64::NAN);
    println!(r#"{{"task": "{task}", "cpu_ms": {ms:.1}, "peak_rss_mb": {:.1}}}"#, kib / 1024.0);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let steps = words.get(1).and_then(|n| n.parse().ok()).unwrap_or(3);
    match words.first() {
        Some(task) => measure(task, steps),
        None => TASKS.iter().for_each(|task| measure(task, steps)),
    }
}

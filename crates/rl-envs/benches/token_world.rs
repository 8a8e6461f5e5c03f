//! Milliseconds for the exact quantities of the full token world, 8⁶ sentences: `cargo bench -p rl-envs --bench
//! token_world`.
//!
//! `everything` is what the golden vectors ask for: the enumeration itself, entropy, ten tilts, and the gold and KL of
//! best-of-n for eight n.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use rl_envs::TokenWorld;
use rl_envs::token_world::best_of_n::BestOfN;
use rl_envs::token_world::exact::{entropy, frontier, tilt};
use rl_envs::token_world::fixed;

const BETAS: [f64; 10] = [8.0, 4.0, 2.0, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05];
const SAMPLES: [usize; 8] = [1, 2, 4, 8, 16, 64, 256, 1024];

fn everything(world: &TokenWorld) -> f64 {
    let (reference, gold) = (world.reference(), world.gold());
    let tilts: f64 = BETAS.iter().map(|&beta| tilt(reference, gold, beta).objective()).sum();
    let best = BestOfN::new(reference, gold);
    let samples: f64 = SAMPLES.iter().map(|&n| best.expectation(n, gold) + best.kl(n)).sum();
    entropy(reference) + tilts + samples
}

fn token_world(c: &mut Criterion) {
    let mut group = c.benchmark_group("token world 8^6");
    group.sample_size(20);
    let parameters = fixed::full().parameters().clone();
    let enumerate = || TokenWorld::new(black_box(parameters.clone())).expect("a world");
    let world = enumerate();
    let (reference, gold) = (world.reference(), world.gold());
    group.bench_function("enumeration", |b| b.iter(enumerate));
    group.bench_function("one tilt", |b| b.iter(|| tilt(reference, black_box(gold), 0.5)));
    group.bench_function("frontier at 3 nats", |b| b.iter(|| frontier(reference, black_box(gold), 3.0)));
    group.bench_function("best-of-n, sorting", |b| b.iter(|| BestOfN::new(reference, black_box(gold))));
    let best = BestOfN::new(reference, gold);
    group.bench_function("best-of-n, gold and KL at one n", |b| {
        b.iter(|| best.expectation(black_box(16), gold) + best.kl(16))
    });
    group.bench_function("everything", |b| b.iter(|| everything(&enumerate())));
    group.finish();
}

criterion_group!(benches, token_world);
criterion_main!(benches);

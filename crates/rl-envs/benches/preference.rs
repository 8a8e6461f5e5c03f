//! Megabytes of JSON lines read per second on one core: `cargo bench -p rl-envs --bench preference`.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rl_envs::preference::{ReadOptions, Rows};

fn json_lines(criterion: &mut Criterion) {
    let mut text = String::new();
    for i in 0..20_000 {
        let answer =
            "It is a long answer, with a \\\"quote\\\" and a line break\\nnow and then. ".repeat(1 + i % 13);
        let _ = writeln!(
            text,
            r#"{{"id": {i}, "prompt": "Question {i}: why?", "chosen": "{answer}", "rejected": "No. {answer}"}}"#
        );
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pairs.jsonl");
    std::fs::write(&path, &text).expect("a writable folder");
    let mut group = criterion.benchmark_group("preference");
    group.sample_size(20).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("json_lines", |bencher| {
        bencher.iter(|| {
            let rows = Rows::open(&path, &ReadOptions::default()).expect("a readable file");
            rows.for_each(|row| drop(black_box(row.expect("a good row"))));
        });
    });
    group.finish();
}

criterion_group!(benches, json_lines);
criterion_main!(benches);

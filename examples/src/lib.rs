//! Narrated examples live beside this file; run one with `cargo run --release -p rl-examples --example NAME`.

//! Any bytes for `model_weights` of `rl_tests::fuzz::targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rl_tests::fuzz::targets::run("model_weights", bytes));

//! Any bytes for `tokenizer_text` of `rl_tests::fuzz::targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rl_tests::fuzz::targets::run("tokenizer_text", bytes));

//! Any bytes for `chat_template` of `rl_tests::fuzz::targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rl_tests::fuzz::targets::run("chat_template", bytes));

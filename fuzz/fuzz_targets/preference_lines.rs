//! Any bytes for `preference_lines` of `rl_tests::fuzz::targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rl_tests::fuzz::targets::run("preference_lines", bytes));

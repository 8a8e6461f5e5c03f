//! Narrated examples live beside this file; run one with `cargo xtask example NAME`.

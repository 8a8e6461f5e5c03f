//! Files that strangers made, or that time damaged: refused by name, in bounded memory, without a panic and never half
//! loaded. docs/survives.md lists what each test here stands for.

mod bombs;
mod damage;
mod folders;
mod memory;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_models::lm::{FloatFormat, LmConfig, Transformer};
use tempfile::TempDir;

/// A small model of given seed in a folder of its own.
fn model(seed: u64) -> (TempDir, Transformer) {
    let folder = tempfile::tempdir().unwrap();
    let config = LmConfig { intermediate: 8, max_positions: 16, ..LmConfig::llama(7, 8, 2, 2, 1) };
    let model = Transformer::new(config, &mut ChaCha8Rng::seed_from_u64(seed), &Device::flex());
    model.save(folder.path(), FloatFormat::F32).unwrap();
    (folder, model)
}

fn weights(folder: &TempDir) -> PathBuf {
    folder.path().join("model.safetensors")
}

/// Loading `folder` fails, saying all of `words`.
#[track_caller]
fn refused(folder: &Path, words: &[&str]) {
    let error = Transformer::load(folder, &Device::flex()).expect_err("the folder is hostile").to_string();
    for word in words {
        assert!(error.contains(word), "`{error}` does not say `{word}`");
    }
}

/// A safetensors file of this header and `data` bytes of zeros.
fn safetensors(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data]].concat()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).unwrap();
}

//! A Hugging Face folder in, a Hugging Face folder out: Llama, Qwen2 and GPT-2, without Python.
//!
//! `cargo xtask example 06 FOLDER` takes a folder of yours; without one, a small random model of this repository's tests is
//! read, which babbles token numbers.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_models::flat_params::count;
use rl_models::lm::{FloatFormat, Generation, Transformer, generate};
use rl_models::text::{Specials, TextTokenizer};

/// The small model of the tests.
fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/hf/llama_tied")
}

/// The likeliest 16 tokens after `prompt`.
fn go_on(model: &Transformer, prompt: &[u32]) -> Vec<u32> {
    let how = Generation {
        temperature: 0.0,
        max_tokens: 16,
        stop: model.config().eos.clone(),
        ..Generation::default()
    };
    let mut streams = [ChaCha8Rng::seed_from_u64(0)];
    generate(model, &[prompt], &mut streams, &how, |_, _| ()).remove(0).tokens
}

/// Loads, writes, exports, loads the export, and writes again: the two texts.
fn round_trip(folder: &Path, format: FloatFormat) -> Result<[Vec<u32>; 2], Box<dyn Error>> {
    let device = Device::flex();

    // 1. Reading. A missing tensor, a wrong shape or a weight that is not finite is named; nothing is guessed.
    let model = Transformer::load(folder, &device)?;
    let config = model.config();
    println!("{:?}, {} layers, {} parameters", config.architecture, config.layers, count(&model));

    // 2. Writing: with its tokenizer where there is one, in token numbers otherwise.
    let tokenizer =
        folder.join("tokenizer.json").is_file().then(|| TextTokenizer::load(folder)).transpose()?;
    let prompt = match &tokenizer {
        Some(tokenizer) => tokenizer.encode_after(config.bos, "Once upon a time")?,
        None => vec![config.bos.unwrap_or(1)],
    };
    let before = go_on(&model, &prompt);
    match &tokenizer {
        Some(tokenizer) => println!("{}", tokenizer.decode(&before, Specials::Hidden)?),
        None => println!("{before:?}"),
    }

    // 3. Exporting: `config.json` and `model.safetensors`, as the transformers library reads them. This is also what a
    //    run of `rl-train` leaves in its folder as `model/`.
    let out = env::temp_dir().join(format!("rl-example-06-{}-{format:?}", process::id()));
    model.save(&out, format)?;
    let bytes = fs::metadata(out.join("model.safetensors"))?.len();
    println!("exported in {format:?}: {bytes} bytes");
    let again = Transformer::load(&out, &device);
    fs::remove_dir_all(&out)?;
    Ok([before, go_on(&again?, &prompt)])
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).map_or_else(small, PathBuf::from);
    let [before, after] = round_trip(&folder, FloatFormat::F32)?;
    println!("the export writes the same: {}", before == after);
    Ok(())
}

#[test]
fn an_export_writes_what_the_original_writes() {
    let [before, after] = round_trip(&small(), FloatFormat::F32).unwrap();
    assert!(!before.is_empty());
    assert_eq!(before, after);
    round_trip(&small(), FloatFormat::Bf16).unwrap();
}

#[test]
fn a_folder_without_a_model_is_named() {
    let error = round_trip(Path::new("nowhere"), FloatFormat::F32).unwrap_err().to_string();
    assert!(error.contains("config.json"), "{error}");
}

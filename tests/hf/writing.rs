//! Greedy text equals that of transformers' `generate`.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_models::lm::{Generation, Transformer, generate};
use rl_tests::devices;
use serde_json::Value;

use crate::case::{load, models, numbers, token_rows};

/// What the model writes greedily after each prompt.
pub fn greedy(model: &Transformer, prompts: &[Vec<u32>], max_tokens: usize, stop: &[u32]) -> Vec<Vec<u32>> {
    let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
    let mut rngs = vec![ChaCha8Rng::seed_from_u64(0); prompts.len()];
    let how = Generation { temperature: 0.0, max_tokens, stop: stop.to_vec(), ..Generation::default() };
    generate(model, &prompts, &mut rngs, &how, |_, _| ()).into_iter().map(|row| row.tokens).collect()
}

#[test]
fn greedy_text_is_that_of_transformers() {
    let mut compared = 0;
    for (device_name, device) in devices() {
        for (name, folder, cases) in models() {
            let model = load(&folder, &device);
            for case in cases["generate"].as_array().expect("a list of cases") {
                let masks = token_rows(&case["attention_mask"]);
                let prompts: Vec<Vec<u32>> = token_rows(&case["input_ids"])
                    .into_iter()
                    .zip(&masks)
                    .map(|(ids, mask)| {
                        ids.into_iter().zip(mask).filter(|(_, m)| **m == 1).map(|(id, _)| id).collect()
                    })
                    .collect();
                let number = |key: &str| numbers(&case[key])[0] as u32;
                let eos =
                    if case["eos_token_id"] == Value::Null { vec![] } else { vec![number("eos_token_id")] };
                let written = greedy(&model, &prompts, number("max_new_tokens") as usize, &eos);
                for (row, (got, want)) in written.iter().zip(token_rows(&case["new_tokens"])).enumerate() {
                    // Rows that met eos are filled with padding in the file.
                    let end =
                        want.iter().position(|token| eos.contains(token)).map_or(want.len(), |at| at + 1);
                    assert_eq!(got, &want[..end], "{name}, {}, row {row}, {device_name}", case["name"]);
                    compared += end;
                }
            }
        }
    }
    println!("hf greedy: {compared} tokens");
    assert!(compared > 0, "no tokens were compared");
}

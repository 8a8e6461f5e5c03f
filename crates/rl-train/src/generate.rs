//! `rl-train generate`: a language model of a Hugging Face folder goes on with a prompt, token by token.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_models::lm::{self, Generation, Transformer};
use rl_models::text::{Specials, TextTokenizer};

use crate::{Outcome, device};

/// `rl-train generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// A folder with config.json, model.safetensors and tokenizer.json
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// What to go on with
    #[arg(long, default_value = "")]
    pub prompt: String,
    /// Tokens at most
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub max_tokens: usize,
    /// No end before this many tokens
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_tokens: usize,
    /// End at this token too: its spelling in the vocabulary, or its number; may be given several times
    #[arg(long, value_name = "TOKEN")]
    pub stop: Vec<String>,
    /// Divides the logits; 0 takes the likeliest token each time
    #[arg(long, value_name = "T", default_value_t = 1.0, value_parser = warmth, allow_negative_numbers = true)]
    pub temperature: f64,
    /// Draw from the K likeliest tokens only
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    pub top_k: Option<u64>,
    /// Draw from the fewest tokens only whose chances reach P
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    pub top_p: Option<f64>,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where tensors live: flex, ndarray, wgpu or cuda
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub device: String,
}

fn warmth(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|t: &f64| *t >= 0.0 && t.is_finite());
    value.ok_or_else(|| "it must be in [0, ∞)".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|p: &f64| *p > 0.0 && *p <= 1.0);
    value.ok_or_else(|| "it must be in (0, 1]".to_owned())
}

/// The number of the token that `--stop` means.
fn stop(word: &str, tokenizer: &TextTokenizer, vocabulary: usize) -> Result<u32> {
    let number = || word.parse().ok().filter(|token: &u32| (*token as usize) < vocabulary);
    tokenizer.token(word).or_else(number).with_context(|| {
        format!(
            "`--stop {word}` is no token of this model; give one as it stands in tokenizer.json, or a number below {vocabulary}"
        )
    })
}

/// Writes the prompt and what the model says after it, as it says it.
///
/// # Errors
/// If the folder holds no model, a stop is no token of it, or prompt and least length are more than it can look back on.
pub fn generate(args: &GenerateArgs) -> Result<Outcome> {
    let device = device::choose(&args.device)?;
    let in_folder = || format!("no model in `{}`", args.model.display());
    let model = Transformer::load(&args.model, &device.device).with_context(in_folder)?;
    let tokenizer = TextTokenizer::load(&args.model).with_context(in_folder)?;

    let config = model.config();
    let prompt = tokenizer.encode_after(config.bos, &args.prompt)?;
    ensure!(
        !prompt.is_empty(),
        "`--prompt` is empty and the model names no token to begin with; say something"
    );
    let sight = config.max_positions;
    ensure!(
        prompt.len() < sight,
        "`--prompt` has {} tokens; the model can look back on {sight}",
        prompt.len()
    );

    let max_tokens = args.max_tokens.min(sight - prompt.len());
    ensure!(
        args.min_tokens <= max_tokens,
        "`--min-tokens` is {}, but at most {max_tokens} tokens are written here (`--max-tokens`, and {sight} with the prompt)",
        args.min_tokens
    );
    let stops = args.stop.iter().map(|word| stop(word, &tokenizer, config.vocabulary));
    let how = Generation {
        temperature: args.temperature,
        top_k: args.top_k.map(|k| k as usize),
        top_p: args.top_p,
        min_tokens: args.min_tokens,
        max_tokens,
        stop: config.eos.iter().copied().map(Ok).chain(stops).collect::<Result<_>>()?,
    };
    let mut tokens = prompt.clone();
    let mut printed = 0;
    let mut show = |tokens: &[u32]| {
        // The whole text so far, since a letter may be spread over several tokens.
        let text = tokenizer.decode(tokens, Specials::Hidden).unwrap_or_default();
        let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let mut out = std::io::stdout();
        let _ = write!(out, "{}", whole.get(printed..).unwrap_or_default()).and_then(|()| out.flush());
        printed = printed.max(whole.len());
    };
    show(&tokens);
    let mut rng = [ChaCha8Rng::seed_from_u64(args.seed)];
    lm::generate(&model, &[&prompt], &mut rng, &how, |_, token| {
        tokens.push(token);
        show(&tokens);
    });
    say!();
    Ok(Outcome::Done)
}

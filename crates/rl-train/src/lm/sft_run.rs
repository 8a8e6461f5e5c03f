//! `sft` on rows of tokens.

use anyhow::Result;
use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_algos::{Fit, Report, SftConfig};
use rl_models::Tokens;
use rl_models::lm::{Generation, LanguageModel, Transformer, generate};
use rl_models::text::Specials;
use serde::{Serialize, Serializer};

use super::data::{Examples, TokenRow};
use super::dataset_run::Dataset;
use super::model::Vocabulary;
use crate::config::RunConfig;
use crate::config::error::ConfigError;
use crate::drive::Findings;
use crate::metrics::Row;
use crate::run_folder::RunFolder;

/// Rows to learn from, rows to be tested on.
pub struct SftRows {
    learnt: Vec<TokenRow>,
    held_out: Vec<TokenRow>,
    /// Rows in memory at once.
    at_once: usize,
    vocabulary: Vocabulary,
    pad: u32,
    device: Device,
}

impl SftRows {
    /// The rows of `examples` as `model` reads them.
    ///
    /// # Errors
    /// If a row cannot be read, or none is left to learn from.
    pub fn new(
        examples: &Examples,
        config: &RunConfig,
        sft: &SftConfig,
        model: &Transformer,
        vocabulary: Vocabulary,
        device: &Device,
    ) -> Result<Self> {
        let shape = model.config();
        let most = sft.max_tokens.min(shape.max_positions);
        let (mut learnt, cut) = examples.rows(&vocabulary.tokenizer, shape, most)?;
        if cut > 0 {
            say!("{cut} of {} rows are longer than {most} tokens; they are cut there", learnt.len());
        }
        let held = config.eval.episodes;
        let n = learnt.len();
        if n <= held {
            let what = format!("{held} of {n} rows are held out: none is left to learn from");
            return Err(ConfigError::Value { key: "eval.episodes".into(), what }.into());
        }
        let held_out = learnt.split_off(n - held);
        let tokens: usize = learnt.iter().map(|(prompt, response)| prompt.len() + response.len()).sum();
        say!("{} rows to learn from, {tokens} tokens; {held} held out", learnt.len());
        let at_once = sft.micro_batch;
        Ok(Self { learnt, held_out, at_once, vocabulary, pad: shape.pad, device: device.clone().inner() })
    }

    fn tokens<'a>(&self, rows: impl Iterator<Item = &'a TokenRow>) -> Tokens {
        let pairs: Vec<(&[u32], &[u32])> = rows.map(|(x, y)| (x.as_slice(), y.as_slice())).collect();
        Tokens::new(&pairs, self.pad, &self.device)
    }

    /// What the model writes by itself.
    fn sample(&self, model: &Transformer) -> Result<String> {
        let config = model.config();
        let begin = config.bos.or(config.eos.first().copied()).unwrap_or(config.pad);
        let how = Generation {
            max_tokens: 100.min(config.max_positions - 1),
            stop: config.eos.clone(),
            ..Generation::default()
        };
        let mut rng = [ChaCha8Rng::seed_from_u64(0)];
        let written = generate(model, &[&[begin]], &mut rng, &how, |_, _| ()).remove(0);
        Ok(self.vocabulary.tokenizer.decode(&written.tokens, Specials::Hidden)?)
    }
}

impl<M: LanguageModel> Dataset<M> for SftRows {
    type Batch = Tokens;
    type Findings = HeldOut;
    const ROWS: &'static str = "rows";

    fn rows(&self) -> usize {
        self.learnt.len()
    }

    fn batch(&self, rows: &[usize]) -> Tokens {
        self.tokens(rows.iter().map(|&row| &self.learnt[row]))
    }

    fn fingerprint(&self) -> u64 {
        // FNV-1a over the tokens and where each row's response begins and ends.
        let tokens = self.learnt.iter().flat_map(|(prompt, response)| {
            prompt.iter().chain([&u32::MAX]).chain(response).chain([&u32::MAX]).copied()
        });
        tokens.fold(0xcbf2_9ce4_8422_2325, |hash, token| {
            (hash ^ u64::from(token)).wrapping_mul(0x100_0000_01b3)
        })
    }

    fn evaluate(&self, model: &M) -> Result<HeldOut> {
        let model = &model.whole();
        let rows = self.held_out.len();
        if rows == 0 {
            return Ok(HeldOut { fit: None, rows, sample: self.sample(model)? });
        }
        let fit = Fit::measure(model, &self.tokens(self.held_out.iter()), self.at_once);
        Ok(HeldOut { fit: Some(fit), rows, sample: self.sample(model)? })
    }

    fn headline(row: &Row) -> Option<(&'static str, f64)> {
        row.get("losses/perplexity").map(|perplexity| ("perplexity", perplexity))
    }

    /// A Hugging Face folder, `model`; adapters are part of its weights.
    fn finish(&self, model: &M, folder: &RunFolder) -> Result<()> {
        let place = folder.file("model");
        self.vocabulary.save(&model.whole(), &place)?;
        say!("write with it: {} generate {} --prompt …", crate::called(), place.display());
        Ok(())
    }
}

/// How well a model fits rows that it has not learnt from.
pub struct HeldOut {
    fit: Option<Fit>,
    rows: usize,
    sample: String,
}

impl Report for HeldOut {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        let Some(fit) = &self.fit else { return };
        f("eval/nll", fit.nll);
        f("eval/perplexity", fit.perplexity());
        f("eval/token_accuracy", fit.accuracy);
    }
}

impl Serialize for HeldOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            eval_nll: Option<f64>,
            eval_perplexity: Option<f64>,
            eval_token_accuracy: Option<f64>,
            eval_rows: usize,
        }
        let of = |what: fn(&Fit) -> f64| self.fit.as_ref().map(what);
        Fields {
            eval_nll: of(|fit| fit.nll),
            eval_perplexity: of(Fit::perplexity),
            eval_token_accuracy: of(|fit| fit.accuracy),
            eval_rows: self.rows,
        }
        .serialize(serializer)
    }
}

impl Findings for HeldOut {
    fn score(&self) -> Option<(&'static str, f64)> {
        self.fit.as_ref().map(|fit| ("-eval/nll", -fit.nll))
    }

    fn brief(&self) -> String {
        let said = self.sample.trim();
        let Some(fit) = &self.fit else { return format!("it writes: {said}") };
        let (nll, perplexity, right) = (fit.nll, fit.perplexity(), 100.0 * fit.accuracy);
        format!(
            "{} rows held out: {nll:.3} nats per token, perplexity {perplexity:.2}, {right:.1}% of tokens foreseen\n\
             it writes: {said}",
            self.rows
        )
    }
}

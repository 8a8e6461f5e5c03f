//! `rl-train score`: what a reward model, or several, thinks of the answers of a preference file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use rl_core::preference::{CalibrationBin, Ensemble, calibration, expected_calibration_error};
use rl_envs::preference::Dataset;
use rl_models::lm::RewardModel;
use serde::{Deserialize, Serialize};

use crate::data_check::ReadArgs;
use crate::device::ChosenDevice;
use crate::pairs::{Encoder, Ending, Limits};
use crate::{Outcome, device};

/// `rl-train score`.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// A reward model's folder: config.json, model.safetensors with `score.weight`, tokenizer.json
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// The data
    #[command(flatten)]
    pub read: ReadArgs,
    /// Another reward model to judge with; may be repeated
    #[arg(long = "with", value_name = "MODEL")]
    pub with: Vec<PathBuf>,
    /// How the scores of several models become one
    #[arg(long, value_enum, default_value = "mean")]
    pub ensemble: EnsembleName,
    /// k of `--ensemble mean-minus-std`
    #[arg(long, default_value_t = 1.0, value_parser = weight)]
    pub k: f64,
    /// What stands behind an answer [default: as the model was trained]
    #[arg(long, value_enum)]
    pub ending: Option<Ending>,
    /// Write the scores there, one line of JSON per row
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where tensors live: flex, ndarray, wgpu or cuda
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub device: String,
}

/// The rules of [`Ensemble`] as the command line writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnsembleName {
    /// Their mean
    Mean,
    /// The least of them
    Min,
    /// Their mean less k standard deviations
    MeanMinusStd,
}

fn weight(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|k: &f64| *k >= 0.0 && k.is_finite());
    value.ok_or_else(|| "it must be in [0, ∞)".to_owned())
}

/// Rows of one forward pass.
const ROWS: usize = 16;
/// Bars of the calibration curve.
const BINS: usize = 5;

/// How a reward model's texts become tokens, saved beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What stands behind an answer.
    pub ending: Ending,
    /// The most tokens of a prompt.
    pub max_prompt_tokens: usize,
    /// The most tokens of an answer.
    pub max_answer_tokens: usize,
}

impl Reading {
    /// The file that holds it.
    pub const FILE: &'static str = "reading.json";

    /// Its limits.
    pub fn limits(self) -> Limits {
        Limits { prompt: self.max_prompt_tokens, answer: self.max_answer_tokens }
    }
}

/// A reward model and how it reads.
pub struct Judge {
    model: RewardModel,
    encoder: Encoder,
}

impl Judge {
    /// The judge in `folder`.
    ///
    /// # Errors
    /// If there is no reward model in it, or no tokenizer.
    pub fn load(folder: &Path, ending: Option<Ending>, device: &ChosenDevice) -> Result<Self> {
        let in_folder = || {
            let folder = folder.display();
            format!(
                "no reward model in `{folder}`; `rl-train train rm-stories` writes one into its run's `model`"
            )
        };
        let model = RewardModel::load(folder, &device.device).with_context(in_folder)?;
        let config = model.trunk.config();
        let limits = Limits::of_sight(config.max_positions);
        let path = folder.join(Reading::FILE);
        let (own, limits) = match std::fs::read_to_string(&path) {
            Err(_) => (Ending::Eos, limits),
            Ok(text) => {
                let damaged = || format!("`{}` is damaged", path.display());
                let reading: Reading = serde_json::from_str(&text).with_context(damaged)?;
                (reading.ending, reading.limits())
            }
        };
        let encoder = Encoder::of_model(folder, config, ending.unwrap_or(own)).with_context(in_folder)?;
        Ok(Self { model, encoder: encoder.with_limits(limits) })
    }

    /// The scores of both answers of every pair, then of every single answer.
    fn scores(&self, data: &Dataset) -> Result<Vec<f64>> {
        let mut texts = Vec::with_capacity(2 * data.pairs.len() + data.judged.len());
        for (i, pair) in data.pairs.iter().enumerate() {
            let pair = self.encoder.pair(pair).with_context(|| format!("pair {}", i + 1))?;
            texts.push((pair.prompt.clone(), pair.chosen));
            texts.push((pair.prompt, pair.rejected));
        }
        for (i, row) in data.judged.iter().enumerate() {
            let encode =
                || anyhow::Ok((self.encoder.prompt(&row.prompt)?, self.encoder.answer(&row.completion)?));
            texts.push(encode().with_context(|| format!("judgement {}", i + 1))?);
        }
        let borrowed: Vec<(&[u32], &[u32])> =
            texts.iter().map(|(x, y)| (x.as_slice(), y.as_slice())).collect();
        Ok(self.model.scores(&borrowed, ROWS))
    }
}

/// Scores every answer, and says how often the better one wins.
///
/// # Errors
/// If a folder holds no reward model, or the file cannot be read.
pub fn score(args: &ScoreArgs) -> Result<Outcome> {
    let device = device::choose(&args.device)?;
    let data = args.read.load()?;
    let mut members = Vec::with_capacity(1 + args.with.len());
    for folder in std::iter::once(&args.model).chain(&args.with) {
        members.push(Judge::load(folder, args.ending, &device)?.scores(&data)?);
    }
    let rule = match args.ensemble {
        EnsembleName::Mean => Ensemble::Mean,
        EnsembleName::Min => Ensemble::Min,
        EnsembleName::MeanMinusStd => Ensemble::MeanMinusStd { k: args.k },
    };
    let of = |row: usize| members.iter().map(|scores| scores[row]).collect::<Vec<_>>();
    let scores: Vec<f64> = (0..members[0].len()).map(|row| rule.combine(&of(row))).collect();
    ensure!(scores.iter().all(|score| score.is_finite()), "a score is not finite: the model is broken");
    let (pairs, single) = scores.split_at(2 * data.pairs.len());
    if let Some(path) = &args.out {
        write(path, pairs, single).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if !single.is_empty() {
        let mean = |good: bool| {
            let of: Vec<f64> = single
                .iter()
                .zip(&data.judged)
                .filter(|(_, row)| row.good == good)
                .map(|(s, _)| *s)
                .collect();
            of.iter().sum::<f64>() / of.len().max(1) as f64
        };
        say!(
            "{} judgements: mean score {:.4} of good answers, {:.4} of others",
            single.len(),
            mean(true),
            mean(false)
        );
    }
    if !pairs.is_empty() {
        tell(&Verdict::of(pairs));
    }
    Ok(Outcome::Done)
}

/// How a reward model does on comparisons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Comparisons.
    pub pairs: usize,
    /// Share in the right order.
    pub accuracy: f64,
    /// Share with equal scores.
    pub ties: f64,
    /// Mean of chosen − rejected.
    pub margin: f64,
    /// The calibration curve.
    pub curve: Vec<CalibrationBin>,
}

impl Verdict {
    /// The verdict of scores, chosen and rejected in turn.
    pub fn of(scores: &[f64]) -> Self {
        let margins: Vec<f64> = scores.chunks_exact(2).map(|pair| pair[0] - pair[1]).collect();
        let n = margins.len() as f64;
        let share = |of: &dyn Fn(f64) -> bool| margins.iter().filter(|m| of(**m)).count() as f64 / n;
        Self {
            pairs: margins.len(),
            accuracy: share(&|m| m > 0.0),
            ties: share(&|m| m == 0.0),
            margin: margins.iter().sum::<f64>() / n,
            curve: calibration(&margins, BINS),
        }
    }
}

/// Says it.
pub fn tell(verdict: &Verdict) {
    let Verdict { pairs, accuracy, ties, margin, curve } = verdict;
    let error = (accuracy * (1.0 - accuracy) / *pairs as f64).sqrt();
    say!("{pairs} pairs: accuracy {accuracy:.3} ± {error:.3}, ties {ties:.3}, mean margin {margin:.4}");
    say!("calibration (error {:.3}):", expected_calibration_error(curve));
    say!("  as sure as   right   pairs");
    for bin in curve.iter().filter(|bin| bin.count > 0) {
        say!("  {:<10.3}   {:<5.3}   {}", bin.confidence, bin.right, bin.count);
    }
}

fn write(path: &Path, pairs: &[f64], single: &[f64]) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for pair in pairs.chunks_exact(2) {
        writeln!(file, "{}", serde_json::json!({ "score_chosen": pair[0], "score_rejected": pair[1] }))?;
    }
    for score in single {
        writeln!(file, "{}", serde_json::json!({ "score": score }))?;
    }
    Ok(file.flush()?)
}

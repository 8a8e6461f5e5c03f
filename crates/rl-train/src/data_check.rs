//! `rl-train data check`: what a preference file is like, before anybody trains on it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rl_envs::preference::{DataError, Dataset, Fault, Fields, Lengths, OnBad, Pair, ReadOptions, Survey};
use rl_models::lm::LmConfig;

use crate::Outcome;
use crate::pairs::{Encoder, Ending};

/// `rl-train data`.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// What to do
    #[command(subcommand)]
    pub verb: DataVerb,
}

/// What to do with data.
#[derive(Debug, Subcommand)]
pub enum DataVerb {
    /// Say what is in a preference file, and what is wrong with it
    Check(CheckArgs),
}

/// How a preference file is read.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// A file (JSON lines, JSON, CSV, Parquet, each also gzipped but the last), or a folder of them
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What a bad row does
    #[arg(long, value_name = "error|skip", default_value = "error", value_parser = on_bad)]
    pub on_bad: OnBad,
    /// Read a field from another column, such as `chosen=answer_a`; may be repeated
    #[arg(long = "field", value_name = "FIELD=COLUMN")]
    pub fields: Vec<String>,
}

/// `rl-train data check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The data
    #[command(flatten)]
    pub read: ReadArgs,
    /// A model's folder, whose tokens and template count [default: bytes]
    #[arg(long, value_name = "FOLDER")]
    pub model: Option<PathBuf>,
    /// What stands behind an answer
    #[arg(long, value_enum, default_value = "eos")]
    pub ending: Ending,
    /// Tokens of prompt and answer together [default: what the model can look back on]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub max_tokens: Option<u64>,
    /// Pairs to show
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub show: usize,
}

fn on_bad(text: &str) -> Result<OnBad, String> {
    match text {
        "error" => Ok(OnBad::Error),
        "skip" => Ok(OnBad::Skip),
        _ => Err("known are `error` and `skip`".to_owned()),
    }
}

impl ReadArgs {
    /// Reads the data.
    ///
    /// # Errors
    /// The first bad row in strict reading; what is wrong with the file.
    pub fn load(&self) -> Result<Dataset, DataError> {
        let fields = Fields::renamed(self.fields.iter().map(String::as_str))?;
        Dataset::load(&self.file, &ReadOptions { fields, on_bad: self.on_bad, ..ReadOptions::default() })
    }
}

/// Does what is asked with data.
///
/// # Errors
/// See [`check`].
pub fn data(args: &DataArgs) -> Result<Outcome> {
    match &args.verb {
        DataVerb::Check(args) => check(args),
    }
}

/// Reports rows, ties, duplicates, lengths, length bias and truncation, and shows some rows.
///
/// # Errors
/// If the file cannot be read, or has a bad row in strict reading.
fn check(args: &CheckArgs) -> Result<Outcome> {
    let data = args.read.load()?;
    let (encoder, sight) = match &args.model {
        Some(folder) => {
            let (encoder, config) = reader_of(folder, args.ending)?;
            (encoder, Some(config.max_positions))
        }
        None => (Encoder::of_bytes(), None),
    };
    let unit = if args.model.is_some() { "tokens" } else { "bytes" };
    say!("{}: {} pairs, {} single judgements", args.read.file.display(), data.pairs.len(), data.judged.len());
    skipped(&data);
    if !data.judged.is_empty() {
        let good = data.judged.iter().filter(|row| row.good).count();
        say!("  judgements       {good} good, {} not", data.judged.len() - good);
    }
    if data.pairs.is_empty() {
        return Ok(Outcome::Done);
    }
    let lengths = Measured::of(&data.pairs, &encoder)?;
    let survey = Survey::of(&data.pairs, |answer| lengths.answers[answer]);
    report(&survey, &lengths.prompts, unit);
    let most = args.max_tokens.map(|n| n as usize).or(sight);
    if let Some(most) = most {
        truncation(&data.pairs, &lengths, most);
    }
    for (i, pair) in data.pairs.iter().take(args.show).enumerate() {
        show(i + 1, pair, &encoder)?;
    }
    if args.model.is_none() {
        say!("Lengths are bytes; `--model FOLDER` counts a model's tokens.");
    }
    Ok(Outcome::Done)
}

/// The encoder of a model's folder, and the model's shape.
///
/// # Errors
/// If there is no model in the folder.
pub fn reader_of(folder: &Path, ending: Ending) -> Result<(Encoder, LmConfig)> {
    let in_folder = || format!("no model in `{}`", folder.display());
    let path = folder.join("config.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read `{}`", path.display()))
        .with_context(in_folder)?;
    let config = LmConfig::parse(&text).with_context(in_folder)?;
    Ok((Encoder::of_model(folder, &config, ending).with_context(in_folder)?, config))
}

/// Tokens of everything, nothing cut.
struct Measured<'a> {
    answers: HashMap<&'a str, usize>,
    prompts: Vec<usize>,
}

impl<'a> Measured<'a> {
    fn of(pairs: &'a [Pair], encoder: &Encoder) -> Result<Self> {
        let (mut answers, mut prompts) = (HashMap::new(), Vec::with_capacity(pairs.len()));
        for (i, pair) in pairs.iter().enumerate() {
            let at = || format!("pair {}", i + 1);
            prompts.push(encoder.whole_prompt(&pair.prompt).with_context(at)?.len());
            for answer in [&pair.chosen, &pair.rejected] {
                let tokens = encoder.whole_answer(answer).with_context(at)?.len();
                if tokens == 0 {
                    bail!("pair {}: the answer {answer:?} has no token: there is nothing to compare", i + 1);
                }
                answers.insert(answer.as_str(), tokens);
            }
        }
        Ok(Self { answers, prompts })
    }
}

fn skipped(data: &Dataset) {
    let bad = &data.skipped;
    if bad.count == 0 {
        return say!("  bad rows         none");
    }
    let empty = bad.listed.iter().filter(|(_, fault)| matches!(fault, Fault::Empty { .. })).count();
    say!("  bad rows         {} skipped, {empty} of them for an empty answer", bad.count);
    for (place, fault) in bad.listed.iter().take(5) {
        say!("    {place}: {fault}");
    }
    if bad.count > 5 {
        say!("    … and {} more", bad.count - 5);
    }
}

fn report(survey: &Survey, prompts: &[usize], unit: &str) {
    let Survey { ties, duplicates, contradictions, .. } = survey;
    say!(
        "  ties             {ties} pairs of two identical answers: they teach nothing, and their loss stays ln 2"
    );
    say!("  duplicates       {duplicates} pairs stood before, word for word");
    say!("  contradictions   {contradictions} pairs stood before the other way round");
    let mean = prompts.iter().sum::<usize>() as f64 / prompts.len() as f64;
    let most = prompts.iter().max().expect("there are pairs");
    say!("  prompts          {} different; mean {mean:.1} {unit}, longest {most}", survey.prompts);
    let answers = |side: &str, Lengths { mean, most }: Lengths| {
        say!("  {side:<8} answers mean {mean:.1} {unit}, longest {most}");
    };
    answers("chosen", survey.chosen);
    answers("rejected", survey.rejected);
    let unequal = survey.chosen_longer + survey.rejected_longer;
    if unequal == 0.0 {
        return say!("  length bias      none: both answers of every pair are of one length");
    }
    let share = survey.chosen_longer / unequal;
    let n = (unequal * survey.pairs as f64).round();
    say!(
        "  length bias      the longer answer wins {:.1}% of the {n} pairs of unequal lengths",
        100.0 * share
    );
    // Two standard errors of a fair coin.
    if (share - 0.5).abs() > 1.0 / n.sqrt() && (share - 0.5).abs() > 0.05 {
        let taste = if share > 0.5 { "longer" } else { "shorter" };
        say!("                   more than chance: a model can win by being {taste} alone");
    }
}

/// What a limit on the whole sequence does to answers, if its end is what is cut off.
fn truncation(pairs: &[Pair], lengths: &Measured, most: usize) {
    let (mut cut, mut emptied) = (0, Vec::new());
    for (i, (pair, prompt)) in pairs.iter().zip(&lengths.prompts).enumerate() {
        let longest = [&pair.chosen, &pair.rejected].map(|answer| lengths.answers[answer.as_str()]);
        cut += usize::from(longest.iter().any(|answer| prompt + answer > most));
        if *prompt >= most {
            emptied.push((i + 1).to_string());
        }
    }
    say!("  truncation       {cut} pairs are longer than {most} tokens");
    if !emptied.is_empty() {
        let (n, first) = (emptied.len(), emptied[..emptied.len().min(5)].join(", "));
        let more = if n > 5 { ", …" } else { "" };
        say!(
            "                   cut at the end, {n} of them would keep nothing of an answer: pairs {first}{more}"
        );
        say!(
            "                   (in training the prompt loses its beginning instead; an answer is never emptied)"
        );
    }
}

/// A pair as a model reads it. What is in the loss is in brackets.
fn show(number: usize, pair: &Pair, encoder: &Encoder) -> Result<()> {
    let encoded = encoder.pair(pair).with_context(|| format!("pair {number}"))?;
    say!("pair {number}, as the model reads it ([in the loss], not in the loss):");
    let parts = [("prompt", &encoded.prompt), ("chosen", &encoded.chosen), ("rejected", &encoded.rejected)];
    for (part, tokens) in parts {
        let mask = |piece: String| if part == "prompt" { piece } else { format!("[{piece}]") };
        let pieces: Vec<String> = encoder.pieces(tokens).into_iter().map(mask).collect();
        say!("  {part:<8} {:>4}  {}", tokens.len(), both_ends(&pieces));
    }
    Ok(())
}

/// All of a few pieces; the first and the last of many.
fn both_ends(pieces: &[String]) -> String {
    const FIRST: usize = 24;
    const LAST: usize = 12;
    if pieces.len() <= FIRST + LAST {
        return pieces.join(" ");
    }
    format!("{} … {}", pieces[..FIRST].join(" "), pieces[pieces.len() - LAST..].join(" "))
}

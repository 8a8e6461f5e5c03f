//! The pipeline's comparisons, and its table: every model answers the same openings, from the same streams.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rand::seq::SliceRandom;
use rl_envs::env_rng;
use rl_envs::preference::{Preferred, Prompt, SyntheticPreferences};
use rl_envs::story::story;
use rl_models::lm::Transformer;
use rl_models::{Policy, Response, ResponseEnd};
use serde::Serialize;

use super::stages::{Size, TOKENS};
use super::write;
use crate::device;
use crate::pairs::{Encoder, Ending, Limits};
use crate::preference::config::{Gold, RewardSection};
use crate::preference::exam::{Exam, Grades};
use crate::preference::judge::AnswerJudge;

/// The comparisons.
pub const PREFERENCES: &str = "preferences.jsonl";
/// Openings that no comparison has.
pub const OPENINGS: &str = "openings.txt";
/// Rewards a tenth apart are told apart with the odds e : 1.   Bradley & Terry 1952
const JUDGE: SyntheticPreferences = SyntheticPreferences { temperature: 0.1, flip: 0.0, length_bias: 0.0 };
/// Streams of the seed: openings, labels, and what is written.
const STREAMS: [u64; 2] = [11, 12];

/// A comparison as it is written.
#[derive(Serialize)]
struct Comparison<'a> {
    prompt: &'a str,
    chosen: &'a str,
    rejected: &'a str,
}

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Line {
    method: &'static str,
    proxy: f64,
    #[serde(flatten)]
    grades: Grades,
}

/// The base model and how it reads.
struct Base {
    model: Transformer,
    encoder: Encoder,
    device: device::ChosenDevice,
}

impl Base {
    fn load(folder: &Path) -> Result<Self> {
        let device = device::choose("flex")?;
        let origin = folder.join("base/model");
        let model = Transformer::load(&origin, &device.device)?;
        let [prompt, answer] = TOKENS;
        let encoder = Encoder::of_model(&origin, model.config(), Ending::Eos)?;
        Ok(Self { model, encoder: encoder.with_limits(Limits { prompt, answer }), device })
    }

    fn exam(&self, openings: &[String], seed: u64) -> Result<Exam> {
        let encoded =
            |text: &String| anyhow::Ok((text.clone(), self.encoder.prompt(&Prompt::Text(text.clone()))?));
        let prompts = openings.iter().map(encoded).collect::<Result<_>>()?;
        let eos = &self.model.config().eos;
        Ok(Exam::new(prompts, &self.encoder, Some(Gold::Stories), eos, seed, &self.device.device))
    }
}

/// Writes [`PREFERENCES`] and [`OPENINGS`]: a quarter of the openings is kept for the table.
pub fn write_preferences(folder: &Path, size: Size, seed: u64) -> Result<()> {
    let mut rng = env_rng(seed, STREAMS[0]);
    let mut seen = HashSet::new();
    let drawn = (0..4_000).map(|_| story(&mut rng).opening);
    let mut openings: Vec<String> = drawn.filter(|text| seen.insert(text.clone())).collect();
    openings.shuffle(&mut rng);
    let known = openings.split_off(openings.len() / 4);
    let known = &known[..size.pick(known.len(), 32)];

    let base = Base::load(folder)?;
    let exam = base.exam(known, seed)?;
    let mut labels = env_rng(seed, STREAMS[1]);
    let mut text = String::new();
    for draw in 0..size.pick(12, 2) {
        let (first, second) = (exam.answers(&base.model, 2 * draw), exam.answers(&base.model, 2 * draw + 1));
        for ((_, one), (_, two)) in first.iter().zip(&second) {
            if one.answer == two.answer || one.answer.trim().is_empty() || two.answer.trim().is_empty() {
                continue;
            }
            let reward = |gold: Option<f64>| gold.context("the stories judge every answer");
            let rewards = [reward(one.gold)?, reward(two.gold)?];
            let preferred = JUDGE.judge(rewards, [one.tokens.len(), two.tokens.len()], &mut labels);
            let (chosen, rejected) = match preferred {
                Preferred::First => (&one.answer, &two.answer),
                Preferred::Second => (&two.answer, &one.answer),
            };
            text += &serde_json::to_string(&Comparison { prompt: &one.prompt, chosen, rejected })?;
            text.push('\n');
        }
    }
    let pairs = text.lines().count();
    ensure!(pairs > 0, "the base model writes the same answer twice to every opening; train it longer");
    write(folder, OPENINGS, &(openings.join("\n") + "\n"))?;
    write(folder, PREFERENCES, &text)?;
    say!("{pairs} comparisons on {} openings; {} openings are kept", known.len(), openings.len());
    Ok(())
}

/// Every model on the kept openings.
///
/// # Errors
/// If a model or the openings cannot be read.
pub fn table(folder: &Path, size: Size) -> Result<Vec<Line>> {
    let base = Base::load(folder)?;
    let text = std::fs::read_to_string(folder.join(OPENINGS))?;
    let openings: Vec<String> = text.lines().map(str::to_owned).collect();
    // Each opening several times, every time from a stream of its own.
    let asked = match size {
        Size::Full => openings.iter().cycle().take(8 * openings.len()).cloned().collect(),
        Size::Tiny => openings[..8].to_vec(),
    };
    let exam = base.exam(&asked, 3)?;
    let reward = RewardSection::Model { folder: folder.join("reward/model").display().to_string() };
    let judge = AnswerJudge::new(&reward, &base.model, &folder.join("base/model"), &base.device.device)?;
    let encoded: Vec<Vec<u32>> = asked
        .iter()
        .map(|text| Ok(base.encoder.prompt(&Prompt::Text(text.clone()))?))
        .collect::<Result<_>>()?;
    let prompts: Vec<&[u32]> = encoded.iter().map(Vec::as_slice).collect();
    [("base", "base/model"), ("PPO", "ppo/model"), ("DPO", "dpo/model")]
        .into_iter()
        .map(|(method, place)| {
            let model = Transformer::load(&folder.join(place), &base.device.device)?;
            let reference = |tokens: &_| base.model.policy(tokens);
            let (answers, grades) = exam.sit(&model, |tokens| model.policy(tokens), reference, 0);
            let written: Vec<Response> = answers
                .iter()
                .map(|y| Response { tokens: y.tokens.clone(), log_probs: vec![], end: ResponseEnd::Cut })
                .collect();
            let scores = judge.scores(&prompts, &written, &base.encoder);
            let proxy = scores.iter().sum::<f64>() / scores.len() as f64;
            Ok(Line { method, proxy, grades })
        })
        .collect()
}

/// The table as Markdown.
pub fn markdown(table: &[Line]) -> String {
    let mut text = String::from(
        "| method | gold | proxy | KL, nats per answer | entropy, nats per token | distinct-2 |\n\
         |---|---|---|---|---|---|\n",
    );
    for Line { method, proxy, grades } in table {
        let (gold, error) = (grades.gold.unwrap_or(f64::NAN), grades.gold_error.unwrap_or(f64::NAN));
        let Grades { kl, token_entropy, distinct_2, .. } = grades;
        text += &format!(
            "| {method} | {gold:.3} ± {error:.3} | {proxy:.2} | {kl:.2} | {token_entropy:.2} | {distinct_2:.3} |\n"
        );
    }
    text
}

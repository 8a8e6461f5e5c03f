//! A reward-model run: pairs, and the order of answers to prompts that it has not seen.

use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rl_algos::{OnAlarm, Report, RewardModelling};
use rl_core::preference::expected_calibration_error;
use rl_models::lm::{FloatFormat, RewardModel, Transformer};
use serde::Serialize;
use serde_json::Value;

use super::data::{PairData, Split};
use super::exam::Exam;
use super::folder::copy_text_files;
use crate::drive::{Advanced, Findings, Session};
use crate::learner::{Learner, LearnerState, Tensors};
use crate::metrics::Row;
use crate::pairs::EncodedPair;
use crate::run_folder::RunFolder;
use crate::score::{Reading, Verdict};

/// A run and how far it is.
pub struct RewardSession {
    /// The reward model and what teaches it.
    pub learner: Learner<RewardModel, RewardModelling>,
    /// The model that writes: its answers are what scores are normalised on.
    pub writer: Transformer,
    /// The pairs.
    pub data: PairData,
    /// Unseen prompts, where the run has some.
    pub exam: Option<Exam>,
    /// How texts become tokens.
    pub reading: Reading,
    /// The folder that the trunk came from.
    pub origin: PathBuf,
    /// Pairs of the writer's answers to unseen prompts, the better one first.
    pub fresh: OnceCell<Option<Split>>,
    /// The prompts on whose answers scores are normalised.
    pub normal: Exam,
    /// What bad numbers lead to.
    pub on_alarm: OnAlarm,
}

/// Texts of one forward pass outside the updates.
const ROWS: usize = 16;
/// Pairs of answers to each unseen prompt.
const DRAWS: u64 = 3;
/// Two answers whose gold rewards are nearer are no comparison.
const MIN_MARGIN: f64 = 0.3;

impl RewardSession {
    /// Two answers of the writer to each unseen prompt, some times over, put in order by the gold reward.
    fn fresh(&self) -> &Option<Split> {
        self.fresh.get_or_init(|| {
            let exam = self.exam.as_ref().filter(|exam| exam.gold().is_some())?;
            let mut pairs = Vec::new();
            for draw in 0..DRAWS {
                let [first, second] = [2 * draw, 2 * draw + 1].map(|draw| exam.answers(&self.writer, draw));
                for ((prompt, a), (_, b)) in first.into_iter().zip(second) {
                    let margin = a.gold? - b.gold?;
                    if margin.abs() < MIN_MARGIN {
                        continue;
                    }
                    let (chosen, rejected) = if margin > 0.0 { (a, b) } else { (b, a) };
                    let (chosen, rejected) = (chosen.tokens, rejected.tokens);
                    pairs.push(EncodedPair { prompt: prompt.to_vec(), chosen, rejected });
                }
            }
            (!pairs.is_empty()).then_some(Split { pairs, margins: None })
        })
    }

    fn verdict(&self, split: &Split) -> Verdict {
        Verdict::of(&self.learner.model.scores(&split.texts(), ROWS))
    }
}

impl Session for RewardSession {
    type Findings = RewardFindings;
    const STEPS: &'static str = "pairs";

    fn update(&self) -> u64 {
        self.learner.update
    }

    fn step(&self) -> u64 {
        self.learner.step
    }

    fn advance(&mut self) -> Result<Advanced> {
        let at = self.data.order(self.step());
        let (pad, device) = (self.writer.config().pad, &self.learner.device.device);
        let batch = self.data.train.batch(&at, None, pad, device)?;
        let row = self.learner.learn(&batch, at.len() as u64)?;
        Ok(Advanced { row, alarms: vec![] })
    }

    fn evaluate(&self) -> Result<RewardFindings> {
        let held_out = self.data.eval.as_ref().map(|split| self.verdict(split));
        let unseen = self.fresh().as_ref().map(|split| self.verdict(split));
        Ok(RewardFindings { held_out, unseen })
    }

    fn save(&self, tensors: &mut Tensors) -> Result<Value> {
        Ok(serde_json::to_value(self.learner.save(tensors))?)
    }

    fn load(mut self, state: Value, tensors: &Tensors) -> Result<Self> {
        let state: LearnerState = serde_json::from_value(state)?;
        self.learner = self.learner.load(state, tensors)?;
        Ok(self)
    }

    fn on_alarm(&self) -> OnAlarm {
        self.on_alarm
    }

    /// Parameters and optimiser of the checkpoint; the pairs that it stumbled over stay behind.
    fn roll_back(mut self, state: Value, tensors: &Tensors) -> Result<(Self, String)> {
        let pairs = self.data.order(self.step()).len();
        self.learner = self.learner.past(pairs as u64, &serde_json::from_value(state)?, tensors)?;
        Ok((self, "without the pairs of that update".to_owned()))
    }

    fn headline(&self, row: &Row) -> Option<(&'static str, f64)> {
        row.get("rewards/accuracies").map(|accuracy| ("accuracy", accuracy))
    }

    /// The reward model as a folder, normalised on the writer's answers.
    fn finish(&self, folder: &RunFolder) -> Result<()> {
        let answers = self.normal.answers(&self.writer, 0);
        let texts: Vec<(&[u32], &[u32])> = answers.iter().map(|(x, y)| (*x, y.tokens.as_slice())).collect();
        let scores = self.learner.model.scores(&texts, ROWS);
        ensure!(
            scores.iter().any(|score| *score != scores[0]) && scores.iter().all(|score| score.is_finite()),
            "the reward model gives every answer the same score: it has learnt nothing; train longer"
        );
        let model = self.learner.model.clone().normalised_on(&scores);
        let path = folder.file("model");
        model.save(&path, FloatFormat::F32)?;
        copy_text_files(&self.origin, &path)?;
        let reading = serde_json::to_string(&self.reading)? + "\n";
        let file = path.join(Reading::FILE);
        std::fs::write(&file, reading).with_context(|| format!("cannot write `{}`", file.display()))?;
        let (mean, std) = model.normalisation();
        say!(
            "score 0 is now {mean:.3}, and 1 is {std:.3} more: mean and deviation over {} answers",
            scores.len()
        );
        Ok(())
    }
}

/// What a reward model has come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RewardFindings {
    /// On held-out pairs.
    pub held_out: Option<Verdict>,
    /// On fresh pairs of answers to unseen prompts.
    pub unseen: Option<Verdict>,
}

impl RewardFindings {
    fn first(&self) -> Option<&Verdict> {
        self.unseen.as_ref().or(self.held_out.as_ref())
    }
}

impl Report for RewardFindings {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        if let Some(verdict) = self.first() {
            f("eval/accuracy", verdict.accuracy);
            f("eval/ties", verdict.ties);
            f("eval/margin", verdict.margin);
            f("eval/calibration_error", expected_calibration_error(&verdict.curve));
        }
    }
}

impl Findings for RewardFindings {
    fn score(&self) -> Option<(&'static str, f64)> {
        self.first().map(|verdict| ("eval/accuracy", verdict.accuracy))
    }

    fn brief(&self) -> String {
        let line = |what: &str, verdict: &Verdict| {
            let Verdict { pairs, accuracy, ties, margin, curve } = verdict;
            let (error, miss) =
                ((accuracy * (1.0 - accuracy) / *pairs as f64).sqrt(), expected_calibration_error(curve));
            format!(
                "{pairs} {what}: accuracy {accuracy:.3} ± {error:.3}, ties {ties:.3}, margin {margin:.3}, \
                 calibration error {miss:.3}"
            )
        };
        let held_out = self.held_out.as_ref().map(|verdict| line("held-out pairs", verdict));
        let unseen = self.unseen.as_ref().map(|verdict| line("pairs of answers to unseen prompts", verdict));
        let lines: Vec<String> = held_out.into_iter().chain(unseen).collect();
        match lines.is_empty() {
            true => "nothing is held out: name `data.eval`, or `data.prompts` and `data.gold`".to_owned(),
            false => lines.join("\n"),
        }
    }
}

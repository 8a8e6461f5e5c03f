//! A DPO run: pairs, a frozen reference whose log-probs are kept on disk, and unseen prompts answered before and after.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result};
use rl_algos::update::numbers;
use rl_algos::{Dpo, OnAlarm, Origin, ReferenceCache, ReferenceLogProbs, Report};
use rl_core::preference::implicit_reward;
use rl_models::Policy;
use rl_models::lm::{FloatFormat, Transformer};
use serde::Serialize;
use serde_json::Value;

use super::data::{PairData, Split};
use super::exam::{Answer, Exam, Grades, LastSitting, Sitting};
use super::folder::copy_text_files;
use crate::drive::{Advanced, Findings, Session};
use crate::learner::{Learner, LearnerState, Tensors};
use crate::metrics::Row;
use crate::run_folder::RunFolder;
use crate::score::Verdict;

/// A run and how far it is.
pub struct DpoSession {
    /// The policy and what teaches it.
    pub learner: Learner<Transformer, Dpo>,
    /// π_ref: the model that the run started from.
    pub reference: Transformer,
    /// The pairs.
    pub data: PairData,
    /// Unseen prompts, where the run has some.
    pub exam: Option<Exam>,
    /// β.
    pub beta: f64,
    /// Where the reference's log-probs are kept.
    pub cache: PathBuf,
    /// The folder that the model came from.
    pub origin: PathBuf,
    /// Of the pairs to learn from, once the run has started.
    pub seen: Option<ReferenceLogProbs>,
    /// How the reference answers.
    pub before: OnceCell<Option<Sitting>>,
    /// How the policy answered last.
    pub last: LastSitting,
    /// What bad numbers lead to.
    pub on_alarm: OnAlarm,
}

/// Pairs of one forward pass outside the updates.
const PAIRS: usize = 8;
/// Prompts of the table of samples.
const SAMPLES: usize = 20;

impl DpoSession {
    fn before(&self) -> &Option<Sitting> {
        self.before.get_or_init(|| self.sit(&self.reference))
    }

    fn after(&self) -> Option<Rc<Sitting>> {
        self.last.after(self.update(), || self.sit(&self.learner.model))
    }

    fn sit(&self, model: &Transformer) -> Option<Sitting> {
        let exam = self.exam.as_ref()?;
        Some(exam.sit(model, |tokens| model.policy(tokens), |tokens| self.reference.policy(tokens), 0))
    }

    /// Implicit rewards of held-out pairs, chosen and rejected in turn.
    fn rewards(&self, split: &Split) -> Result<Vec<f64>> {
        let (pad, device) = (self.reference.config().pad, &self.learner.device.device);
        let numbered: Vec<usize> = (0..split.pairs.len()).collect();
        let mut rewards = Vec::with_capacity(2 * numbered.len());
        for at in numbered.chunks(PAIRS) {
            let batch = split.batch(at, None, pad, device)?;
            let policy = batch.log_probs(&self.learner.model.policy(&batch.tokens));
            let reference = batch.log_probs(&self.reference.policy(&batch.tokens));
            let of = |policy, reference| numbers(&implicit_reward(policy, reference, self.beta));
            let (chosen, rejected) =
                (of(policy.chosen, reference.chosen), of(policy.rejected, reference.rejected));
            rewards.extend(chosen.iter().zip(&rejected).flat_map(|(w, l)| [f64::from(*w), f64::from(*l)]));
        }
        Ok(rewards)
    }
}

impl Session for DpoSession {
    type Findings = DpoFindings;
    const STEPS: &'static str = "pairs";

    fn update(&self) -> u64 {
        self.learner.update
    }

    fn step(&self) -> u64 {
        self.learner.step
    }

    fn start(&mut self) -> Result<()> {
        let config = self.reference.config();
        let cache = ReferenceCache {
            folder: &self.cache,
            model: &self.reference,
            shape: &config.to_json(),
            pad: config.pad,
            batch: PAIRS,
        };
        let pairs = self.data.train.borrowed();
        let (seen, origin) = cache.log_probs(&pairs, &self.learner.device.device)?;
        match origin {
            Origin::Read(path) => say!("reference log-probs: read from `{}`", path.display()),
            Origin::Computed(path) => say!("reference log-probs: computed, kept in `{}`", path.display()),
            Origin::Rebuilt(path, why) => {
                say!("reference log-probs: {why}; computed again, kept in `{}`", path.display());
            }
        }
        self.seen = Some(seen);
        if let Some((_, grades)) = self.before() {
            say!("before: {}", grades.line());
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Advanced> {
        let seen = self.seen.as_ref().context("a run starts before it advances")?;
        let at = self.data.order(self.step());
        let (pad, device) = (self.reference.config().pad, &self.learner.device.device);
        let batch = self.data.train.batch(&at, Some(seen), pad, device)?;
        let row = self.learner.learn(&batch, at.len() as u64)?;
        Ok(Advanced { row, alarms: vec![] })
    }

    fn evaluate(&self) -> Result<DpoFindings> {
        let pairs = match &self.data.eval {
            Some(split) => Some(Verdict::of(&self.rewards(split)?)),
            None => None,
        };
        let before = self.before().as_ref().map(|(_, grades)| *grades);
        let after = self.after().map(|sitting| sitting.1);
        Ok(DpoFindings { pairs, before, after })
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
        row.get("rewards/margins").map(|margin| ("margin", margin))
    }

    /// The policy as a folder, and a table of samples.
    fn finish(&self, folder: &RunFolder) -> Result<()> {
        let model = folder.file("model");
        self.learner.model.save(&model, FloatFormat::F32)?;
        copy_text_files(&self.origin, &model)?;
        if let (Some((before, _)), Some(after)) = (self.before(), self.after()) {
            folder.write("samples.jsonl", &table(before, &after.0))?;
        }
        Ok(())
    }
}

/// A line of JSON per prompt: what was answered before and after.
pub fn table(before: &[Answer], after: &[Answer]) -> String {
    let lines = before.iter().zip(after).take(SAMPLES).map(|(old, new)| {
        let line = serde_json::json!({
            "prompt": old.prompt, "before": old.answer, "after": new.answer,
            "gold_before": old.gold, "gold_after": new.gold,
        });
        line.to_string() + "\n"
    });
    lines.collect()
}

/// What a DPO run has come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DpoFindings {
    /// On held-out pairs.
    pub pairs: Option<Verdict>,
    /// How the reference answers unseen prompts.
    pub before: Option<Grades>,
    /// How the policy answers them.
    pub after: Option<Grades>,
}

impl Report for DpoFindings {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        if let Some(pairs) = &self.pairs {
            f("eval/accuracy", pairs.accuracy);
            f("eval/ties", pairs.ties);
        }
        if let Some(after) = &self.after {
            after.each(f);
        }
    }
}

impl Findings for DpoFindings {
    fn score(&self) -> Option<(&'static str, f64)> {
        let gold = self.after.and_then(|grades| grades.gold).map(|gold| ("eval/gold", gold));
        gold.or(self.pairs.as_ref().map(|pairs| ("eval/accuracy", pairs.accuracy)))
    }

    fn brief(&self) -> String {
        let mut lines = vec![];
        if let Some(Verdict { pairs, accuracy, ties, margin, .. }) = &self.pairs {
            lines.push(format!(
                "{pairs} held-out pairs: accuracy {accuracy:.3}, ties {ties:.3}, margin {margin:.3}"
            ));
        }
        for (when, grades) in [("before", &self.before), ("after", &self.after)] {
            lines.extend(grades.iter().map(|grades| format!("{when:<6} {}", grades.line())));
        }
        if lines.is_empty() {
            lines.push("nothing is held out: name `data.eval` or `data.prompts`".to_owned());
        }
        lines.join("\n")
    }
}

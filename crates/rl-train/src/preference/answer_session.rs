//! An RLHF run on a language model of a folder: answers to prompts of the data, a judge, guards, and unseen prompts
//! answered before and after.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use burn::module::Module;
use rl_algos::collect_lm::LmCollectorState;
use rl_algos::guard::self_check::{Start, self_check};
use rl_algos::guard::{Guards, OnAlarm, Vitals};
use rl_algos::{GuardConfig, LmCollector, Persist, Report, Responses, Update};
use rl_core::dist::Categorical;
use rl_models::lm::{FloatFormat, Transformer};
use rl_models::{Policy, Response, Sampler, Tempered, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::Gold;
use super::dpo_session::table;
use super::exam::{Exam, Grades, LastSitting, Sitting};
use super::folder::copy_text_files;
use super::judge::AnswerJudge;
use crate::drive::{Advanced, Findings, Session};
use crate::learner::{Learner, LearnerState, Tensors};
use crate::metrics::Row;
use crate::pairs::Encoder;
use crate::run_folder::RunFolder;

/// What such a run is made of, before its first update.
pub struct AnswerParts<M, U> {
    /// The policy, with or without a critic, and what teaches it.
    pub learner: Learner<M, U>,
    /// The policy's laws.
    pub laws: fn(&M, &Tokens) -> Categorical,
    /// The language model in it.
    pub writer: fn(&M) -> &Transformer,
    /// π_ref, at the run's temperature.
    pub reference: Tempered<Transformer>,
    /// What samples.
    pub collector: LmCollector,
    /// What is maximised.
    pub judge: AnswerJudge,
    /// What is meant.
    pub gold: Option<Gold>,
    /// Between text and tokens.
    pub encoder: Encoder,
    /// Unseen prompts, where the run has some.
    pub exam: Option<Exam>,
    /// The folder that the model came from.
    pub origin: PathBuf,
}

/// A run and how far it is.
pub struct AnswerSession<M, U> {
    parts: AnswerParts<M, U>,
    guards: Guards,
    before: OnceCell<Option<Sitting>>,
    last: LastSitting,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    learner: LearnerState,
    collector: LmCollectorState,
    guards: Guards,
}

impl<M, U> AnswerSession<M, U>
where
    M: Sampler + Module,
    U: Update<M, Data = Responses> + Persist,
{
    /// A run before its first update. Samples the reference once, so that the guards know what is normal.
    pub fn new(mut parts: AnswerParts<M, U>, guards: GuardConfig) -> Self {
        let (responses, gold) = Self::sample(&mut parts);
        let reference = Vitals::of(&responses, gold.as_deref());
        Self {
            parts,
            guards: Guards::new(guards, reference),
            before: OnceCell::new(),
            last: LastSitting::default(),
        }
    }

    fn sample(parts: &mut AnswerParts<M, U>) -> (Responses, Option<Vec<f64>>) {
        let AnswerParts { learner, laws, reference, collector, judge, gold, encoder, .. } = parts;
        let responses = collector.collect(
            &learner.model,
            *laws,
            |tokens| Policy::policy(reference, tokens),
            |prompts, written| judge.scores(prompts, written, encoder),
            &mut learner.rng,
        );
        let text = |y: &Response| encoder.decode(&y.tokens);
        let gold = gold.map(|gold| responses.written.iter().map(|y| gold.of(&text(y))).collect());
        (responses, gold)
    }

    fn beta(&self) -> f64 {
        self.parts.collector.state().controller.beta()
    }

    fn before(&self) -> &Option<Sitting> {
        self.before.get_or_init(|| {
            let (exam, reference) = (self.parts.exam.as_ref()?, &self.parts.reference.model);
            let law = |tokens: &Tokens| Policy::policy(reference, tokens);
            Some(exam.sit(reference, law, law, 0))
        })
    }

    fn after(&self) -> Option<Rc<Sitting>> {
        self.last.after(self.update(), || {
            let (exam, reference) = (self.parts.exam.as_ref()?, &self.parts.reference.model);
            let policy = (self.parts.writer)(&self.parts.learner.model);
            Some(exam.sit(policy, |tokens| policy.policy(tokens), |tokens| reference.policy(tokens), 0))
        })
    }
}

impl<M, U> Session for AnswerSession<M, U>
where
    M: Sampler + Module,
    U: Update<M, Data = Responses> + Persist,
{
    type Findings = AnswerFindings;
    const STEPS: &'static str = "responses";

    fn update(&self) -> u64 {
        self.parts.learner.update
    }

    fn step(&self) -> u64 {
        self.parts.learner.step
    }

    /// The startup self-check, on responses of a run that does not move by it.
    fn start(&mut self) -> Result<()> {
        let start = if self.update() == 0 { Start::AtReference } else { Start::Elsewhere };
        let (rng, state) = (self.parts.learner.rng.clone(), self.parts.collector.state().clone());
        let (responses, _) = Self::sample(&mut self.parts);
        self.parts.learner.rng = rng;
        self.parts.collector.set_state(state);
        let AnswerParts { learner, laws, reference, judge, encoder, .. } = &self.parts;
        let prompts = judge.prompts_of(&responses);
        let found = self_check(
            &responses,
            |tokens| laws(&learner.model, tokens),
            |tokens| Policy::policy(reference, tokens),
            |written| {
                let asked: Vec<&[u32]> = written.iter().map(|y| prompts.of(y)).collect();
                judge.scores(&asked, written, encoder)
            },
            start,
        );
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        ensure!(found.is_empty(), "{}", texts.join("\n"));
        if let Some((_, grades)) = self.before() {
            say!("before: {}", grades.line());
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Advanced> {
        let (responses, gold) = Self::sample(&mut self.parts);
        let vitals = Vitals::of(&responses, gold.as_deref());
        responses.require_finite(self.update() + 1)?;
        let mut row = self.parts.learner.learn(&responses, responses.rows() as u64)?;
        self.parts.collector.move_beta(vitals.kl);
        let mut f = |name, value| row.push(name, value);
        vitals.each(&mut f);
        f("objective/ref_coef", responses.price.beta);
        f("objective/non_score_reward", -responses.price.beta * vitals.kl);
        f("objective/rlhf_reward", vitals.score - responses.price.beta * vitals.kl);
        let alarms = self.guards.watch(self.update(), &vitals);
        row.push("guards/alarms", alarms.len() as f64);
        Ok(Advanced { row, alarms })
    }

    fn evaluate(&self) -> Result<AnswerFindings> {
        let before = self.before().as_ref().map(|(_, grades)| *grades);
        Ok(AnswerFindings { beta: self.beta(), before, after: self.after().map(|sitting| sitting.1) })
    }

    fn save(&self, tensors: &mut Tensors) -> Result<Value> {
        let learner = self.parts.learner.save(tensors);
        let collector = self.parts.collector.state().clone();
        let saved = Saved { learner, collector, guards: self.guards.clone() };
        serde_json::to_value(saved).context("the run's state does not become JSON")
    }

    fn load(mut self, state: Value, tensors: &Tensors) -> Result<Self> {
        let Saved { learner, collector, guards } = serde_json::from_value(state)?;
        self.parts.learner = self.parts.learner.load(learner, tensors)?;
        self.parts.collector.set_state(collector);
        self.guards = guards;
        Ok(self)
    }

    fn headline(&self, row: &Row) -> Option<(&'static str, f64)> {
        row.get("objective/scores").map(|score| ("score", score))
    }

    fn on_alarm(&self) -> OnAlarm {
        self.guards.config().on_alarm
    }

    fn healthy(&self) -> bool {
        self.guards.healthy()
    }

    fn roll_back(mut self, state: Value, tensors: &Tensors) -> Result<(Self, String)> {
        let Saved { learner, .. } = serde_json::from_value(state)?;
        self.parts.learner = self.parts.learner.load_weights(&learner, tensors)?;
        self.parts.collector.raise_beta(self.guards.config().raise_beta);
        self.guards.reset();
        let done = format!("with β = {:.4}", self.beta());
        Ok((self, done))
    }

    /// The policy as a folder, and a table of samples.
    fn finish(&self, folder: &RunFolder) -> Result<()> {
        let model = folder.file("model");
        (self.parts.writer)(&self.parts.learner.model).save(&model, FloatFormat::F32)?;
        copy_text_files(&self.parts.origin, &model)?;
        if let (Some((before, _)), Some(after)) = (self.before(), self.after()) {
            folder.write("samples.jsonl", &table(before, &after.0))?;
        }
        Ok(())
    }
}

/// What such a run has come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerFindings {
    /// The controller's coefficient.
    pub beta: f64,
    /// How the reference answers unseen prompts.
    pub before: Option<Grades>,
    /// How the policy answers them.
    pub after: Option<Grades>,
}

impl Report for AnswerFindings {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        if let Some(after) = &self.after {
            after.each(f);
        }
    }
}

impl Findings for AnswerFindings {
    fn score(&self) -> Option<(&'static str, f64)> {
        self.after.and_then(|grades| grades.gold).map(|gold| ("eval/gold", gold))
    }

    fn brief(&self) -> String {
        let mut lines = vec![format!("β {:.4}", self.beta)];
        for (when, grades) in [("before", &self.before), ("after", &self.after)] {
            lines.extend(grades.iter().map(|grades| format!("{when:<6} {}", grades.line())));
        }
        lines.join("\n")
    }
}

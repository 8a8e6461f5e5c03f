//! Unseen prompts, answered by a policy and by the model it started from: what a loss on given answers cannot show.

use std::cell::RefCell;
use std::rc::Rc;

use burn::tensor::Device;
use rl_algos::guard::{distinct, repetition};
use rl_algos::{Report, likelihoods};
use rl_core::dist::Categorical;
use rl_envs::env_rng;
use rl_models::{Response, ResponseEnd, Sampler, Sampling, Tokens};
use serde::Serialize;

use super::config::Gold;
use crate::pairs::Encoder;

/// Answers that are read in one forward pass.
const ROWS: usize = 32;
/// Answers that are written side by side: a step of a small model costs little more for many rows than for few.
const WRITERS: usize = 100;

/// Prompts, and what judges their answers.
#[derive(Debug, Clone)]
pub struct Exam {
    prompts: Vec<(String, Vec<u32>)>,
    encoder: Encoder,
    gold: Option<Gold>,
    sampling: Sampling,
    pad: u32,
    seed: u64,
    device: Device,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The prompt.
    pub prompt: String,
    /// What was written.
    pub answer: String,
    /// The gold reward, where something judges.
    pub gold: Option<f64>,
    /// Its tokens.
    #[serde(skip)]
    pub tokens: Vec<u32>,
}

/// A sitting, kept until the model has moved on.
#[derive(Debug, Default)]
pub struct LastSitting(RefCell<Option<(u64, Rc<Sitting>)>>);

/// Answers and their grades.
pub type Sitting = (Vec<Answer>, Grades);

impl LastSitting {
    /// The sitting after `update`, held now if it has not been.
    pub fn after(&self, update: u64, sit: impl FnOnce() -> Option<Sitting>) -> Option<Rc<Sitting>> {
        let last =
            self.0.borrow().as_ref().filter(|(at, _)| *at == update).map(|(_, sitting)| sitting.clone());
        last.or_else(|| {
            let sitting = Rc::new(sit()?);
            *self.0.borrow_mut() = Some((update, sitting.clone()));
            Some(sitting)
        })
    }
}

/// What the answers of a policy are like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Grades {
    /// Answers.
    pub answers: usize,
    /// Mean gold reward.
    pub gold: Option<f64>,
    /// Its standard error.
    pub gold_error: Option<f64>,
    /// KL(π ‖ π_ref), nats per answer.
    pub kl: f64,
    /// The same per token.
    pub kl_per_token: f64,
    /// Mean entropy of the next token, nats.
    pub token_entropy: f64,
    /// Different token pairs among all.
    pub distinct_2: f64,
    /// Mean share of an answer's token pairs that it has had before.
    pub repetition: f64,
    /// Mean tokens of an answer.
    pub length: f64,
    /// Share of answers that were cut.
    pub cut: f64,
}

impl Exam {
    /// Prompts, as text and as tokens, each answered from a stream of `seed` of its own until one of `stop`.
    pub fn new(
        prompts: Vec<(String, Vec<u32>)>,
        encoder: &Encoder,
        gold: Option<Gold>,
        stop: &[u32],
        seed: u64,
        device: &Device,
    ) -> Self {
        let max_tokens = encoder.limits().answer;
        let sampling = Sampling { temperature: 1.0, max_tokens, stop: stop.to_vec() };
        let (encoder, device) = (encoder.clone(), device.clone());
        Self { prompts, encoder, gold, sampling, pad: filler(stop), seed, device }
    }

    /// Whether something judges.
    pub fn gold(&self) -> Option<Gold> {
        self.gold
    }

    /// The answers to every prompt from stream `draw` of the seed, as `model` writes them, and its grades against a
    /// reference.
    pub fn sit<M: Sampler>(
        &self,
        model: &M,
        laws: impl Fn(&Tokens) -> Categorical,
        reference: impl Fn(&Tokens) -> Categorical,
        draw: u64,
    ) -> (Vec<Answer>, Grades) {
        let written = self.write(model, draw);
        let (mut kl, mut entropy) = (0.0, 0.0);
        for (prompts, written) in self.prompts.chunks(ROWS).zip(written.chunks(ROWS)) {
            let pairs: Vec<(&[u32], &[u32])> =
                prompts.iter().zip(written).map(|((_, x), y)| (x.as_slice(), y.tokens.as_slice())).collect();
            let tokens = Tokens::new(&pairs, self.pad, &self.device);
            let lengths: Vec<usize> = written.iter().map(|y| y.tokens.len()).collect();
            let seen = likelihoods(&tokens, &laws(&tokens), &reference(&tokens), &lengths);
            kl += seen.kl.iter().sum::<f64>();
            entropy += seen.token_entropy * lengths.iter().sum::<usize>() as f64;
        }
        let cut = written.iter().filter(|y| y.end == ResponseEnd::Cut).count();
        let answers: Vec<Answer> =
            self.prompts.iter().zip(written).map(|((prompt, _), y)| self.judged(prompt, y)).collect();
        let grades = grade(&answers, kl, entropy, cut);
        (answers, grades)
    }

    /// The answers alone, each with its prompt.
    pub fn answers<M: Sampler>(&self, model: &M, draw: u64) -> Vec<(&[u32], Answer)> {
        let written = self.prompts.iter().zip(self.write(model, draw));
        written.map(|((text, tokens), y)| (tokens.as_slice(), self.judged(text, y))).collect()
    }

    fn judged(&self, prompt: &str, y: Response) -> Answer {
        let answer = self.encoder.decode(&y.tokens);
        let gold = self.gold.map(|gold| gold.of(&answer));
        Answer { prompt: prompt.to_owned(), answer, gold, tokens: y.tokens }
    }

    fn write<M: Sampler>(&self, model: &M, draw: u64) -> Vec<Response> {
        let mut written = Vec::with_capacity(self.prompts.len());
        for prompts in self.prompts.chunks(WRITERS) {
            let number = |i: usize| draw * self.prompts.len() as u64 + (written.len() + i) as u64;
            let mut rngs: Vec<_> = (0..prompts.len()).map(|i| env_rng(self.seed, number(i))).collect();
            let tokens: Vec<&[u32]> = prompts.iter().map(|(_, tokens)| tokens.as_slice()).collect();
            written.extend(model.respond(&tokens, &mut rngs, &self.sampling));
        }
        written
    }
}

/// A token that fills gaps and ends nothing: padding is masked, but an end must be told from it.
pub fn filler(stop: &[u32]) -> u32 {
    (0..).find(|token| !stop.contains(token)).expect("not every token ends a text")
}

fn grade(answers: &[Answer], kl: f64, entropy: f64, cut: usize) -> Grades {
    let n = answers.len() as f64;
    let tokens: usize = answers.iter().map(|y| y.tokens.len()).sum();
    let written: Vec<&[u32]> = answers.iter().map(|y| y.tokens.as_slice()).collect();
    let gold: Option<Vec<f64>> = answers.iter().map(|y| y.gold).collect();
    let mean = gold.as_ref().map(|gold| gold.iter().sum::<f64>() / n);
    let error = gold.zip(mean).map(|(gold, mean)| {
        let squares: f64 = gold.iter().map(|x| (x - mean).powi(2)).sum();
        (squares / (n - 1.0).max(1.0) / n).sqrt()
    });
    Grades {
        answers: answers.len(),
        gold: mean,
        gold_error: error,
        kl: kl / n,
        kl_per_token: kl / tokens as f64,
        token_entropy: entropy / tokens as f64,
        distinct_2: distinct(&written, 2),
        repetition: repetition(&written, 2),
        length: tokens as f64 / n,
        cut: cut as f64 / n,
    }
}

impl Report for Grades {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        if let Some(gold) = self.gold {
            f("eval/gold", gold);
        }
        f("eval/kl", self.kl);
        f("eval/kl_per_token", self.kl_per_token);
        f("eval/token_entropy", self.token_entropy);
        f("eval/distinct_2", self.distinct_2);
        f("eval/repetition", self.repetition);
        f("eval/length", self.length);
    }
}

impl Grades {
    /// A line: gold, KL, entropy, variety.
    pub fn line(&self) -> String {
        let gold = match (self.gold, self.gold_error) {
            (Some(gold), Some(error)) => format!("gold {gold:.3} ± {error:.3}, "),
            _ => String::new(),
        };
        let Self { kl, kl_per_token, token_entropy, distinct_2, .. } = self;
        format!(
            "{gold}KL {kl:.2} nats ({kl_per_token:.3} per token), entropy {token_entropy:.2}, distinct-2 {distinct_2:.3}"
        )
    }
}

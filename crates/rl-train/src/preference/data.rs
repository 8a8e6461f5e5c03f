//! The pairs of a run as tokens: every split is read, checked and cut into tokens before the first step.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use rand::seq::SliceRandom;
use rl_algos::{AlgoError, PairBatch, ReferenceLogProbs, TokenPair};
use rl_envs::env_rng;
use rl_envs::preference::{Dataset, Pair, Prompt};

use super::config::DataSection;
use crate::pairs::{EncodedPair, Encoder};
use crate::paths;

/// A split as tokens.
#[derive(Debug, Clone, Default)]
pub struct Split {
    /// Its pairs.
    pub pairs: Vec<EncodedPair>,
    /// Their margins, where every pair has one.
    pub margins: Option<Vec<f32>>,
}

/// Everything that a run reads.
#[derive(Debug, Clone)]
pub struct PairData {
    /// The pairs to learn from.
    pub train: Split,
    /// Held-out pairs.
    pub eval: Option<Split>,
    /// Prompts that no pair to learn from has, as text and as tokens.
    pub prompts: Vec<(String, Vec<u32>)>,
    /// Prompts of the pairs to learn from, each once; dialogues without their text.
    pub train_prompts: Vec<(String, Vec<u32>)>,
    seed: u64,
    batch: usize,
}

impl PairData {
    /// Reads all that `section` names.
    ///
    /// # Errors
    /// The first row, file or text that cannot be used; nothing has been trained then.
    pub fn load(section: &DataSection, encoder: &Encoder, seed: u64) -> Result<Self> {
        let train = section.read("data.train", &section.train)?;
        let eval = section.eval.as_deref().map(|path| section.read("data.eval", path)).transpose()?;
        for (key, data) in [("data.train", Some(&train)), ("data.eval", eval.as_ref())] {
            let Some(data) = data else { continue };
            ensure!(
                !data.pairs.is_empty(),
                "`{key}` has no pairs, but {} single judgements; pairs have `chosen` and `rejected`",
                data.judged.len()
            );
            if data.skipped.count > 0 {
                say!("{key}: {} bad rows skipped; see `rl-train data check`", data.skipped.count);
            }
        }
        let known: HashSet<&str> = train.pairs.iter().filter_map(plain).collect();
        let prompts = match &section.prompts {
            None => vec![],
            Some(text) => unseen(text, &known)?
                .into_iter()
                .map(|text| Ok((text.clone(), encoder.prompt(&Prompt::Text(text))?)))
                .collect::<Result<_>>()?,
        };
        let mut seen = HashSet::new();
        let mut train_prompts = Vec::new();
        for pair in train.pairs.iter().filter(|pair| seen.insert(&pair.prompt)) {
            train_prompts.push((plain(pair).unwrap_or_default().to_owned(), encoder.prompt(&pair.prompt)?));
        }
        let eval = eval.map(|data| encoded(&data, encoder).context("data.eval")).transpose()?;
        let train = encoded(&train, encoder).context("data.train")?;
        Ok(Self { train, eval, prompts, train_prompts, seed, batch: section.batch })
    }

    /// The numbers of the pairs of the update after `step` pairs: every epoch has an order of its own.
    pub fn order(&self, step: u64) -> Vec<usize> {
        let n = self.train.pairs.len() as u64;
        let epoch = |number: u64| {
            let mut order: Vec<usize> = (0..n as usize).collect();
            order.shuffle(&mut env_rng(self.seed, number));
            order
        };
        let (mut number, mut order) = (step / n, epoch(step / n));
        let mut chosen = Vec::with_capacity(self.batch);
        for at in step..step + self.batch as u64 {
            if at / n != number {
                (number, order) = (at / n, epoch(at / n));
            }
            chosen.push(order[(at % n) as usize]);
        }
        chosen
    }
}

impl Split {
    /// The pairs at `at` as one batch, with margins and with what the reference said, where it was asked.
    ///
    /// # Errors
    /// If an answer is empty.
    pub fn batch(
        &self,
        at: &[usize],
        reference: Option<&ReferenceLogProbs>,
        pad: u32,
        device: &Device,
    ) -> Result<PairBatch, AlgoError> {
        let some = |numbers: &[f32]| at.iter().map(|&i| numbers[i]).collect::<Vec<_>>();
        let pairs: Vec<TokenPair> = at.iter().map(|&i| borrowed(&self.pairs[i])).collect();
        let mut batch = PairBatch::new(&pairs, pad, device)?;
        if let Some(reference) = reference {
            batch = batch.with_reference_log_probs(&some(&reference.chosen), &some(&reference.rejected));
        }
        Ok(match &self.margins {
            Some(margins) => batch.with_margin(&some(margins)),
            None => batch,
        })
    }

    /// All pairs, borrowed.
    pub fn borrowed(&self) -> Vec<TokenPair<'_>> {
        self.pairs.iter().map(borrowed).collect()
    }

    /// Prompts with chosen and rejected answers in turn.
    pub fn texts(&self) -> Vec<(&[u32], &[u32])> {
        let mut texts: Vec<(&[u32], &[u32])> = Vec::with_capacity(2 * self.pairs.len());
        for pair in &self.pairs {
            texts.push((&pair.prompt, &pair.chosen));
            texts.push((&pair.prompt, &pair.rejected));
        }
        texts
    }
}

fn borrowed(pair: &EncodedPair) -> TokenPair<'_> {
    TokenPair { prompt: &pair.prompt, chosen: &pair.chosen, rejected: &pair.rejected }
}

fn plain(pair: &Pair) -> Option<&str> {
    match &pair.prompt {
        Prompt::Text(text) => Some(text),
        Prompt::Messages(_) => None,
    }
}

/// The lines of a file of prompts that are not among `known`.
fn unseen(text: &str, known: &HashSet<&str>) -> Result<Vec<String>> {
    let path = paths::existing("data.prompts", text)?;
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !known.contains(line));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    ensure!(
        !lines.is_empty(),
        "`{}` has no prompt that `data.train` does not have; evaluation needs some",
        path.display()
    );
    Ok(lines)
}

fn encoded(data: &Dataset, encoder: &Encoder) -> Result<Split> {
    let numbered = data.pairs.iter().enumerate();
    let pairs = numbered.map(|(i, pair)| encoder.pair(pair).with_context(|| format!("pair {}", i + 1)));
    let pairs = pairs.collect::<Result<_>>()?;
    let margins = data.pairs.iter().map(|pair| pair.margin.map(|margin| margin as f32)).collect();
    Ok(Split { pairs, margins })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_every_pair_once_in_an_order_of_its_own() {
        let pair = EncodedPair { prompt: vec![1], chosen: vec![2], rejected: vec![3] };
        let data = PairData {
            train: Split { pairs: vec![pair; 10], margins: None },
            eval: None,
            prompts: vec![],
            train_prompts: vec![],
            seed: 7,
            batch: 4,
        };
        let all: Vec<usize> = (0..5).flat_map(|update| data.order(4 * update)).collect();
        let (first, second) = all.split_at(10);
        assert_ne!(first, second);
        for epoch in [first, second] {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert_eq!(data.order(8), all[8..12], "the order depends on the step alone");
    }
}

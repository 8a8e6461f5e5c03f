//! What an RLHF run on texts is trained to please: the gold reward itself, or a reward model.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use rl_algos::Responses;
use rl_models::Response;
use rl_models::lm::{RewardModel, Transformer};

use super::config::{Gold, RewardSection};
use crate::pairs::Encoder;
use crate::paths;

/// Texts of one forward pass of a reward model.
const ROWS: usize = 16;

/// A judge of answers.
pub enum AnswerJudge {
    /// By a rule on the text.
    Gold(Gold),
    /// A reward model of the policy's own vocabulary.
    Model(Box<RewardModel>),
}

impl AnswerJudge {
    /// The judge that `section` names, for answers of `policy`, whose folder is `origin`.
    ///
    /// # Errors
    /// If a folder holds no reward model, or one that reads other tokens than the policy writes.
    pub fn new(
        section: &RewardSection,
        policy: &Transformer,
        origin: &Path,
        device: &Device,
    ) -> Result<Self> {
        let RewardSection::Model { folder } = section else { return Ok(Self::Gold(Gold::Vader)) };
        let folder = paths::existing("data.reward.folder", folder)?;
        let in_folder = || {
            let folder = folder.display();
            format!(
                "no reward model in `{folder}`; `rl-train train rm-stories` writes one into its run's `model`"
            )
        };
        let model = RewardModel::load(&folder, device).with_context(in_folder)?;
        let tokenizer = |folder: &Path| std::fs::read(folder.join("tokenizer.json")).ok();
        ensure!(
            tokenizer(&folder) == tokenizer(origin)
                && model.trunk.config().vocabulary == policy.config().vocabulary,
            "the reward model in `{}` has another tokenizer.json than the policy in `{}`: it would read other tokens",
            folder.display(),
            origin.display()
        );
        Ok(Self::Model(Box::new(model)))
    }

    /// The score of each response to its prompt.
    pub fn scores(&self, prompts: &[&[u32]], written: &[Response], encoder: &Encoder) -> Vec<f64> {
        match self {
            Self::Gold(gold) => written.iter().map(|y| gold.of(&encoder.decode(&y.tokens))).collect(),
            Self::Model(model) => {
                let texts: Vec<(&[u32], &[u32])> =
                    prompts.iter().copied().zip(written.iter().map(|y| y.tokens.as_slice())).collect();
                model.scores(&texts, ROWS)
            }
        }
    }

    /// The prompt of every response of a rollout.
    pub fn prompts_of(&self, responses: &Responses) -> PromptOf {
        let columns = responses.tokens.prompt;
        let numbers = |data: burn::tensor::TensorData| -> Vec<i64> {
            data.try_into_vec_as().expect("tokens are whole")
        };
        let ids = numbers(responses.tokens.ids.clone().narrow(1, 0, columns).into_data());
        let real: Vec<bool> = responses
            .tokens
            .real
            .clone()
            .narrow(1, 0, columns)
            .into_data()
            .try_into_vec_as()
            .expect("a mask is of truths");
        let rows = ids.chunks(columns.max(1)).zip(real.chunks(columns.max(1)));
        let prompts = rows.map(|(ids, real)| {
            ids.iter().zip(real).filter(|(_, real)| **real).map(|(id, _)| *id as u32).collect::<Vec<u32>>()
        });
        let of = responses.written.iter().map(|y| y.tokens.clone()).zip(prompts).collect();
        PromptOf(of)
    }
}

/// From a response to its prompt.
pub struct PromptOf(HashMap<Vec<u32>, Vec<u32>>);

impl PromptOf {
    /// The prompt of `y`.
    ///
    /// # Panics
    /// If `y` is of another rollout.
    pub fn of(&self, y: &Response) -> &[u32] {
        self.0.get(&y.tokens).expect("a response of this rollout")
    }
}

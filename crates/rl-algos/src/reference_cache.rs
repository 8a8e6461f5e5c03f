//! What a frozen reference thinks of a dataset, computed once and kept on disk.
//!
//! A cache file is a [`Checkpoint`]: written beside its place and renamed, with a checksum over everything. Its name is
//! made of two digests, one of the reference (shape and every parameter), one of the data (every token), so that neither
//! another model nor another dataset nor another tokenisation ever reads it. A damaged file is never used: it is computed
//! again, and the caller is told.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::tensor::Device;
use rl_core::dist::Categorical;
use rl_models::flat_params::flatten;
use rl_models::{Policy, Tokens};
use sha2::{Digest, Sha256};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::error::AlgoError;
use crate::pairs::{PairBatch, TokenPair};
use crate::update::numbers;

/// `log π_ref` of both answers of every pair, nats.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceLogProbs {
    /// Of the chosen answers.
    pub chosen: Vec<f32>,
    /// Of the rejected answers.
    pub rejected: Vec<f32>,
}

/// Where they came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Read from this file.
    Read(PathBuf),
    /// Computed, and written to this file.
    Computed(PathBuf),
    /// The file was damaged in this way; computed again, and written anew.
    Rebuilt(PathBuf, String),
}

/// Why there are no reference log-probs.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A pair cannot be compared.
    #[error(transparent)]
    Pair(#[from] AlgoError),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] CheckpointError),
}

/// A frozen reference, and the folder that keeps what it said.
#[derive(Debug, Clone, Copy)]
pub struct ReferenceCache<'a, M> {
    /// Where files are kept.
    pub folder: &'a Path,
    /// π_ref.
    pub model: &'a M,
    /// What else tells this model from others with the same parameters, such as the text of its config.
    pub shape: &'a str,
    /// Fills gaps between texts of different lengths.
    pub pad: u32,
    /// Pairs of one forward pass.
    pub batch: usize,
}

impl<M> ReferenceCache<'_, M>
where
    M: Policy<Obs = Tokens, Dist = Categorical> + Module,
{
    /// `log π_ref` of `pairs`, from the file if there is a good one, else computed and kept.
    ///
    /// # Errors
    /// If an answer is empty, or the file cannot be written.
    pub fn log_probs(
        &self,
        pairs: &[TokenPair],
        device: &Device,
    ) -> Result<(ReferenceLogProbs, Origin), CacheError> {
        let (model, data) = (self.model_digest(), data_digest(pairs));
        let path = self.folder.join(format!("reference-{}-{}.safetensors", &model[..16], &data[..16]));
        let key = serde_json::json!({ "model": model, "data": data, "pairs": pairs.len() });
        let damage = match Checkpoint::load(&path) {
            Err(CheckpointError::Io { .. }) => None,
            Err(error) => Some(error.to_string()),
            Ok(file) => match kept(&file, &key, pairs.len()) {
                Some(log_probs) => return Ok((log_probs, Origin::Read(path))),
                None => Some(format!("`{}` holds what another model said, or of other data", path.display())),
            },
        };
        let log_probs = self.compute(pairs, device)?;
        let tensors = [("chosen", &log_probs.chosen), ("rejected", &log_probs.rejected)];
        let tensors = tensors.into_iter().map(|(name, numbers)| (name.to_owned(), numbers.clone())).collect();
        Checkpoint { state: key, tensors }.save(&path)?;
        let origin = match damage {
            None => Origin::Computed(path),
            Some(why) => Origin::Rebuilt(path, why),
        };
        Ok((log_probs, origin))
    }

    fn compute(&self, pairs: &[TokenPair], device: &Device) -> Result<ReferenceLogProbs, AlgoError> {
        let mut all = ReferenceLogProbs { chosen: vec![], rejected: vec![] };
        for some in pairs.chunks(self.batch.max(1)) {
            let batch = PairBatch::new(some, self.pad, device)?;
            let seen = batch.log_probs(&self.model.policy(&batch.tokens));
            all.chosen.extend(numbers(&seen.chosen));
            all.rejected.extend(numbers(&seen.rejected));
        }
        Ok(all)
    }

    fn model_digest(&self) -> String {
        let mut sha = Sha256::new();
        sha.update(self.shape);
        for x in numbers(&flatten(self.model)) {
            sha.update(x.to_le_bytes());
        }
        hex(sha)
    }
}

/// The log-probs of a whole file, if it is of this model and this data.
fn kept(file: &Checkpoint, key: &serde_json::Value, pairs: usize) -> Option<ReferenceLogProbs> {
    let side = |name: &str| file.tensors.get(name).filter(|numbers| numbers.len() == pairs).cloned();
    (file.state == *key).then_some(())?;
    Some(ReferenceLogProbs { chosen: side("chosen")?, rejected: side("rejected")? })
}

fn data_digest(pairs: &[TokenPair]) -> String {
    let mut sha = Sha256::new();
    for pair in pairs {
        for part in [pair.prompt, pair.chosen, pair.rejected] {
            sha.update((part.len() as u64).to_le_bytes());
            part.iter().for_each(|token| sha.update(token.to_le_bytes()));
        }
    }
    hex(sha)
}

fn hex(sha: Sha256) -> String {
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Reward models as folders: what transformers calls a model for sequence classification with one label.

use std::path::Path;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::files::{self, MOST_SETTINGS_BYTES};
use super::{FloatFormat, HfError, save, write};
use crate::lm::{RewardModel, Transformer};

/// Beside `config.json`: what is taken off a score, and its divisor. Without the file a score is the model's own.
const NORMALISATION: &str = "reward_model.json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Normalisation {
    mean: f64,
    std: f64,
}

impl RewardModel {
    /// The reward model in `folder`, with its normalisation.
    ///
    /// # Errors
    /// As [`Transformer::load_with_score`]; if it has more than one label, or its normalisation cannot be one.
    pub fn load(folder: &Path, device: &Device) -> Result<Self, HfError> {
        let (trunk, head) = Transformer::load_with_score(folder, device)?;
        if head.dims()[0] != 1 {
            let labels = head.dims()[0];
            return Err(HfError::tensor(
                "score.weight",
                format!("has {labels} labels; a reward model has one"),
            ));
        }
        let model = Self::from_parts(trunk, head);
        let path = folder.join(NORMALISATION);
        if !path.is_file() {
            return Ok(model);
        }
        let text = files::text(&path, MOST_SETTINGS_BYTES)?;
        let Normalisation { mean, std } = serde_json::from_str(&text).map_err(|e| HfError::file(&path, e))?;
        if !(mean.is_finite() && std > 0.0 && std.is_finite()) {
            return Err(HfError::file(&path, format!("mean {mean} and std {std} normalise nothing")));
        }
        Ok(model.with_normalisation(mean, std))
    }

    /// Writes the model and its normalisation into `folder`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn save(&self, folder: &Path, format: FloatFormat) -> Result<(), HfError> {
        let config = self.trunk.config().to_json();
        let config = config
            .replace("GPT2LMHeadModel", "GPT2ForSequenceClassification")
            .replace("ForCausalLM", "ForSequenceClassification")
            .replacen("{\n", "{\n  \"num_labels\": 1,\n", 1);
        let mut tensors = self.trunk.named_tensors();
        let head = self.head.val().into_data().try_into_vec_as().expect("floats convert to f32");
        tensors.insert("score.weight".to_owned(), (head, vec![1, self.trunk.config().hidden]));
        save(folder, &config, &tensors, format)?;
        let (mean, std) = self.normalisation();
        let text = serde_json::to_string(&Normalisation { mean, std }).expect("numbers become JSON") + "\n";
        write(&folder.join(NORMALISATION), text.as_bytes())
    }
}

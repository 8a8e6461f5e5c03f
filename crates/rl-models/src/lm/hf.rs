//! Hugging Face folders: `config.json` and `model.safetensors` (or its shards), in and out.

mod checksum;
mod error;
pub(crate) mod files;
mod names;
mod reward;
mod weights;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn::tensor::{Device, Tensor};
use safetensors::tensor::{Dtype, TensorView};

use super::config::LmConfig;
use super::transformer::Transformer;

pub use error::HfError;
pub use files::{MOST_SETTINGS_BYTES, MOST_TOKENIZER_BYTES};
pub(crate) use weights::Weights;

/// The number format of saved weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FloatFormat {
    /// 4 bytes; what was loaded is what is saved.
    #[default]
    F32,
    /// IEEE half precision.
    F16,
    /// Brain floating point: f32's range, 8 bits of precision.
    Bf16,
}

/// What a weight does that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NonFinite {
    /// It ends the load: nothing sensible can be computed from it.
    #[default]
    Refused,
    /// It stays: for those who look for what went wrong.
    Kept,
}

impl FloatFormat {
    fn dtype(self) -> Dtype {
        match self {
            FloatFormat::F32 => Dtype::F32,
            FloatFormat::F16 => Dtype::F16,
            FloatFormat::Bf16 => Dtype::BF16,
        }
    }

    fn bytes(self, numbers: &[f32]) -> Vec<u8> {
        match self {
            FloatFormat::F32 => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            FloatFormat::F16 => numbers.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect(),
            FloatFormat::Bf16 => {
                numbers.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect()
            }
        }
    }
}

impl Transformer {
    /// The model in `folder`.
    ///
    /// The files may come from anywhere: nothing is claimed beyond their own size, a shard outside the folder is
    /// refused, and so is a weight that is not finite. Files that [`Transformer::save`] wrote are checked against
    /// their SHA-256.
    ///
    /// # Errors
    /// Names the file, key or tensor that is missing, left over, damaged, of another shape, or not to be read.
    pub fn load(folder: &Path, device: &Device) -> Result<Self, HfError> {
        Self::load_with(folder, NonFinite::Refused, device)
    }

    /// [`Transformer::load`], with a say in what happens to weights that are NaN or infinite.
    ///
    /// # Errors
    /// As [`Transformer::load`].
    pub fn load_with(folder: &Path, non_finite: NonFinite, device: &Device) -> Result<Self, HfError> {
        let config = read_config(folder)?;
        let mut weights = Weights::read(folder, non_finite)?;
        let model = names::assemble(config, &mut weights, device)?;
        weights.require_empty()?;
        Ok(model)
    }

    /// The trunk in `folder` and the layer that scores sequences with it, `[labels, D]`: what transformers calls a model
    /// for sequence classification.
    ///
    /// # Errors
    /// As [`Transformer::load`].
    pub fn load_with_score(folder: &Path, device: &Device) -> Result<(Self, Tensor<2>), HfError> {
        let mut config = read_config(folder)?;
        let mut weights = Weights::read(folder, NonFinite::Refused)?;
        let labels = weights.rows("score.weight")?;
        let score = weights.matrix("score.weight", [labels, config.hidden], device)?;
        // Such a folder has no layer for tokens.
        config.tied |= !weights.has("lm_head.weight");
        let model = names::assemble(config, &mut weights, device)?;
        weights.require_empty()?;
        Ok((model, score))
    }

    /// Every parameter, row-major, with its shape, under the name its family's files give it.
    pub fn named_tensors(&self) -> BTreeMap<String, (Vec<f32>, Vec<usize>)> {
        names::disassemble(self)
    }

    /// Writes the model into `folder`, so that the transformers library reads it too.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn save(&self, folder: &Path, format: FloatFormat) -> Result<(), HfError> {
        save(folder, &self.config().to_json(), &self.named_tensors(), format)
    }
}

/// Writes a folder of `config` and `tensors`.
fn save(
    folder: &Path,
    config: &str,
    tensors: &BTreeMap<String, (Vec<f32>, Vec<usize>)>,
    format: FloatFormat,
) -> Result<(), HfError> {
    fs::create_dir_all(folder).map_err(|e| HfError::file(folder, e))?;
    let dtype = match format {
        FloatFormat::F32 => "float32",
        FloatFormat::F16 => "float16",
        FloatFormat::Bf16 => "bfloat16",
    };
    write(&folder.join("config.json"), config.replace("\"float32\"", &format!("\"{dtype}\"")).as_bytes())?;
    let bytes: BTreeMap<&String, (Vec<u8>, &Vec<usize>)> =
        tensors.iter().map(|(name, (numbers, shape))| (name, (format.bytes(numbers), shape))).collect();
    let views = bytes.iter().map(|(name, (bytes, shape))| {
        (
            name.as_str(),
            TensorView::new(format.dtype(), (*shape).clone(), bytes).expect("shapes are the numbers'"),
        )
    });
    let parts = bytes
        .iter()
        .map(|(name, (bytes, shape))| (name.as_str(), format.dtype(), shape.as_slice(), bytes.as_slice()));
    let metadata = checksum::metadata(parts);
    let file = safetensors::serialize(views, Some(metadata)).expect("names are unique");
    write(&folder.join("model.safetensors"), &checksum::in_order(file))
}

fn read_config(folder: &Path) -> Result<LmConfig, HfError> {
    let path = folder.join("config.json");
    LmConfig::parse(&files::text(&path, MOST_SETTINGS_BYTES)?)
}

/// Writes beside and renames, so that the place never holds half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<(), HfError> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path)).map_err(|e| {
        let _ = fs::remove_file(&partial);
        HfError::file(path, e)
    })
}

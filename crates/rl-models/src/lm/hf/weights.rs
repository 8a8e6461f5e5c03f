//! The tensors of a folder's safetensors files, by name.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use burn::tensor::{Device, Tensor, TensorData};
use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::{HfError, NonFinite, checksum, files};

/// Tensors not taken yet. Each was converted to `f32`.
pub(crate) struct Weights(BTreeMap<String, (Vec<f32>, Vec<usize>)>);

impl Weights {
    /// Every tensor of `model.safetensors`, or of the shards its index names.
    ///
    /// Memory stays within four times the size of the files.
    pub(crate) fn read(folder: &Path, non_finite: NonFinite) -> Result<Self, HfError> {
        let (single, index) = (folder.join("model.safetensors"), folder.join("model.safetensors.index.json"));
        let mut weights = Self(BTreeMap::new());
        if single.is_file() {
            weights.add(&single, non_finite)?;
        } else if index.is_file() {
            for shard in shards(&index)? {
                weights.add(&folder.join(shard), non_finite)?;
            }
        } else {
            return Err(HfError::file(&single, "there is no such file, and no index of shards beside it"));
        }
        Ok(weights)
    }

    fn add(&mut self, path: &Path, non_finite: NonFinite) -> Result<(), HfError> {
        let bytes = files::read(path, u64::MAX)?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| HfError::file(path, e))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| HfError::file(path, e))?;
        if !checksum::holds(header.metadata().as_ref(), &file) {
            return Err(HfError::file(path, "is damaged: its checksum does not match; copy it again"));
        }
        for (name, view) in file.tensors() {
            let numbers = decode(view.dtype(), view.data()).ok_or_else(|| {
                HfError::tensor(&name, format!("is {:?}; F32, F16 or BF16 are read", view.dtype()))
            })?;
            let bad = numbers.iter().find(|x| !x.is_finite()).filter(|_| non_finite == NonFinite::Refused);
            if let Some(bad) = bad {
                return Err(HfError::tensor(&name, format!("holds {bad}: the weights are broken")));
            }
            if self.0.insert(name.clone(), (numbers, view.shape().to_vec())).is_some() {
                return Err(HfError::tensor(&name, "is in two files"));
            }
        }
        Ok(())
    }

    /// Whether there is such a tensor left.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The first axis of a tensor.
    pub(crate) fn rows(&self, name: &str) -> Result<usize, HfError> {
        let (_, shape) = self.0.get(name).ok_or_else(|| HfError::tensor(name, "is missing"))?;
        shape.first().copied().ok_or_else(|| HfError::tensor(name, "is a single number"))
    }

    /// Takes numbers of exactly this shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, HfError> {
        let (numbers, found) = self.0.remove(name).ok_or_else(|| HfError::tensor(name, "is missing"))?;
        if found != shape {
            return Err(HfError::tensor(
                name,
                format!("has shape {found:?}; config.json makes it {shape:?}"),
            ));
        }
        Ok(numbers)
    }

    /// Takes a vector.
    pub(crate) fn vector(&mut self, name: &str, n: usize, device: &Device) -> Result<Tensor<1>, HfError> {
        Ok(Tensor::from_data(TensorData::new(self.take(name, &[n])?, [n]), device))
    }

    /// Takes a matrix.
    pub(crate) fn matrix(
        &mut self,
        name: &str,
        shape: [usize; 2],
        device: &Device,
    ) -> Result<Tensor<2>, HfError> {
        Ok(Tensor::from_data(TensorData::new(self.take(name, &shape)?, shape), device))
    }

    /// Forgets what `unwanted` says is of no use.
    pub(crate) fn forget(&mut self, unwanted: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| !unwanted(name));
    }

    /// Nothing may be left over: it would be silently ignored.
    pub(crate) fn require_empty(&self) -> Result<(), HfError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                let others = match self.0.len() - 1 {
                    0 => String::new(),
                    n => format!(", and {n} more are too"),
                };
                Err(HfError::tensor(
                    name,
                    format!("is in the file but not in the model of config.json{others}"),
                ))
            }
        }
    }
}

/// The shards that an index names, each a file of the folder itself.
fn shards(index: &Path) -> Result<Vec<String>, HfError> {
    let text = files::text(index, files::MOST_SETTINGS_BYTES)?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| HfError::file(index, e))?;
    let map = json["weight_map"].as_object().ok_or_else(|| HfError::file(index, "has no `weight_map`"))?;
    let mut shards = Vec::new();
    for (tensor, shard) in map {
        let shard =
            shard.as_str().ok_or_else(|| HfError::file(index, format!("`{tensor}` has no file name")))?;
        let inside = Path::new(shard).components().count() == 1
            && matches!(Path::new(shard).components().next(), Some(Component::Normal(_)));
        if !inside {
            return Err(HfError::file(index, format!("`{tensor}` points to `{shard}`, outside the folder")));
        }
        if !shards.iter().any(|known| known == shard) {
            shards.push(shard.to_owned());
        }
    }
    Ok(shards)
}

/// Little-endian floats as `f32`; `None` for other kinds.
fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    let pairs = || bytes.chunks_exact(2).map(|b| [b[0], b[1]]);
    match dtype {
        Dtype::F32 => {
            Some(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        }
        Dtype::F16 => Some(pairs().map(|b| f16::from_le_bytes(b).to_f32()).collect()),
        Dtype::BF16 => Some(pairs().map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        _ => None,
    }
}

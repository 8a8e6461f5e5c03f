//! A checkpoint: one file that holds everything a run needs to go on exactly.
//!
//! The file is a safetensors file (any tool reads the weights). Its metadata holds the state that
//! is not a tensor as JSON, the format version and a SHA-256 over state and tensors. It is written
//! beside its place, flushed, and renamed over it: at every moment the place holds a whole
//! checkpoint or none.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version this code writes.
pub const FORMAT: &str = "rl-checkpoint-1";

/// The metadata entry that holds the [`Header`] as JSON.
const HEADER: &str = "rl-checkpoint";

/// What a checkpoint file holds beside its tensors.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    /// Over the state and every tensor.
    sha256: String,
    /// JSON.
    state: String,
}

/// Named vectors and JSON state.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Everything that is not a tensor: generators, environments, controllers, counters.
    pub state: serde_json::Value,
    /// Flat `f32` vectors: parameters, moments.
    pub tensors: BTreeMap<String, Vec<f32>>,
}

/// Why a checkpoint could not be written or read. Every text names the file.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The operating system said no.
    #[error("cannot {what} checkpoint `{}`: {source}", path.display())]
    Io {
        /// Write, read, …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// The file is not whole.
    #[error("checkpoint `{}` is damaged ({what}); resume from an older one or start again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// The file is whole, but of another format.
    #[error("checkpoint `{}` has format `{found}`, but this version reads `{FORMAT}`; go on with the version that wrote it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
}

impl Checkpoint {
    /// Writes the checkpoint to `path`, atomically.
    ///
    /// # Errors
    /// [`CheckpointError::Io`]; what stood at `path` before is then still there.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let io = |what| move |source| CheckpointError::Io { what, path: path.to_owned(), source };
        let state = self.state.to_string();
        let bytes: BTreeMap<&str, Vec<u8>> = self
            .tensors
            .iter()
            .map(|(name, v)| (name.as_str(), v.iter().flat_map(|x| x.to_le_bytes()).collect()))
            .collect();
        let views = bytes.iter().map(|(name, b)| {
            let view =
                TensorView::new(Dtype::F32, vec![b.len() / 4], b).expect("the length is a multiple of 4");
            (*name, view)
        });
        let sha256 = digest(&state, bytes.iter().map(|(n, b)| (*n, b.as_slice())));
        let header = Header { format: FORMAT.to_owned(), sha256, state };
        // One entry: safetensors writes a map's entries in random order, and equal runs write equal files.
        let header = serde_json::to_string(&header).expect("strings become JSON");
        let metadata = HashMap::from([(HEADER.to_owned(), header)]);
        let file = safetensors::serialize(views, Some(metadata)).expect("names are unique");

        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io("create the folder of"))?;
        }
        let partial = path.with_extension("partial");
        let written = File::create(&partial).and_then(|mut f| {
            f.write_all(&file)?;
            f.sync_all()
        });
        written.and_then(|()| fs::rename(&partial, path)).map_err(|source| {
            let _ = fs::remove_file(&partial);
            io("write")(source)
        })
    }

    /// Reads and verifies the checkpoint at `path`.
    ///
    /// # Errors
    /// [`CheckpointError`] names the file and what is wrong; a damaged file is never half loaded.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { what: "read", path: path.to_owned(), source };
        Self::parse(&fs::read(path).map_err(io)?, path)
    }

    /// Verifies and reads the bytes of a checkpoint; errors call it `path`.
    ///
    /// # Errors
    /// As [`Checkpoint::load`].
    pub fn parse(file: &[u8], path: &Path) -> Result<Self, CheckpointError> {
        let damaged = |what: String| CheckpointError::Damaged { path: path.to_owned(), what };
        let (_, header) = SafeTensors::read_metadata(file).map_err(|e| damaged(e.to_string()))?;
        let metadata = header.metadata().as_ref().ok_or_else(|| damaged("no metadata".into()))?;
        let header = metadata.get(HEADER).ok_or_else(|| damaged(format!("no `{HEADER}` in its metadata")))?;
        let Header { format, sha256, state } =
            serde_json::from_str(header).map_err(|e| damaged(e.to_string()))?;
        if format != FORMAT {
            return Err(CheckpointError::Format { path: path.to_owned(), found: format });
        }
        let tensors = SafeTensors::deserialize(file).map_err(|e| damaged(e.to_string()))?;
        let mut views = tensors.tensors();
        views.sort_by(|a, b| a.0.cmp(&b.0));
        if sha256 != digest(&state, views.iter().map(|(n, v)| (n.as_str(), v.data()))) {
            return Err(damaged("its checksum does not match".into()));
        }
        let state = serde_json::from_str(&state).map_err(|e| damaged(e.to_string()))?;
        let floats = |view: &TensorView| {
            view.data()
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().expect("four bytes")))
                .collect()
        };
        Ok(Self { state, tensors: views.iter().map(|(n, v)| (n.clone(), floats(v))).collect() })
    }
}

/// SHA-256 over the state and every tensor's name and bytes, in order of name.
fn digest<'a>(state: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut sha = Sha256::new();
    sha.update(FORMAT);
    sha.update((state.len() as u64).to_le_bytes());
    sha.update(state);
    for (name, bytes) in tensors {
        sha.update((name.len() as u64).to_le_bytes());
        sha.update(name);
        sha.update((bytes.len() as u64).to_le_bytes());
        sha.update(bytes);
    }
    sha.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

//! The files of a stranger's folder: regular, of bounded size, and inside it.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::HfError;

/// The largest `config.json`, `tokenizer_config.json`, chat template or index of shards, in bytes.
pub const MOST_SETTINGS_BYTES: u64 = 1 << 24;

/// The largest `tokenizer.json`, in bytes.
pub const MOST_TOKENIZER_BYTES: u64 = 1 << 28;

/// The bytes of `path`, all or none.
///
/// Devices and pipes have no end, so only regular files are read. A link may lead to a file of the same folder, or to
/// `blobs/` of the hub cache whose `snapshots/` holds the folder; others could name any file of this machine.
///
/// # Errors
/// Names the file and what is wrong with it.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, HfError> {
    let wrong = |what: String| HfError::file(path, what);
    let at = fs::metadata(path).map_err(|e| wrong(e.to_string()))?;
    if !at.is_file() {
        return Err(wrong("is not a regular file".into()));
    }
    stays_inside(path)?;
    let too_large = |bytes: u64| wrong(format!("has {bytes} bytes; at most {most} are read"));
    if at.len() > most {
        return Err(too_large(at.len()));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(at.len() as usize).map_err(|e| wrong(e.to_string()))?;
    let file = fs::File::open(path).map_err(|e| wrong(e.to_string()))?;
    // It may have grown since.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| wrong(e.to_string()))?;
    if bytes.len() as u64 > most { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

/// [`read`] of a text.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, HfError> {
    String::from_utf8(read(path, most)?).map_err(|_| HfError::file(path, "is not UTF-8 text"))
}

fn stays_inside(path: &Path) -> Result<(), HfError> {
    let wrong = |what: String| HfError::file(path, what);
    if !fs::symlink_metadata(path).map_err(|e| wrong(e.to_string()))?.is_symlink() {
        return Ok(());
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|e| wrong(e.to_string()))?;
    let target = path.canonicalize().map_err(|e| wrong(e.to_string()))?;
    let snapshots = folder.parent().filter(|it| it.ends_with("snapshots"));
    let blobs = snapshots.and_then(Path::parent).map(|it| it.join("blobs"));
    if target.starts_with(&folder) || blobs.is_some_and(|it| target.starts_with(it)) {
        return Ok(());
    }
    Err(wrong(format!("is a link to `{}`, outside the folder; put the file itself there", target.display())))
}

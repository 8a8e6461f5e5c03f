//! A SHA-256 in the metadata of the weights that this crate writes, so that damage is found before it is run.

use std::collections::HashMap;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use sha2::{Digest, Sha256};

/// Its entry in the metadata. Files without one (of other programs) are read unchecked.
const ENTRY: &str = "rl-sha256";

/// The metadata of a file of these tensors, in order of name.
pub(super) fn metadata<'a>(
    tensors: impl Iterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>,
) -> HashMap<String, String> {
    HashMap::from([("format".into(), "pt".into()), (ENTRY.into(), digest(tensors))])
}

/// The bytes of a file in which `format` stands first, whatever order a hash map gave it: equal models are equal files.
pub(super) fn in_order(mut file: Vec<u8>) -> Vec<u8> {
    const FORMAT: &str = "\"format\":\"pt\"";
    let sha = format!("\"{ENTRY}\":\"");
    let start = 8 + "{\"__metadata__\":{".len();
    let swapped = file.get(start..).is_some_and(|it| it.starts_with(sha.as_bytes()));
    let end = start + sha.len() + 64 + 1; // 64 digits and a quote
    if swapped && file[end..].starts_with(format!(",{FORMAT}").as_bytes()) {
        let entry = String::from_utf8_lossy(&file[start..end]).into_owned();
        let ordered = format!("{FORMAT},{entry}");
        file[start..start + ordered.len()].copy_from_slice(ordered.as_bytes());
    }
    file
}

/// Whether the tensors of a file are those that were written; true where nobody wrote down which.
pub(super) fn holds(metadata: Option<&HashMap<String, String>>, file: &SafeTensors<'_>) -> bool {
    let Some(wanted) = metadata.and_then(|it| it.get(ENTRY)) else { return true };
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let parts = tensors.iter().map(|(name, view)| (name.as_str(), view.dtype(), view.shape(), view.data()));
    digest(parts) == *wanted
}

/// SHA-256 over every tensor's name, kind, shape and bytes.
fn digest<'a>(tensors: impl Iterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>) -> String {
    let mut sha = Sha256::new();
    for (name, kind, shape, bytes) in tensors {
        let head = format!("{}:{name}{kind:?}{shape:?}{}:", name.len(), bytes.len());
        sha.update(head);
        sha.update(bytes);
    }
    sha.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

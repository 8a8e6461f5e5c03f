//! A model's folder beside its weights: the files that say how text becomes tokens.

use std::path::Path;

use anyhow::{Context, Result};

const TEXT_FILES: [&str; 5] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "generation_config.json",
];

/// Copies them from one folder to another.
///
/// # Errors
/// If one cannot be copied.
pub fn copy_text_files(from: &Path, to: &Path) -> Result<()> {
    for name in TEXT_FILES {
        let file = from.join(name);
        if file.is_file() {
            // Not `fs::copy`: the copy of a read-only file could not be replaced.
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
            let copy = to.join(name);
            std::fs::write(&copy, bytes).with_context(|| format!("cannot write `{}`", copy.display()))?;
        }
    }
    Ok(())
}

//! What can be wrong with a model's folder.

use std::path::{Path, PathBuf};

/// A folder that is not a model this crate can run.
#[derive(Debug, thiserror::Error)]
pub enum HfError {
    /// A file cannot be read or written.
    #[error("`{}`: {what}", path.display())]
    File {
        /// Its place.
        path: PathBuf,
        /// What happened.
        what: String,
    },
    /// `config.json` says something impossible.
    #[error("config.json: {0}")]
    Config(String),
    /// `config.json` asks for something this crate does not do.
    #[error("config.json: `{key}` is {found}; this program runs {wanted}")]
    Unsupported {
        /// The key.
        key: String,
        /// What it says.
        found: String,
        /// What would do.
        wanted: String,
    },
    /// A text that has no tokens, tokens that have no text, or a template that cannot be rendered.
    #[error("{0}")]
    Text(String),
    /// A tensor is missing, left over, of another shape or kind, or not finite.
    #[error("tensor `{name}` {what}")]
    Tensor {
        /// Its name in the file.
        name: String,
        /// What is wrong.
        what: String,
    },
}

impl HfError {
    pub(crate) fn file(path: &Path, what: impl ToString) -> Self {
        Self::File { path: path.to_owned(), what: what.to_string() }
    }

    pub(crate) fn unsupported(key: &str, found: &str, wanted: &str) -> Self {
        Self::Unsupported { key: key.to_owned(), found: found.to_owned(), wanted: wanted.to_owned() }
    }

    pub(crate) fn tensor(name: &str, what: impl Into<String>) -> Self {
        Self::Tensor { name: name.to_owned(), what: what.into() }
    }
}

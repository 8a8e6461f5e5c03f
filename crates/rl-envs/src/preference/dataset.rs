//! A whole file or folder in memory.

use std::path::{Path, PathBuf};

use super::container::ending;
use super::reader::{ReadOptions, Rows, Skipped};
use super::{DataError, Judged, Pair, Preference};

/// Endings of the files of a folder that are read.
const ENDINGS: [&str; 6] = ["json", "jsonl", "ndjson", "csv", "tsv", "parquet"];

/// The rows of a file or of a folder's files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    /// Comparisons, in the order of the files.
    pub pairs: Vec<Pair>,
    /// Single judgements, in the order of the files.
    pub judged: Vec<Judged>,
    /// What was skipped.
    pub skipped: Skipped,
}

impl Dataset {
    /// Reads the file, or every data file directly in the folder, at `path`.
    ///
    /// # Errors
    /// The first [`DataError`]; [`DataError::NoRows`] if a file leaves nothing that could be used.
    pub fn load(path: &Path, options: &ReadOptions) -> Result<Self, DataError> {
        let mut data = Self::default();
        for file in files(path)? {
            let before = data.rows();
            let mut rows = Rows::open(&file, options)?;
            for row in &mut rows {
                match row? {
                    Preference::Pair(pair) => data.pairs.push(pair),
                    Preference::Judged(judged) => data.judged.push(judged),
                }
            }
            let skipped = rows.skipped();
            if data.rows() == before {
                let first =
                    skipped.listed.first().map(|(place, fault)| format!("{}: {fault}", place.position));
                return Err(DataError::NoRows { path: file, skipped: skipped.count, first });
            }
            let listed = data.skipped.count;
            skipped.listed.iter().cloned().for_each(|(place, fault)| data.skipped.push(place, fault));
            data.skipped.count = listed + skipped.count;
        }
        Ok(data)
    }

    /// Rows that can be used.
    pub fn rows(&self) -> usize {
        self.pairs.len() + self.judged.len()
    }

    /// Pairs whose answers are identical.
    pub fn ties(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.is_tie()).count()
    }
}

/// The file, or the data files of the folder by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let io = |source| DataError::Io { path: path.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        if file.is_file() && ENDINGS.contains(&ending(&file).as_str()) {
            files.push(file);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(DataError::Container {
            path: path.to_owned(),
            found: "a folder without data files",
            cure: "its files must end in .json, .jsonl, .ndjson, .csv, .tsv (each also with .gz) or .parquet",
        }),
        false => Ok(files),
    }
}

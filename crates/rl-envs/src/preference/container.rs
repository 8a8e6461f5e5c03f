//! What a file stores its rows in: told by its first bytes, and where those leave a doubt, by its ending.

use std::io;
use std::path::{Path, PathBuf};

use super::array::Array;
use super::columns::Columns;
use super::error::{DataError, Fault, Place, Position};
use super::fields::Fields;
use super::lines::Lines;
use super::stream::{Stream, is_parquet};
use super::table::Table;

/// The longest row that is read, in bytes.
pub const MOST_ROW_BYTES: usize = 1 << 25;

/// A row where it stands, or what is wrong with it.
pub(super) type RowResult<'a> = (Position, Result<Columns<'a>, Fault>);

/// What ends a container before its rows do.
pub(super) enum Trouble {
    Io(io::Error),
    Damaged { position: Position, what: String },
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Trouble {
    pub(super) fn in_file(self, path: &Path) -> DataError {
        let path = PathBuf::from(path);
        match self {
            Self::Io(source) => DataError::Io { path, source },
            Self::Damaged { position, what } => DataError::Damaged { place: Place { path, position }, what },
        }
    }
}

/// An open file.
pub(super) enum Container {
    Lines(Lines),
    Array(Array),
    Table(Box<Table>),
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet::Parquet>),
}

impl Container {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`DataError`] if it cannot be read or is no container of rows.
    pub(super) fn open(path: &Path, fields: &Fields) -> Result<Self, DataError> {
        if is_parquet(path)? {
            return Self::parquet(path, fields);
        }
        let Stream { bytes, head } = Stream::open(path)?;
        let first = head.trim_ascii_start().first();
        Ok(match (first, ending(path).as_str()) {
            (Some(b'['), _) => Self::Array(Array::new(bytes)),
            (Some(b'{'), _) => Self::Lines(Lines::new(bytes)),
            (_, "csv") => Self::Table(Box::new(Table::new(bytes, b',', fields))),
            (_, "tsv") => Self::Table(Box::new(Table::new(bytes, b'\t', fields))),
            (_, "json" | "jsonl" | "ndjson") => Self::Lines(Lines::new(bytes)),
            _ => match separator(&head, fields) {
                Some(separator) => Self::Table(Box::new(Table::new(bytes, separator, fields))),
                None => Self::Lines(Lines::new(bytes)),
            },
        })
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, fields: &Fields) -> Result<Self, DataError> {
        super::parquet::Parquet::open(path, fields).map(|it| Self::Parquet(Box::new(it)))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _: &Fields) -> Result<Self, DataError> {
        Err(DataError::Container {
            path: path.to_owned(),
            found: "a Parquet file, and this program was built without the feature `parquet`",
            cure: "build it with `--features parquet`, or write the data as JSON lines",
        })
    }

    /// The next row.
    pub(super) fn next(&mut self, fields: &Fields) -> Result<Option<RowResult<'_>>, Trouble> {
        match self {
            Self::Lines(lines) => lines.next(fields),
            Self::Array(array) => array.next(fields),
            Self::Table(table) => table.next(),
            #[cfg(feature = "parquet")]
            Self::Parquet(parquet) => parquet.next(),
        }
    }
}

/// The ending of a file's name in lower case, `.gz` aside.
pub(super) fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map(|(_, ending)| ending.to_owned()).unwrap_or_default()
}

/// The separator of a first line that names columns we know.
fn separator(head: &[u8], fields: &Fields) -> Option<u8> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let names_columns = |separator: &u8| {
        let names = line.split(|byte| byte == separator).filter_map(|name| std::str::from_utf8(name).ok());
        names.filter(|name| fields.reads(name.trim().trim_matches('"'))).count() >= 2
    };
    [b',', b'\t'].into_iter().find(names_columns)
}

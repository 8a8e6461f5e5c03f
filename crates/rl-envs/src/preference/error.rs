//! What can be wrong with a data file, in words that name the place, the finding and the cure.

use std::fmt;
use std::path::PathBuf;

/// Where in a file a row stands, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// A line of JSON lines or the first line of a CSV record; blank lines count.
    Line(u64),
    /// An element of a JSON array.
    Element {
        /// Its number.
        number: u64,
        /// The line it begins on.
        line: u64,
    },
    /// A row of a Parquet file.
    Row(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Element { number, line } => write!(f, "element {number} (line {line})"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A row of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The row.
    pub position: Position,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.path.display(), self.position)
    }
}

/// What is wrong with one row.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The row is not JSON.
    #[error("{what} (column {column}); a row is one JSON object")]
    Syntax {
        /// The parser's words.
        what: String,
        /// Byte of the row's line, from 1.
        column: usize,
    },
    /// The row is JSON, but not an object.
    #[error("a row must be a JSON object, but is {found}")]
    NotAnObject {
        /// What it is.
        found: String,
    },
    /// A column that the layout needs is absent.
    #[error("`{field}` is missing{}; {cure}", columns(found))]
    Missing {
        /// The column.
        field: String,
        /// The columns that are there.
        found: Vec<String>,
        /// What would do.
        cure: &'static str,
    },
    /// A column of the wrong type.
    #[error("`{field}` must be {want}, but is {found}")]
    Kind {
        /// The column.
        field: String,
        /// What would do.
        want: &'static str,
        /// What was found.
        found: String,
    },
    /// A column that stands twice in one row.
    #[error("`{field}` stands twice in this row; which one counts?")]
    Twice {
        /// The column.
        field: String,
    },
    /// An answer of white space alone.
    #[error(
        "`{field}` is empty; an answer needs at least one character that is not white space (skip such rows with \
         `--on-bad skip`)"
    )]
    Empty {
        /// The column.
        field: String,
    },
    /// A speaker that no layout knows.
    #[error(
        "`{field}` has the unknown role `{found}`; known are system, user (human), assistant (gpt) and tool \
         (observation)"
    )]
    Role {
        /// The column.
        field: String,
        /// The role.
        found: String,
    },
    /// A dialogue that does not end with the model's turn.
    #[error("`{field}` must end with the assistant's turn, but {found}")]
    NoAnswer {
        /// The column.
        field: String,
        /// How it ends.
        found: String,
    },
    /// Two dialogues that do not share what comes before the answer.
    #[error(
        "the prompts of `chosen` and `rejected` differ (from byte {byte} on); both dialogues must be the same up to \
         the last answer"
    )]
    PromptsDiffer {
        /// The first byte that differs, from 0.
        byte: usize,
    },
    /// A label that names neither answer.
    #[error(
        "`{field}` must be {want}, but is {found}; a tie has no place in pairs (skip it with `--on-bad skip`)"
    )]
    Label {
        /// The column.
        field: String,
        /// The two labels that would do.
        want: String,
        /// What was found.
        found: String,
    },
    /// A number that is not finite.
    #[error("`{field}` must be a finite number, but is {found}")]
    NotFinite {
        /// The column.
        field: String,
        /// What was found.
        found: String,
    },
    /// A row of another width than the header.
    #[error(
        "this row has {got} cells, but the header has {want}; quote cells that hold commas or line breaks"
    )]
    Ragged {
        /// Cells of the row.
        got: u64,
        /// Cells of the header.
        want: u64,
    },
    /// A row that does not end.
    #[error("the file ends inside a quoted cell; close the quote, or double every quote inside a cell")]
    OpenQuote,
    /// Text that is not UTF-8.
    #[error("the text is not UTF-8 (byte {byte} of the row); convert the file with `iconv -t utf-8`")]
    NotUtf8 {
        /// The first bad byte, from 0.
        byte: usize,
    },
    /// A row beyond the bound.
    #[error("this row is longer than {most} bytes; that is no text a model could read")]
    TooLong {
        /// The bound.
        most: usize,
    },
}

fn columns(found: &[String]) -> String {
    match found {
        [] => String::new(),
        names => {
            format!(" (found {})", names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Why a data file could not be read. Every text names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system said no.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// The file is not one of the containers.
    #[error("`{}` is {found}; {cure}", path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        found: &'static str,
        /// What would do.
        cure: &'static str,
    },
    /// The container is damaged, so that no row behind the damage can be trusted.
    #[error("{place}: {what}")]
    Damaged {
        /// Where.
        place: Place,
        /// How, and what would do.
        what: String,
    },
    /// A bad row, in strict reading.
    #[error("{place}: {fault}")]
    Row {
        /// Where.
        place: Place,
        /// What is wrong.
        fault: Fault,
    },
    /// Nothing that could be used.
    #[error("`{}` is empty: it has no rows{}", path.display(), after_skipping(*.skipped, first))]
    NoRows {
        /// The file or folder.
        path: PathBuf,
        /// Bad rows skipped.
        skipped: u64,
        /// The first of them.
        first: Option<String>,
    },
    /// A rename that cannot work.
    #[error("{0}")]
    Rename(String),
}

fn after_skipping(skipped: u64, first: &Option<String>) -> String {
    match (skipped, first) {
        (0, _) | (_, None) => String::new(),
        (n, Some(first)) => format!(" that could be used ({n} bad ones skipped; the first: {first})"),
    }
}

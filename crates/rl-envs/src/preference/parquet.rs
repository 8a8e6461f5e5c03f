//! Parquet: what dataset hubs serve. Rows come out as the JSON they stand for.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field as Value;
use parquet::record::reader::RowIter;

use super::columns::Columns;
use super::container::{RowResult, Trouble};
use super::error::{DataError, Fault, Position};
use super::fields::Fields;
use super::json::Json;

/// A stream of rows.
pub(super) struct Parquet {
    rows: RowIter<'static>,
    row: u64,
    fields: Fields,
}

fn damaged(error: &ParquetError) -> io::Error {
    let what = format!("the Parquet file is damaged ({error}); fetch it again");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Parquet {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`DataError::Io`] if it cannot be read or its footer is damaged.
    pub(super) fn open(path: &Path, fields: &Fields) -> Result<Self, DataError> {
        let io = |source| DataError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let reader = SerializedFileReader::new(file).map_err(|error| io(damaged(&error)))?;
        Ok(Self { rows: RowIter::from_file_into(Box::new(reader)), row: 0, fields: fields.clone() })
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<RowResult<'_>>, Trouble> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        let row = row.map_err(|error| Trouble::Io(damaged(&error)))?;
        self.row += 1;
        let mut columns = Columns { known: Vec::new(), ignored: Vec::new() };
        for (name, value) in row.into_columns() {
            if !self.fields.reads(&name) {
                columns.ignored.push(Cow::Owned(name));
                continue;
            }
            if columns.known.iter().any(|(it, _)| *it == name) {
                return Ok(Some((Position::Row(self.row), Err(Fault::Twice { field: name }))));
            }
            columns.known.push((Cow::Owned(name), json(&value)));
        }
        Ok(Some((Position::Row(self.row), Ok(columns))))
    }
}

fn json(value: &Value) -> Json<'static> {
    let number = |it: f64| Json::Number(it);
    match value {
        Value::Null => Json::Null,
        Value::Bool(it) => Json::Bool(*it),
        Value::Byte(it) => number(f64::from(*it)),
        Value::Short(it) => number(f64::from(*it)),
        Value::Int(it) => number(f64::from(*it)),
        Value::Long(it) => number(*it as f64),
        Value::UByte(it) => number(f64::from(*it)),
        Value::UShort(it) => number(f64::from(*it)),
        Value::UInt(it) => number(f64::from(*it)),
        Value::ULong(it) => number(*it as f64),
        Value::Float(it) => number(f64::from(*it)),
        Value::Double(it) => number(*it),
        Value::Str(it) => Json::Text(Cow::Owned(it.clone())),
        Value::Group(row) => Json::Object(
            row.get_column_iter().map(|(name, value)| (Cow::Owned(name.clone()), json(value))).collect(),
        ),
        Value::ListInternal(list) => Json::List(list.elements().iter().map(json).collect()),
        other => Json::Text(Cow::Owned(other.to_string())),
    }
}

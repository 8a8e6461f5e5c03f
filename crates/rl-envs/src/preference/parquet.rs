//! Parquet: what dataset hubs serve. Rows come out as the JSON they stand for.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parquet::errors::ParquetError;
use parquet::file::reader::SerializedFileReader;
use parquet::record::Field as Value;
use parquet::record::reader::RowIter;

use super::columns::Columns;
use super::container::{RowResult, Trouble};
use super::error::{DataError, Fault, Position};
use super::fields::Fields;
use super::json::Json;
use super::pages::Pages;

/// A stream of rows.
pub(super) struct Parquet {
    rows: RowIter<'static>,
    row: u64,
    fields: Fields,
}

/// What `call` returns. The library panics on some broken files; that is an error here.
fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> io::Result<T> {
    let gave_up = |_| Err(ParquetError::General("its reader gave up".into()));
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(gave_up).map_err(|error| damaged(&error))
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
        let watched = Arc::new(AtomicBool::new(false));
        let rows = guarded(|| {
            let reader = SerializedFileReader::new(Pages::new(file, watched.clone()))?;
            watched.store(true, Ordering::Relaxed);
            Ok(RowIter::from_file_into(Box::new(reader)))
        });
        Ok(Self { rows: rows.map_err(io)?, row: 0, fields: fields.clone() })
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<RowResult<'_>>, Trouble> {
        let Some(row) = guarded(|| self.rows.next().transpose())? else { return Ok(None) };
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

//! CSV and TSV: a header that names the columns, then one record a row. Every cell is text.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::columns::Columns;
use super::container::{MOST_ROW_BYTES, RowResult, Trouble};
use super::error::{Fault, Position};
use super::fields::Fields;
use super::json::Json;

/// A stream of records.
pub(super) struct Table {
    reader: Reader<Bounded>,
    watch: Rc<Watch>,
    fields: Fields,
    header: Option<Vec<String>>,
    /// The record to hand out, and the one behind it: the last one is judged by how the file ends.
    record: ByteRecord,
    ahead: ByteRecord,
    has_ahead: bool,
}

/// What the parser has taken from the file.
#[derive(Default)]
struct Watch {
    /// Bytes since the last record.
    since: Cell<usize>,
    /// Whether the number of quotes so far is odd: inside a quoted cell.
    open_quote: Cell<bool>,
}

/// Bytes that end with an error where a single record swallows too many of them.
struct Bounded {
    inner: Box<dyn BufRead>,
    watch: Rc<Watch>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let quotes = buffer[..n].iter().filter(|byte| **byte == b'"').count();
        self.watch.open_quote.set(self.watch.open_quote.get() ^ (quotes % 2 == 1));
        self.watch.since.set(self.watch.since.get() + n);
        if self.watch.since.get() > MOST_ROW_BYTES {
            let what = format!("a record is longer than {MOST_ROW_BYTES} bytes; is a quote not closed?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(n)
    }
}

impl Table {
    pub(super) fn new(bytes: Box<dyn BufRead>, separator: u8, fields: &Fields) -> Self {
        let watch = Rc::new(Watch::default());
        let bytes = Bounded { inner: bytes, watch: watch.clone() };
        let reader = ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(bytes);
        let (record, ahead) = (ByteRecord::new(), ByteRecord::new());
        Self { reader, watch, fields: fields.clone(), header: None, record, ahead, has_ahead: false }
    }

    /// Reads one record ahead. A blank line is none.
    fn look_ahead(&mut self) -> Result<(), Trouble> {
        self.watch.since.set(0);
        self.has_ahead =
            self.reader.read_byte_record(&mut self.ahead).map_err(|error| match error.into_kind() {
                csv::ErrorKind::Io(error) => Trouble::Io(error),
                other => Trouble::Io(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}"))),
            })?;
        Ok(())
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<RowResult<'_>>, Trouble> {
        if self.header.is_none() {
            self.look_ahead()?;
            let names = self.ahead.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned());
            self.header = Some(names.collect());
            self.look_ahead()?;
        }
        if !self.has_ahead {
            return Ok(None);
        }
        std::mem::swap(&mut self.record, &mut self.ahead);
        let line = self.record.position().map_or(0, csv::Position::line);
        self.look_ahead()?;
        let last = !self.has_ahead;
        let row = if last && self.watch.open_quote.get() { Err(Fault::OpenQuote) } else { self.columns() };
        Ok(Some((Position::Line(line), row)))
    }

    fn columns(&self) -> Result<Columns<'_>, Fault> {
        let header = self.header.as_deref().unwrap_or_default();
        let (got, want) = (self.record.len() as u64, header.len() as u64);
        if got != want {
            return Err(Fault::Ragged { got, want });
        }
        let mut columns = Columns { known: Vec::with_capacity(4), ignored: Vec::new() };
        for (name, cell) in header.iter().zip(self.record.iter()) {
            if !self.fields.reads(name) {
                columns.ignored.push(Cow::Borrowed(name));
                continue;
            }
            if columns.known.iter().any(|(it, _)| it == name) {
                return Err(Fault::Twice { field: name.clone() });
            }
            let text =
                std::str::from_utf8(cell).map_err(|error| Fault::NotUtf8 { byte: error.valid_up_to() })?;
            columns.known.push((Cow::Borrowed(name), Json::Text(Cow::Borrowed(text))));
        }
        Ok(columns)
    }
}

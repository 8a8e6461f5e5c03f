//! JSON lines: one row a line, blank lines counted but skipped.

use std::io::{BufRead, Read};

use super::columns::Columns;
use super::container::{MOST_ROW_BYTES, RowResult, Trouble};
use super::error::{Fault, Position};
use super::fields::Fields;

/// A stream of lines.
pub(super) struct Lines {
    bytes: Box<dyn BufRead>,
    line: u64,
    /// The line under the cursor, without its end.
    row: Vec<u8>,
}

impl Lines {
    pub(super) fn new(bytes: Box<dyn BufRead>) -> Self {
        Self { bytes, line: 0, row: Vec::new() }
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self, fields: &Fields) -> Result<Option<RowResult<'_>>, Trouble> {
        loop {
            self.row.clear();
            let n = (&mut self.bytes).take(MOST_ROW_BYTES as u64).read_until(b'\n', &mut self.row)?;
            if n == 0 {
                return Ok(None);
            }
            self.line += 1;
            if n == MOST_ROW_BYTES && self.row.last() != Some(&b'\n') {
                self.bytes.skip_until(b'\n')?;
                return Ok(Some((Position::Line(self.line), Err(Fault::TooLong { most: MOST_ROW_BYTES }))));
            }
            if !self.row.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some((Position::Line(self.line), Columns::of_json(&self.row, 1, fields))))
    }
}

//! A JSON array of rows, read element by element: only one element is in memory.

use std::io::BufRead;

use super::columns::Columns;
use super::container::{MOST_ROW_BYTES, RowResult, Trouble};
use super::error::{Fault, Position};
use super::fields::Fields;

/// A stream of elements.
pub(super) struct Array {
    bytes: Box<dyn BufRead>,
    number: u64,
    /// The line and column under the cursor, from 1.
    line: u64,
    column: usize,
    began: bool,
    element: Vec<u8>,
}

impl Array {
    pub(super) fn new(bytes: Box<dyn BufRead>) -> Self {
        Self { bytes, number: 0, line: 1, column: 1, began: false, element: Vec::new() }
    }

    /// The next element.
    pub(super) fn next(&mut self, fields: &Fields) -> Result<Option<RowResult<'_>>, Trouble> {
        let first = if self.began {
            match self.token()? {
                Some(b',') => self.token()?,
                Some(b']') => return self.end(),
                found => return Err(self.damaged(found, "`,` or `]`")),
            }
        } else {
            self.began = true;
            // The container told an array by this bracket.
            self.token()?;
            match self.token()? {
                Some(b']') => return self.end(),
                first => first,
            }
        };
        let Some(first) = first.filter(|byte| !matches!(byte, b']' | b',' | b'}' | b':')) else {
            return Err(self.damaged(first, "an element (a trailing comma is not allowed)"));
        };
        self.number += 1;
        let (position, column) =
            (Position::Element { number: self.number, line: self.line }, self.column - 1);
        if !self.element(first)? {
            return Ok(Some((position, Err(Fault::TooLong { most: MOST_ROW_BYTES }))));
        }
        match Columns::of_json(&self.element, column, fields) {
            // A broken element says nothing about where the next one begins.
            Err(Fault::Syntax { what, column }) => {
                Err(Trouble::Damaged { position, what: format!("{what} (column {column})") })
            }
            row => Ok(Some((position, row))),
        }
    }

    /// Nothing but white space may follow the array.
    fn end(&mut self) -> Result<Option<RowResult<'_>>, Trouble> {
        match self.token()? {
            None => Ok(None),
            found => Err(self.damaged(found, "the end of the file behind the array's `]`")),
        }
    }

    fn damaged(&self, found: Option<u8>, want: &str) -> Trouble {
        let found = match found {
            Some(byte) => format!("found `{}`", char::from(byte).escape_default()),
            None => "the file ends".to_owned(),
        };
        let position = Position::Element { number: self.number + 1, line: self.line };
        let column = self.column.saturating_sub(1);
        Trouble::Damaged {
            position,
            what: format!("{found} at column {column}, where the array needs {want}"),
        }
    }

    /// The next byte that is not white space.
    fn token(&mut self) -> Result<Option<u8>, Trouble> {
        loop {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let blank = chunk.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let token = chunk.get(blank).copied();
            let passed = blank + usize::from(token.is_some());
            (self.line, self.column) = after((self.line, self.column), &chunk[..passed]);
            self.bytes.consume(passed);
            if token.is_some() {
                return Ok(token);
            }
        }
    }

    /// Copies one element that begins with `first` to `self.element`, up to its closing bracket or the `,` or `]`
    /// behind it. False if it was too long; it is passed over then.
    fn element(&mut self, first: u8) -> Result<bool, Trouble> {
        self.element.clear();
        self.element.push(first);
        let mut scan = Scan::new(first);
        while scan != Scan::Done {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                let position = Position::Element { number: self.number, line: self.line };
                return Err(Trouble::Damaged { position, what: "the file ends inside this element".into() });
            }
            let taken = scan.advance(chunk);
            (self.line, self.column) = after((self.line, self.column), &chunk[..taken]);
            if self.element.len() + taken <= MOST_ROW_BYTES {
                self.element.extend_from_slice(&chunk[..taken]);
            } else {
                self.element.truncate(0);
                self.bytes.consume(taken);
                return self.pass_over(scan);
            }
            self.bytes.consume(taken);
        }
        Ok(true)
    }

    fn pass_over(&mut self, mut scan: Scan) -> Result<bool, Trouble> {
        while scan != Scan::Done {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let taken = scan.advance(chunk);
            (self.line, self.column) = after((self.line, self.column), &chunk[..taken]);
            self.bytes.consume(taken);
        }
        Ok(false)
    }
}

/// The line and column behind `passed`.
fn after((line, column): (u64, usize), passed: &[u8]) -> (u64, usize) {
    match passed.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => {
            let lines = passed[..=last].iter().filter(|byte| **byte == b'\n').count();
            (line + lines as u64, passed.len() - last)
        }
        None => (line, column + passed.len()),
    }
}

/// Where the scan for the end of an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scan {
    /// Inside brackets, of this depth.
    Nested(u64),
    /// Inside a text, in brackets of this depth.
    Text(u64),
    /// Behind a backslash in a text.
    Escape(u64),
    /// In a number or a word outside of all brackets.
    Bare,
    /// Behind the element.
    Done,
}

impl Scan {
    fn new(first: u8) -> Self {
        match first {
            b'{' | b'[' => Self::Nested(1),
            b'"' => Self::Text(0),
            _ => Self::Bare,
        }
    }

    /// Scans on, and says how many bytes belong to the element.
    fn advance(&mut self, chunk: &[u8]) -> usize {
        let mut i = 0;
        while i < chunk.len() {
            let byte = chunk[i];
            *self = match *self {
                Self::Text(depth) => match byte {
                    b'"' if depth == 0 => Self::Done,
                    b'"' => Self::Nested(depth),
                    b'\\' => Self::Escape(depth),
                    _ => {
                        // Most bytes of a file are in texts: skip to the next one that matters.
                        let rest = &chunk[i..];
                        i += rest.iter().position(|it| matches!(it, b'"' | b'\\')).unwrap_or(rest.len());
                        continue;
                    }
                },
                Self::Escape(depth) => Self::Text(depth),
                Self::Nested(depth) => match byte {
                    b'"' => Self::Text(depth),
                    b'{' | b'[' => Self::Nested(depth + 1),
                    b'}' | b']' if depth == 1 => Self::Done,
                    b'}' | b']' => Self::Nested(depth - 1),
                    _ => Self::Nested(depth),
                },
                Self::Bare if matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace() => {
                    *self = Self::Done;
                    return i;
                }
                state => state,
            };
            i += 1;
            if *self == Self::Done {
                return i;
            }
        }
        i
    }
}

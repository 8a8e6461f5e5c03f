//! One row, by column: what every container hands to the layouts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::Fault;
use super::fields::{Field, Fields};
use super::json::{Json, Text};

/// The columns of one row that some field reads, and the names of all others.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    /// What is read.
    pub(super) known: Vec<(Cow<'a, str>, Json<'a>)>,
    /// What is not.
    pub(super) ignored: Vec<Cow<'a, str>>,
}

impl<'a> Columns<'a> {
    /// Reads one JSON object; `column` is where its first byte stands in its line, from 1.
    pub(super) fn of_json(row: &'a [u8], column: usize, fields: &Fields) -> Result<Self, Fault> {
        let mut reader = serde_json::Deserializer::from_slice(row);
        let columns = Row { fields }.deserialize(&mut reader).and_then(|columns| {
            reader.end()?;
            Ok(columns)
        });
        columns.map_err(|error| match serde_json::from_slice::<Json<'_>>(row) {
            // Whatever it is, it is well-formed.
            Ok(other) if !matches!(other, Json::Object(_)) => Fault::NotAnObject { found: other.kind() },
            _ => syntax(&error, column),
        })?
    }

    /// The first column that holds `field` with anything but null, and its name; null counts as absent.
    pub(super) fn optional(&self, field: Field, fields: &Fields) -> Option<(&str, &Json<'a>)> {
        let of = |name: &str| self.known.iter().find(|(it, _)| it == name);
        let found = fields.columns(field).filter_map(of).find(|(_, value)| *value != Json::Null);
        found.map(|(name, value)| (name.as_ref(), value))
    }

    /// Whether a column of `field` is there, be it null.
    pub(super) fn has(&self, field: Field, fields: &Fields) -> bool {
        fields.columns(field).any(|name| self.known.iter().any(|(it, _)| it == name))
    }

    /// The first column that holds `field`, be it null.
    ///
    /// # Errors
    /// [`Fault::Missing`] with the columns that are there; `cure` says what would do.
    pub(super) fn required(
        &self,
        field: Field,
        fields: &Fields,
        cure: &'static str,
    ) -> Result<(&str, &Json<'a>), Fault> {
        let of = |name: &str| self.known.iter().find(|(it, _)| it == name);
        let found = self
            .optional(field, fields)
            .or_else(|| fields.columns(field).find_map(of).map(|(name, value)| (name.as_ref(), value)));
        found.ok_or_else(|| self.missing(field, fields, cure))
    }

    /// That `field` is missing.
    pub(super) fn missing(&self, field: Field, fields: &Fields, cure: &'static str) -> Fault {
        const SHOWN: usize = 12;
        let names = self.known.iter().map(|(name, _)| name).chain(&self.ignored);
        Fault::Missing {
            field: fields.columns(field).next().unwrap_or_default().to_owned(),
            found: names.take(SHOWN).map(|name| name.to_string()).collect(),
            cure,
        }
    }
}

/// The parser's words without its own position, which counts lines of one row.
fn syntax(error: &serde_json::Error, column: usize) -> Fault {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
    Fault::Syntax { what, column: column + error.column().saturating_sub(1) }
}

/// Reads a row, keeping what `fields` read.
struct Row<'f> {
    fields: &'f Fields,
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = Result<Columns<'de>, Fault>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = Result<Columns<'de>, Fault>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut columns, mut twice) = (Columns { known: Vec::with_capacity(4), ignored: Vec::new() }, None);
        while let Some(Text(name)) = entries.next_key()? {
            if !self.fields.reads(&name) {
                entries.next_value::<IgnoredAny>()?;
                columns.ignored.push(name);
                continue;
            }
            let value = entries.next_value()?;
            if columns.known.iter().any(|(it, _)| *it == name) {
                twice = Some(Fault::Twice { field: name.to_string() });
            }
            columns.known.push((name, value));
        }
        Ok(match twice {
            Some(fault) => Err(fault),
            None => Ok(columns),
        })
    }
}

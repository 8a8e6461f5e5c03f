//! Reads the rows of one file, and keeps count of those it had to skip.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::container::Container;
use super::error::{DataError, Fault, Place};
use super::fields::Fields;
use super::{Layout, Preference};

/// What a bad row does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBad {
    /// It ends the load.
    #[default]
    Error,
    /// It is skipped, counted and listed.
    Skip,
}

/// How to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// The layout of every row; absent, the first good row of a file settles it.
    pub layout: Option<Layout>,
    /// The columns.
    pub fields: Fields,
    /// What a bad row does.
    pub on_bad: OnBad,
}

/// The bad rows that were passed over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The first [`Skipped::LISTED`] of them.
    pub listed: Vec<(Place, Fault)>,
}

impl Skipped {
    /// Rows that are listed; the others are counted.
    pub const LISTED: usize = 1000;

    pub(super) fn push(&mut self, place: Place, fault: Fault) {
        self.count += 1;
        if self.listed.len() < Self::LISTED {
            self.listed.push((place, fault));
        }
    }
}

/// The rows of one file, one at a time.
pub struct Rows {
    path: PathBuf,
    container: Container,
    options: ReadOptions,
    settled: Option<Layout>,
    skipped: Skipped,
    over: bool,
}

impl Rows {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`DataError`] if it cannot be read or is no container of rows.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, DataError> {
        Ok(Self {
            path: path.to_owned(),
            container: Container::open(path, &options.fields)?,
            settled: options.layout,
            options: options.clone(),
            skipped: Skipped::default(),
            over: false,
        })
    }

    /// The bad rows so far.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    fn read(&mut self) -> Result<Option<Preference>, DataError> {
        loop {
            let fields = &self.options.fields;
            let row = self.container.next(fields).map_err(|trouble| trouble.in_file(&self.path))?;
            let Some((position, columns)) = row else { return Ok(None) };
            let settled = &mut self.settled;
            let row = columns.and_then(|columns| {
                let layout = settled.map_or_else(|| Layout::of(&columns, fields), Ok)?;
                let row = layout.read(&columns, fields)?;
                *settled = Some(layout);
                Ok(row)
            });
            let fault = match row {
                Ok(row) => return Ok(Some(row)),
                Err(fault) => fault,
            };
            let place = Place { path: self.path.clone(), position };
            match self.options.on_bad {
                OnBad::Error => return Err(DataError::Row { place, fault }),
                OnBad::Skip => self.skipped.push(place, fault),
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Preference, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let row = self.read().transpose();
        self.over = !matches!(row, Some(Ok(_)));
        row
    }
}

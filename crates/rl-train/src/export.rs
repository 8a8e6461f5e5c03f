//! `rl-train export`: the metrics of finished or running runs for other programs, as CSV or TensorBoard event files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::Outcome;
use crate::metrics::Row;
use crate::recording::{Columns, Recording};
use crate::run_folder::RunFolder;
use crate::tensorboard::{EventFile, now};

/// What other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One row per update, one column per metric; what an update has not measured is empty.
    Csv,
    /// An event file in the folder `tensorboard` of the run.
    Tensorboard,
}

/// `rl-train export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Folders of runs, or their names in runs/
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// What to write: metrics.csv, or an event file in tensorboard/, in the run's folder
    #[arg(long, value_enum, default_value = "csv")]
    pub format: Format,
}

/// Writes the files.
///
/// # Errors
/// If a folder holds no run, or a file cannot be written.
pub fn export(args: &ExportArgs) -> Result<Outcome> {
    for path in &args.runs {
        let run = Recording::read(path)?;
        let place = write(&run, args.format)?;
        say!("{}: {} updates in {}", run.name, run.columns.len(), place.display());
    }
    Ok(Outcome::Done)
}

fn write(run: &Recording, format: Format) -> Result<PathBuf> {
    let place = match format {
        Format::Csv => run.path.join("metrics.csv"),
        Format::Tensorboard => run.path.join("tensorboard"),
    };
    let written = match format {
        Format::Csv => File::create(&place).and_then(|file| {
            let mut out = BufWriter::new(file);
            csv(&run.columns, &mut out)?;
            out.flush()
        }),
        Format::Tensorboard => EventFile::create(&place).and_then(|mut file| {
            // A run's clock is kept by update and not by row: rows are spread evenly over its time.
            let elapsed_s = run.timing.map_or(0.0, |timing| timing.elapsed_s);
            let (start, each) = (now() - elapsed_s, elapsed_s / run.columns.len().max(1) as f64);
            each_row(&run.columns, |row, values| {
                file.write(run.columns.steps[row], start + each * row as f64, values.iter().copied())
            })
        }),
    };
    written.with_context(|| format!("cannot write `{}`", place.display()))?;
    Ok(place)
}

/// A second file that a run writes its metrics to while it goes on.
pub enum EventLog {
    /// None.
    Off,
    /// The run's `metrics.csv`, made anew from its metrics when it ends: columns are known only then.
    Csv(PathBuf),
    /// An event file.
    Tensorboard(EventFile<BufWriter<File>>),
}

impl EventLog {
    /// The log of a run in `folder`.
    ///
    /// # Errors
    /// If its file cannot be written.
    pub fn open(format: Option<Format>, folder: &RunFolder) -> Result<Self> {
        Ok(match format {
            None => Self::Off,
            Some(Format::Csv) => Self::Csv(folder.path.clone()),
            Some(Format::Tensorboard) => {
                let place = folder.file("tensorboard");
                let file = EventFile::create(&place);
                Self::Tensorboard(file.with_context(|| format!("cannot write `{}`", place.display()))?)
            }
        })
    }

    /// Adds an update.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        if let Self::Tensorboard(file) = self {
            file.write(row.step, now(), row.each()).context("cannot write the event file")?;
        }
        Ok(())
    }

    /// After the last update.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Csv(run) => write(&Recording::read(&run)?, Format::Csv).map(|_| ()),
            Self::Off | Self::Tensorboard(_) => Ok(()),
        }
    }
}

/// Calls `f` with each row and its metrics.
fn each_row<E>(
    columns: &Columns,
    mut f: impl FnMut(usize, &[(&str, f64)]) -> Result<(), E>,
) -> Result<(), E> {
    let all: Vec<_> = columns.each().collect();
    let (mut next, mut values) = (vec![0; all.len()], vec![]);
    for row in 0..columns.len() {
        values.clear();
        for ((name, column), next) in all.iter().zip(&mut next) {
            if column.rows.get(*next) == Some(&(row as u32)) {
                values.push((*name, column.values[*next]));
                *next += 1;
            }
        }
        f(row, &values)?;
    }
    Ok(())
}

/// RFC 4180: names hold neither commas nor quotes, but a damaged file might.
fn csv(columns: &Columns, out: &mut impl Write) -> std::io::Result<()> {
    let names: Vec<&str> = columns.each().map(|(name, _)| name).collect();
    let quoted = |name: &str| match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    };
    let head: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    writeln!(out, "step,update{}{}", if head.is_empty() { "" } else { "," }, head.join(","))?;
    each_row(columns, |row, values| {
        write!(out, "{},{}", columns.steps[row], columns.updates[row])?;
        let mut values = values.iter().peekable();
        for name in &names {
            match values.next_if(|(known, _)| known == name) {
                Some((_, value)) => write!(out, ",{value}")?,
                None => write!(out, ",")?,
            }
        }
        writeln!(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_csv_has_a_place_for_every_metric() {
        let text = "{\"step\":8,\"update\":1,\"a\":1.5,\"b,c\":\"NaN\"}\n{\"step\":16,\"update\":2,\"d\":1e-7,\"a\":2}\n";
        let (columns, _) = Columns::read(text.as_bytes()).unwrap();
        let mut out = vec![];
        csv(&columns, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "step,update,a,\"b,c\",d\n8,1,1.5,NaN,\n16,2,2,,0.0000001\n");
    }
}

//! The metrics of one update, and the two files they go to.
//!
//! `metrics.jsonl` holds what the seed decides and nothing else: two runs of one seed write the same
//! bytes, and a resumed run the bytes of an undisturbed one. Whatever the clock says is in
//! `timing.jsonl`.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The metrics of one update, in the order they were given.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Environment steps so far.
    pub step: u64,
    /// Updates so far.
    pub update: u64,
    values: Vec<(&'static str, f64)>,
}

impl Row {
    /// No metric yet.
    pub fn new(update: u64, step: u64) -> Self {
        Self { step, update, values: Vec::with_capacity(16) }
    }

    /// Adds a metric. Its name has a row in `docs/metrics.md`.
    pub fn push(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// Every metric, in the order given.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.values.iter().copied()
    }

    /// The metric `name`, if it was given.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// One line of `metrics.jsonl`. JSON has no infinity and no NaN: they are strings.
    pub fn json(&self) -> String {
        let mut line = format!("{{\"step\":{},\"update\":{}", self.step, self.update);
        for (name, value) in &self.values {
            match serde_json::Number::from_f64(*value) {
                Some(number) => write!(line, ",\"{name}\":{number}"),
                None => write!(line, ",\"{name}\":\"{value}\""),
            }
            .expect("writing to a string does not fail");
        }
        line + "}\n"
    }
}

/// One line of `timing.jsonl`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Environment steps so far.
    pub step: u64,
    /// Updates so far.
    pub update: u64,
    /// Environment steps per second of this update.
    #[serde(rename = "charts/SPS")]
    pub steps_per_s: f64,
    /// Seconds of training so far, interruptions left out.
    pub elapsed_s: f64,
    /// CPU seconds so far.
    pub cpu_s: Option<f64>,
}

/// The open files.
pub struct MetricFiles {
    metrics: BufWriter<File>,
    bytes: u64,
    timing: BufWriter<File>,
}

impl MetricFiles {
    /// Goes on after the first `bytes` bytes of metrics and the timings up to `update`; both are 0 in
    /// a new run. Returns the last timing too.
    ///
    /// # Errors
    /// What the operating system says, or if there are fewer bytes than that.
    pub fn open(metrics: &Path, bytes: u64, timing: &Path, update: u64) -> io::Result<(Self, Timing)> {
        let open = |path| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut metrics = open(metrics)?;
        let found = metrics.metadata()?.len();
        if found < bytes {
            let text = format!("it has {found} bytes, but the checkpoint was written after {bytes}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        metrics.set_len(bytes)?;
        metrics.seek(io::SeekFrom::End(0))?;

        let mut file = open(timing)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let (mut kept, mut last) = (0, Timing::default());
        for line in text.split_inclusive('\n') {
            match serde_json::from_str::<Timing>(line) {
                Ok(timing) if timing.update <= update => (kept, last) = (kept + line.len(), timing),
                _ => break,
            }
        }
        file.set_len(kept as u64)?;
        file.seek(io::SeekFrom::End(0))?;
        Ok((Self { metrics: BufWriter::new(metrics), bytes, timing: BufWriter::new(file) }, last))
    }

    /// Adds one update.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&mut self, row: &Row, timing: &Timing) -> io::Result<()> {
        let line = row.json();
        self.metrics.write_all(line.as_bytes())?;
        self.bytes += line.len() as u64;
        let timing = serde_json::to_string(timing).map_err(io::Error::other)?;
        writeln!(self.timing, "{timing}")?;
        // A reader that follows the run sees whole lines.
        self.metrics.flush()?;
        self.timing.flush()
    }

    /// The length of `metrics.jsonl`, once all of it is on disk.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn sync(&mut self) -> io::Result<u64> {
        self.metrics.flush()?;
        self.metrics.get_ref().sync_data()?;
        self.timing.flush()?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_json_in_the_order_given_even_when_a_metric_is_not_finite() {
        let mut row = Row::new(2, 512);
        row.push("losses/b", 1e-7);
        row.push("losses/a", f64::NAN);
        row.push("losses/c", f64::INFINITY);
        let line = row.json();
        assert_eq!(
            line,
            "{\"step\":512,\"update\":2,\"losses/b\":1e-7,\"losses/a\":\"NaN\",\"losses/c\":\"inf\"}\n"
        );
        serde_json::from_str::<serde_json::Value>(&line).unwrap();
    }
}

//! What a study found: a table, sentences, pictures.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rl_core::bootstrap::{Bootstrap, Interval, interquartile_mean, mean};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::picture::Picture;

/// Everything that a study leaves behind.
#[derive(Default)]
pub struct Results {
    /// One row per thing that was measured.
    pub table: Table,
    /// What held and what did not.
    pub findings: Vec<Finding>,
    /// Paragraphs that only inform.
    pub notes: Vec<String>,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// A claim, and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What is claimed.
    pub claim: String,
    /// What the numbers say of it.
    pub verdict: Verdict,
    /// The numbers.
    pub evidence: String,
}

/// What the numbers say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Held,
    /// It does not.
    Failed,
    /// The intervals do not tell.
    Open,
}

impl Verdict {
    /// Of a claim that is true or false.
    pub fn of(holds: bool) -> Self {
        if holds { Self::Held } else { Self::Failed }
    }

    /// Of the claim that `number` is above `bound`.
    pub fn above(number: Interval, bound: f64) -> Self {
        match (number.above(bound), number.below(bound)) {
            (true, _) => Self::Held,
            (_, true) => Self::Failed,
            _ => Self::Open,
        }
    }
}

impl Finding {
    /// A claim with its verdict and the numbers behind it.
    pub fn new(verdict: Verdict, claim: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { claim: claim.into(), verdict, evidence: evidence.into() }
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let verdict = match self.verdict {
            Verdict::Held => "held",
            Verdict::Failed => "did not hold",
            Verdict::Open => "open",
        };
        format!("{verdict}: {} ({})", self.claim, self.evidence)
    }
}

/// Rows of named cells; every row has the same names.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<(&'static str, Cell)>>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A name.
    Text(String),
    /// A number.
    Number(f64),
    /// A number and its interval.
    Interval(Interval),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Interval> for Cell {
    fn from(interval: Interval) -> Self {
        Self::Interval(interval)
    }
}

impl Table {
    /// Adds a row.
    ///
    /// # Panics
    /// If its names are not those of the first row.
    pub fn push<const N: usize>(&mut self, row: [(&'static str, Cell); N]) {
        let names = |row: &[(&'static str, Cell)]| row.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        if let Some(first) = self.rows.first() {
            assert_eq!(names(first), names(&row), "rows of one table");
        }
        self.rows.push(row.into());
    }

    /// An array of objects; an interval is an object, too.
    pub fn json(&self) -> Value {
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(number),
            Cell::Interval(interval) => json!(interval),
        };
        let object = |row: &Vec<(&'static str, Cell)>| {
            Value::Object(row.iter().map(|(name, of)| ((*name).to_owned(), cell(of))).collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    /// Comma-separated values with a header; an interval is three columns.
    pub fn csv(&self) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let header = first.iter().map(|(name, cell)| match cell {
            Cell::Interval(_) => format!("{name},{name}_low,{name}_high"),
            _ => (*name).to_owned(),
        });
        let line = |row: &Vec<(&'static str, Cell)>| {
            let cells = row.iter().map(|(_, cell)| match cell {
                Cell::Text(text) if text.contains([',', '"']) => format!("\"{}\"", text.replace('"', "\"\"")),
                Cell::Text(text) => text.clone(),
                Cell::Number(number) => number.to_string(),
                Cell::Interval(Interval { estimate, low, high }) => format!("{estimate},{low},{high}"),
            });
            cells.collect::<Vec<_>>().join(",") + "\n"
        };
        header.collect::<Vec<_>>().join(",") + "\n" + &self.rows.iter().map(line).collect::<String>()
    }
}

/// The generator of every interval: the same numbers give the same interval.
fn generator() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

/// The mean over seeds and its interval.
pub fn over_seeds(samples: &[f64]) -> Interval {
    Bootstrap::default().interval(samples, mean, &mut generator())
}

/// The interquartile mean over the runs of several tasks and its interval.
pub fn over_tasks(strata: &[&[f64]]) -> Interval {
    Bootstrap::default().stratified(strata, interquartile_mean, &mut generator())
}

/// The probability that a run of X beats one of Y, averaged over tasks, and its interval.
pub fn improvement(tasks: &[(&[f64], &[f64])]) -> Interval {
    Bootstrap::default().improvement(tasks, &mut generator())
}

/// `1.23 [1.10, 1.35]`.
pub fn shown(interval: Interval) -> String {
    let Interval { estimate, low, high } = interval;
    let digits = if estimate.abs() >= 100.0 { 1 } else { 2 };
    format!("{estimate:.digits$} [{low:.digits$}, {high:.digits$}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_csv_and_json() {
        let mut table = Table::default();
        let interval = Interval { estimate: 2.0, low: 1.0, high: 3.5 };
        table.push([("method", "PPO, fixed β".into()), ("kl", 0.5.into()), ("gold", interval.into())]);
        assert_eq!(table.csv(), "method,kl,gold,gold_low,gold_high\n\"PPO, fixed β\",0.5,2,1,3.5\n");
        let want = json!([
            {"method": "PPO, fixed β", "kl": 0.5, "gold": {"estimate": 2.0, "low": 1.0, "high": 3.5}}
        ]);
        assert_eq!(table.json(), want);
    }

    #[test]
    fn a_claim_is_open_where_its_interval_lies_on_the_bound() {
        let interval = Interval { estimate: 0.6, low: 0.4, high: 0.8 };
        assert_eq!(Verdict::above(interval, 0.5), Verdict::Open);
        assert_eq!(Verdict::above(interval, 0.3), Verdict::Held);
        assert_eq!(Verdict::above(interval, 0.9), Verdict::Failed);
    }
}

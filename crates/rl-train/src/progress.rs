//! How a run tells where it is: one living line on a terminal, a line per twentieth elsewhere.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::metrics::Row;

/// The progress of a run of so many environment steps.
pub struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    first: u64,
    /// Twentieths told so far.
    told: Cell<u64>,
    started: Instant,
}

impl Progress {
    /// For a run of `total` steps that has made `first`.
    pub fn new(total: u64, first: u64) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:24} {percent:>3}%  {msg}  ETA {eta}");
            let bar = ProgressBar::new(total).with_style(style.expect("the template is well formed"));
            bar.with_position(first)
        });
        if let Some(bar) = &bar {
            bar.reset_eta();
        }
        let told = Cell::new(20 * first / total.max(1));
        Self { bar, total, first, told, started: Instant::now() }
    }

    /// Tells what `row` says, after the number that matters most.
    pub fn show(&self, row: &Row, headline: Option<(&str, f64)>) {
        let twentieths = 20 * row.step.min(self.total) / self.total.max(1);
        if self.bar.is_none() && self.told.replace(twentieths) == twentieths {
            return;
        }
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        let rate = (row.step - self.first) as f64 / seconds;
        let text = message(row, headline, rate);
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.set_position(row.step);
            }
            None => {
                let left = self.total.saturating_sub(row.step) as f64 / rate;
                say!("{:>3}%  {text}  ETA {}", 5 * twentieths, clock(left));
            }
        }
    }

    /// Takes the line off the terminal.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn message(row: &Row, headline: Option<(&str, f64)>, rate: f64) -> String {
    let mut text = format!("step {}", grouped(row.step));
    let mut add = |name: &str, value: Option<f64>, digits: usize| {
        if let Some(value) = value {
            // What a fixed number of digits would show as 0 shows its magnitude.
            let small = value != 0.0 && value.abs() < 0.1f64.powi(digits as i32);
            text +=
                &if small { format!("  {name} {value:.1e}") } else { format!("  {name} {value:.digits$}") };
        }
    };
    if let Some((name, value)) = headline {
        add(name, Some(value), if value.abs() < 10.0 { 3 } else { 1 });
    }
    add("KL", row.get("losses/kl").or(row.get("losses/approx_kl")), 4);
    add("entropy", row.get("losses/entropy"), 2);
    add("clip", row.get("losses/clipfrac"), 2);
    add("β", row.get("objective/kl_coef"), 4);
    text + &format!("  {} steps/s", grouped(rate as u64))
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds as `m:ss` or `h:mm:ss`.
fn clock(seconds: f64) -> String {
    let s = seconds.round() as u64;
    if s < 3600 {
        format!("{}:{:02}", s / 60, s % 60)
    } else {
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_times_read_as_clocks() {
        assert_eq!(
            [grouped(0), grouped(999), grouped(1000), grouped(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([clock(9.4), clock(75.0), clock(3661.0)], ["0:09", "1:15", "1:01:01"]);
    }
}

//! The dashboard: where the run is, how its numbers move, and the verdict so far, in words.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline, Wrap};

use crate::metrics::Timing;
use crate::progress::grouped;
use crate::recording::{Columns, Trend};
use crate::report::verdict::{Facts, Verdict, judge, number};

/// What is shown, in order; of each line the first metric that the run has.
const SHOWN: [(&str, &[&str]); 5] = [
    ("reward", &["charts/episodic_return", "objective/rlhf_reward", "rewards/margins", "rewards/accuracies"]),
    ("gold", &["objective/gold"]),
    ("KL", &["objective/kl", "losses/kl", "losses/approx_kl"]),
    ("entropy", &["losses/entropy", "responses/token_entropy"]),
    ("β", &["objective/ref_coef", "objective/kl_coef"]),
];

/// Messages that stay.
const NOTES: usize = 50;

/// A run as a screen shows it.
pub struct Dashboard {
    name: String,
    facts: Facts,
    columns: Columns,
    /// Steps per second of each update.
    rates: Vec<f64>,
    elapsed_s: f64,
    verdict: Verdict,
    /// Rows that the verdict has seen.
    judged: usize,
    notes: Vec<String>,
    /// How much of `metrics.jsonl` has been read.
    read: u64,
    /// Whether the run stands still.
    pub paused: bool,
}

impl Dashboard {
    /// A run called `name`, before its first update.
    pub fn new(name: &str, facts: Facts) -> Self {
        let columns = Columns::default();
        let verdict = judge(&facts, &columns);
        let (rates, notes) = (vec![], vec![]);
        Self {
            name: name.into(),
            facts,
            columns,
            rates,
            elapsed_s: 0.0,
            verdict,
            judged: 0,
            notes,
            read: 0,
            paused: false,
        }
    }

    /// Adds one line of `metrics.jsonl`.
    pub fn feed(&mut self, row: &[u8], timing: Option<Timing>) {
        self.columns.push(row);
        self.time(timing);
    }

    /// Adds what the clock said.
    pub fn time(&mut self, timing: Option<Timing>) {
        if let Some(timing) = timing {
            self.rates.push(timing.steps_per_s);
            self.elapsed_s = timing.elapsed_s;
        }
    }

    /// Reads what the run has written since the last time; true if there was something.
    pub fn catch_up(&mut self, folder: &Path) -> bool {
        let Ok(mut file) = std::fs::File::open(folder.join("metrics.jsonl")) else { return false };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if length < self.read {
            // Resumed from an earlier checkpoint: the file was cut.
            (self.read, self.columns, self.judged) = (0, Columns::default(), 0);
        }
        let mut text = vec![];
        if file.seek(SeekFrom::Start(self.read)).is_err() || file.read_to_end(&mut text).is_err() {
            return false;
        }
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        for line in text[..whole].split_inclusive(|&byte| byte == b'\n') {
            self.columns.push(line);
        }
        self.read += whole as u64;
        whole > 0
    }

    /// Says something.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
        let extra = self.notes.len().saturating_sub(NOTES);
        self.notes.drain(..extra);
    }

    /// Everything that was said.
    pub fn said(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    /// Judges again if there are new rows; seldom enough that it costs nothing beside the run.
    pub fn judge(&mut self) {
        let rows = self.columns.len();
        if rows > self.judged + self.judged / 50 {
            self.judged = rows;
            self.verdict = judge(&self.facts, &self.columns);
            // A run that goes on has no summary, and need not be told so.
            self.verdict
                .findings
                .retain(|finding| !finding.evidence.starts_with("The run has no summary yet"));
        }
    }

    /// Draws everything that fits.
    pub fn draw(&self, frame: &mut Frame) {
        let shown: Vec<(&str, &str)> = SHOWN
            .iter()
            .filter_map(|(what, names)| {
                Some((*what, *names.iter().find(|name| self.columns.get(name).is_some())?))
            })
            .collect();
        let lines = shown.len() as u16 + 1;
        let [head, gauge, curves, words, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(2 * lines + 2),
            Constraint::Min(4),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(
            Line::from(self.name.clone()).style(Style::new().add_modifier(Modifier::BOLD)),
            head,
        );
        self.draw_gauge(frame, gauge);
        let block = Block::bordered().title(" curves ");
        let rows = Layout::vertical(vec![Constraint::Length(2); lines as usize]).split(block.inner(curves));
        frame.render_widget(block, curves);
        for ((what, metric), area) in shown.iter().zip(rows.iter()) {
            self.draw_metric(frame, *area, what, metric);
        }
        let last = rows[shown.len()];
        draw_curve(frame, last, "steps/s", &self.rates, self.rates.last().copied(), None);
        self.draw_words(frame, words);
        let paused = if self.paused { "  PAUSED" } else { "" };
        let help = format!("p pause   c checkpoint   q stop{paused}");
        frame.render_widget(Line::from(help).style(Style::new().add_modifier(Modifier::DIM)), keys);
    }

    fn draw_gauge(&self, frame: &mut Frame, area: Rect) {
        let step = self.columns.steps.last().copied().unwrap_or(0);
        let total = self.facts.total_steps.unwrap_or(step).max(1);
        let share = (step as f64 / total as f64).clamp(0.0, 1.0);
        let left = if share > 0.0 { self.elapsed_s * (1.0 - share) / share } else { 0.0 };
        let eta = if self.elapsed_s > 0.0 { format!("  {left:.0} s left") } else { String::new() };
        let label = format!("step {} of {}{eta}", grouped(step), grouped(total));
        frame.render_widget(Gauge::default().ratio(share).label(label).gauge_style(Color::Blue), area);
    }

    fn draw_metric(&self, frame: &mut Frame, area: Rect, what: &str, metric: &str) {
        let Some(column) = self.columns.get(metric) else { return };
        let trend = Trend::reduced(&self.columns, column, usize::from(area.width.saturating_sub(26)).max(8));
        let values: Vec<f64> = trend.points.iter().map(|point| point.mean).collect();
        let held = what == "KL" && metric != "losses/approx_kl";
        let target = self.facts.kl.as_ref().and_then(|rule| rule.target).filter(|_| held);
        draw_curve(frame, area, what, &values, column.values.last().copied(), target);
    }

    fn draw_words(&self, frame: &mut Frame, area: Rect) {
        let colour = if self.verdict.fault().is_some() { Color::Red } else { Color::Green };
        let mut lines = vec![
            Line::from(Span::styled(
                self.verdict.title.clone(),
                Style::new().fg(colour).add_modifier(Modifier::BOLD),
            )),
            Line::from(self.verdict.course.clone()),
        ];
        for finding in self.verdict.findings.iter().filter(|finding| finding.fault.is_fault()) {
            lines.push(
                Line::from(format!("{}: {}", finding.fault.title(), finding.evidence)).style(Color::Red),
            );
            lines.push(Line::from(format!("Try: {}", finding.cure)));
        }
        lines.extend(
            self.notes.iter().rev().take(5).map(|note| Line::from(note.clone()).style(Color::Yellow)),
        );
        let block = Block::bordered().title(" verdict so far ");
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }).block(block), area);
    }
}

/// A name, the last value, and a curve of what fits.
fn draw_curve(
    frame: &mut Frame,
    area: Rect,
    what: &str,
    values: &[f64],
    last: Option<f64>,
    target: Option<f64>,
) {
    let [words, curve] = Layout::horizontal([Constraint::Length(26), Constraint::Min(4)]).areas(area);
    let last = last.map_or("–".to_owned(), number);
    let target = target.map_or(String::new(), |target| format!("target {}", number(target)));
    frame.render_widget(
        Paragraph::new(vec![Line::from(format!("{what:<8}{last}")), Line::from(format!("        {target}"))]),
        words,
    );
    let width = usize::from(curve.width).max(1);
    let tail = &values[values.len().saturating_sub(width)..];
    let finite = || tail.iter().copied().filter(|value| value.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    // The lowest value keeps a bar of its own: no bar at all would mean no number.
    let height = |value: &f64| {
        if !value.is_finite() {
            0
        } else if high > low {
            1 + (15.0 * (value - low) / (high - low)) as u64
        } else {
            8
        }
    };
    let bars: Vec<u64> = tail.iter().map(height).collect();
    frame.render_widget(Sparkline::default().data(&bars).max(16).style(Color::Cyan), curve);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(dashboard: &Dashboard, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| dashboard.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn sick() -> Dashboard {
        let config =
            "total_steps = 20000\n[algo.rollout.kl]\nkind = \"proportional\"\nbeta = 1.0\ntarget = 1.3\n";
        let mut dashboard = Dashboard::new("runs/mine", Facts::intended(&config.parse().unwrap()));
        for update in 1..=100u64 {
            let (step, t) = (100 * update, update as f64 / 100.0);
            let row = format!(
                r#"{{"step":{step},"update":{update},"objective/kl":{},"objective/scores":{t},"objective/gold":{},"objective/rlhf_reward":{t},"objective/ref_coef":0.5}}"#,
                20.0 * t,
                1.0 - 3.0 * (t - 0.4) * (t - 0.4)
            );
            let timing = Timing { step, update, steps_per_s: 1000.0 + t, elapsed_s: t, cpu_s: None };
            dashboard.feed(row.as_bytes(), Some(timing));
        }
        dashboard.judge();
        dashboard
    }

    #[test]
    fn a_dashboard_says_where_the_run_is_and_what_is_wrong() {
        let mut dashboard = sick();
        dashboard.note("guard: something".into());
        let text = screen(&dashboard, 120, 40);
        for words in [
            "runs/mine",
            "step 10,000 of 20,000",
            "KL      20",
            "target 1.3",
            "β       0.5",
            "steps/s 1001",
            "Cheating its reward model",
            "Exploding KL",
            "Try:",
            "guard: something",
            "p pause   c checkpoint   q stop",
            "█",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        dashboard.paused = true;
        assert!(screen(&dashboard, 120, 40).contains("PAUSED"));
        assert_eq!(dashboard.said().collect::<Vec<_>>(), ["guard: something"]);
    }

    #[test]
    fn any_window_can_be_drawn_even_before_the_first_update() {
        let empty = Dashboard::new("x", Facts::default());
        for (width, height) in [(1, 1), (10, 3), (27, 12), (80, 24), (300, 100)] {
            screen(&empty, width, height);
            screen(&sick(), width, height);
        }
    }

    #[test]
    fn a_file_is_followed_while_it_grows_and_read_again_when_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut dashboard = Dashboard::new("x", Facts::default());
        assert!(!dashboard.catch_up(folder.path()));
        let row = |update: u64| format!("{{\"step\":{update},\"update\":{update},\"a\":1}}\n");
        std::fs::write(&path, row(1) + &row(2) + "{\"step\":3,").unwrap();
        assert!(dashboard.catch_up(folder.path()) && dashboard.columns.updates == [1, 2]);
        assert!(!dashboard.catch_up(folder.path()));
        std::fs::write(&path, row(1) + &row(2) + &row(3)).unwrap();
        assert!(dashboard.catch_up(folder.path()) && dashboard.columns.updates == [1, 2, 3]);
        std::fs::write(&path, row(1)).unwrap();
        assert!(dashboard.catch_up(folder.path()) && dashboard.columns.updates == [1]);
    }
}

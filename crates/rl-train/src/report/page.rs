//! The page: the verdict in words first, then the pictures, then what made them.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value as Json;

use super::figures::{Figure, against_kl, further, over_time};
use super::group::{differences, groups};
use super::html::{details, escaped, prose, table, terms};
use super::verdict::{Finding, Verdict, number};
use crate::recording::Recording;

const STYLE: &str = include_str!("style.css");

/// Runs beyond which the findings of healthy ones are folded.
const OPEN: usize = 4;

/// The report on these runs, as one file without any request.
///
/// # Errors
/// If a picture cannot be drawn.
pub fn page(runs: &[Recording]) -> Result<String> {
    let all: Vec<&Recording> = runs.iter().collect();
    let groups = groups(&all);
    let verdicts: Vec<Verdict> = runs.iter().map(Verdict::of).collect();
    let title = match runs {
        [run] => run.name.clone(),
        runs => format!("{} runs", runs.len()),
    };
    let mut out = String::with_capacity(1 << 18);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\
         <title>{0}: {1}</title><link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head><body>\
         <header><a class=\"skip\" href=\"#verdict\">To the verdict</a><h1>{0}</h1><p class=\"quiet\">{2}</p></header><main>",
        escaped(&title),
        escaped(&headline(&verdicts)),
        escaped(&about(runs)),
    );
    out += "<section id=\"verdict\" aria-labelledby=\"verdict-title\"><h2 id=\"verdict-title\">Verdict</h2>";
    if runs.len() > 1 {
        out += &overview(runs, &verdicts);
    }
    for (run, verdict) in runs.iter().zip(&verdicts) {
        out += &judged(run, verdict, runs.len());
    }
    out += "</section>";

    section(&mut out, "curves", "Curves", &drawn(over_time(&groups))?);
    if let Some(figure) = against_kl(&groups) {
        section(&mut out, "overoptimisation", "Reward against distance", &drawn(vec![figure])?);
    }
    let samples: String = runs.iter().map(super::samples::table_of).collect();
    if !samples.is_empty() {
        section(&mut out, "samples", "Samples", &samples);
    }
    let further = further(&groups);
    if !further.is_empty() {
        section(&mut out, "further", "Further metrics", &details("Show them", &drawn(further)?));
    }
    section(&mut out, "configuration", "Configuration", &configuration(&all));
    section(&mut out, "environment", "Environment and versions", &environments(runs));
    section(&mut out, "again", "How to make it again", &again(runs));
    let _ = writeln!(
        out,
        "</main><footer class=\"quiet\"><p>Made by rl-train {}. What each metric means: docs/metrics.md.</p></footer></body></html>",
        env!("CARGO_PKG_VERSION")
    );
    Ok(out)
}

fn section(out: &mut String, id: &str, title: &str, inner: &str) {
    let _ = write!(
        out,
        "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{}</h2>{inner}</section>",
        escaped(title)
    );
}

fn drawn(figures: Vec<Figure>) -> Result<String> {
    let each: Result<Vec<String>> = figures.iter().map(Figure::html).collect();
    Ok(format!("<div class=\"figures\">{}</div>", each?.concat()))
}

fn headline(verdicts: &[Verdict]) -> String {
    match verdicts {
        [verdict] => verdict.title.clone(),
        verdicts => {
            let well = verdicts.iter().filter(|verdict| verdict.fault().is_none()).count();
            format!("{well} of {} healthy", verdicts.len())
        }
    }
}

/// What was run, in a line.
fn about(runs: &[Recording]) -> String {
    let of = |key: &str| {
        let value = runs[0].setting(key).and_then(toml::Value::as_str).unwrap_or("?");
        runs.iter().all(|run| run.setting(key).and_then(toml::Value::as_str) == Some(value)).then_some(value)
    };
    let (algorithm, task) =
        (of("algo.kind").unwrap_or("several algorithms"), of("task.kind").unwrap_or("several tasks"));
    let steps = runs.iter().filter_map(|run| run.columns.steps.last()).max().copied().unwrap_or(0);
    format!("{algorithm} on {task}, {} steps", crate::progress::grouped(steps))
}

/// A row per run.
fn overview(runs: &[Recording], verdicts: &[Verdict]) -> String {
    let head = ["run", "verdict", "seed", "steps", "result"].map(str::to_owned);
    let rows: Vec<Vec<String>> = runs
        .iter()
        .zip(verdicts)
        .map(|(run, verdict)| {
            let seed = run.seed().map_or("–".into(), |seed| seed.to_string());
            let steps = run.columns.steps.last().map_or("0".into(), u64::to_string);
            let result =
                result(run).map_or("–".into(), |(name, value)| format!("{name} {}", number(value)));
            vec![run.name.clone(), verdict.title.clone(), seed, steps, result]
        })
        .collect();
    table("The runs and their verdicts", &head, &rows)
}

/// The number of a summary that stands for the run.
pub fn result(run: &Recording) -> Option<(&'static str, f64)> {
    let names =
        [("eval_return_mean", "return"), ("gold", "gold"), ("accuracy", "accuracy"), ("loss", "loss")];
    names.into_iter().find_map(|(key, name)| Some((name, run.result(key)?)))
}

fn judged(run: &Recording, verdict: &Verdict, runs: usize) -> String {
    let sick = if verdict.fault().is_some() { " sick" } else { "" };
    let mut inner = String::new();
    for finding in &verdict.findings {
        inner += &found(finding);
    }
    if !run.damage.is_empty() {
        let _ = write!(inner, "<p>Could not be read: {}.</p>", escaped(&run.damage.join("; ")));
    }
    if runs > OPEN && sick.is_empty() && !inner.is_empty() {
        inner = details("Remarks", &inner);
    }
    let name = if runs > 1 { format!("{}: ", run.name) } else { String::new() };
    format!(
        "<article class=\"verdict{sick}\"><h3>{}{}</h3><p>{}</p>{inner}</article>",
        escaped(&name),
        escaped(&verdict.title),
        escaped(&verdict.course)
    )
}

fn found(finding: &Finding) -> String {
    let class = if finding.fault.is_fault() { " fault" } else { "" };
    let since = finding.since.map_or(String::new(), |update| format!(", since update {update}"));
    format!(
        "<div class=\"finding{class}\"><h4>{}{since}</h4><p>{}</p><p><strong>What to try:</strong> {}</p></div>",
        escaped(finding.fault.title()),
        prose(&finding.evidence),
        prose(&finding.cure)
    )
}

/// One run: its settings. Several: where they differ, then the settings of the first.
fn configuration(runs: &[&Recording]) -> String {
    let head = ["setting".to_owned(), "value".to_owned()];
    let settings: Vec<Vec<String>> =
        runs[0].settings().into_iter().map(|(key, value)| vec![key, value]).collect();
    if runs.len() == 1 {
        return table("Every setting of the run", &head, &settings);
    }
    let differing = differences(runs);
    let mut out = if differing.is_empty() {
        "<p>The runs do not differ in any setting.</p>".to_owned()
    } else {
        let head: Vec<String> =
            std::iter::once("setting".to_owned()).chain(runs.iter().map(|run| run.name.clone())).collect();
        let rows: Vec<Vec<String>> =
            differing.into_iter().map(|(key, values)| std::iter::once(key).chain(values).collect()).collect();
        table("Settings in which the runs differ", &head, &rows)
    };
    out += &details(&format!("Every setting of {}", runs[0].name), &table("Every setting", &head, &settings));
    out
}

fn environments(runs: &[Recording]) -> String {
    let mut out = String::new();
    for run in runs.iter().take(if runs.len() > OPEN { 1 } else { runs.len() }) {
        let mut pairs: Vec<(String, String)> =
            run.record.iter().map(|(key, value)| (key.replace('_', " "), plain(value))).collect();
        for (key, name) in [
            ("wall_s", "seconds"),
            ("cpu_s", "CPU seconds"),
            ("steps_per_s", "steps per second"),
            ("peak_rss_mb", "most memory, MB"),
        ] {
            pairs.extend(run.result(key).map(|value| (name.to_owned(), number(value))));
        }
        if let (None, Some(timing)) = (&run.summary, run.timing) {
            pairs.push(("seconds so far".into(), number(timing.elapsed_s)));
            pairs.push(("steps per second".into(), number(timing.steps_per_s)));
        }
        if runs.len() > 1 {
            let _ = write!(out, "<h3>{}</h3>", escaped(&run.name));
        }
        out += &terms(&pairs);
    }
    out
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        Json::Null => "unknown".into(),
        other => other.to_string(),
    }
}

fn again(runs: &[Recording]) -> String {
    let mut lines = String::new();
    for run in runs.iter().take(20) {
        if let Some(revision) = run.record.get("git_revision").and_then(Json::as_str) {
            let _ = writeln!(lines, "git checkout {}", revision.trim_end_matches("-dirty"));
        }
        let path = run.path.display();
        let _ = writeln!(lines, "cargo xtask train {path}/config.toml --out {path}-again");
    }
    let dirty = runs.iter().any(|run| {
        run.record.get("git_revision").and_then(Json::as_str).is_some_and(|it| it.ends_with("-dirty"))
    });
    let note = if dirty { "<p>The source tree had changes that were not committed.</p>" } else { "" };
    format!(
        "<p>The resolved config alone gives the run again: on the same device, the same metrics byte for byte.</p>{note}<pre tabindex=\"0\"><code>{}</code></pre>",
        escaped(&lines)
    )
}

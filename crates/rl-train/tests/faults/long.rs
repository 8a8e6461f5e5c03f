//! Long runs: memory, file handles and speed stay what they were at the start.
//!
//! With `RL_SLOW=1`; `RL_LONG_STEPS` (2,000,000) and `RL_LONG_UPDATES` (2,000) make them longer.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::place::Place;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Resident memory, kB, and open files of a process.
fn look(process: u32) -> Option<(f64, usize)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
    Some((line.trim().trim_end_matches("kB").trim().parse().ok()?, files))
}

/// Runs `line`, looks twenty times a second, and requires that nothing grows after the first fifth and nothing slows down.
fn stays_level(name: &str, line: &str) {
    if std::env::var_os("RL_SLOW").is_none() {
        return println!("skipped: slow (set RL_SLOW=1, or cargo xtask test --slow)");
    }
    let place = Place::new();
    let mut child = place.start(&format!("train {line} --out run"));
    let mut seen = vec![];
    while child.try_wait().unwrap().is_none() {
        seen.extend(look(child.id()));
        sleep(Duration::from_millis(50));
    }
    assert!(child.wait().unwrap().success());

    let fifth = seen.len() / 5;
    let mean =
        |part: &[(f64, usize)]| part.iter().map(|(kb, _)| kb / 1024.0).sum::<f64>() / part.len() as f64;
    let (second, last) = (mean(&seen[fifth..2 * fifth]), mean(&seen[4 * fifth..]));
    let files = |part: &[(f64, usize)]| part.iter().map(|(_, files)| *files).max().unwrap_or(0);
    let (early, late) = (files(&seen[fifth..2 * fifth]), files(&seen[4 * fifth..]));

    let text = fs::read_to_string(place.path("run/timing.jsonl")).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Steps per CPU second: other processes of the machine do not count.
    let rate = |part: &[Value]| {
        let of = |row: &Value, key: &str| row[key].as_f64().unwrap();
        let (a, b) = (&part[0], &part[part.len() - 1]);
        (of(b, "step") - of(a, "step")) / (of(b, "cpu_s") - of(a, "cpu_s"))
    };
    let part = rows.len() / 5;
    let (first, end) = (rate(&rows[part / 5..part + part / 5]), rate(&rows[4 * part..]));
    let metrics = fs::metadata(place.path("run/metrics.jsonl")).unwrap().len();
    println!(
        "{name}: {} updates; memory {second:.1} to {last:.1} MB, files {early} to {late}, {first:.0} to {end:.0} steps per \
         CPU second, metrics {:.0} bytes an update",
        rows.len(),
        metrics as f64 / rows.len() as f64
    );
    assert!(last <= 1.03 * second + 1.0, "memory grows from {second:.1} to {last:.1} MB");
    assert!(late <= early, "open files grow from {early} to {late}");
    assert!(end >= 0.9 * first, "{first:.0} steps per CPU second became {end:.0}");
}

#[test]
fn ppo_stays_level() {
    let steps = number("RL_LONG_STEPS", 2_000_000);
    stays_level("PPO", &format!("ppo-cart-pole --set total_steps={steps}"));
}

#[test]
fn rlhf_stays_level() {
    let responses = 256 * number("RL_LONG_UPDATES", 2000);
    let line = format!("rlhf-token-world --set total_steps={responses} --set eval.every_steps=0");
    stays_level("RLHF", &line);
}

//! `cargo xtask bench lm`: language-model steps beside their Python counterparts, turn by turn, on one thread.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{cargo, root};

/// Where `shared/bench/python` lies.
const SCRIPTS: &str = "RL_BENCH_SCRIPTS";
/// A folder with `trl==1.0.0`, the last that has a PPO trainer; without it that pair is left out.
const OLD_TRL: &str = "RL_BENCH_TRL1";
const ROUNDS: usize = 3;

/// Our task, how often per round, and what others call it: a script and its arguments.
type Pair = (&'static str, &'static str, &'static str, &'static [&'static str]);

const PAIRS: [Pair; 8] = [
    ("generate", "3", "bench_trl.py", &["--task", "generate", "--steps", "8"]),
    ("generate", "3", "bench_trl.py", &["--task", "generate_hand"]),
    ("train", "6", "train_step.py", &["6"]),
    ("dpo", "4", "bench_trl.py", &["--task", "dpo", "--steps", "8", "--warm", "2"]),
    ("dpo", "4", "bench_trl.py", &["--task", "dpo_torch", "--steps", "6", "--warm", "2"]),
    ("reward", "4", "bench_trl.py", &["--task", "reward", "--steps", "8", "--warm", "2"]),
    ("reward", "4", "bench_trl.py", &["--task", "reward_torch", "--steps", "6", "--warm", "2"]),
    ("rlhf", "2", "bench_trl_ppo.py", &["--iters", "4"]),
];

/// CPU milliseconds of a step, and megabytes at the peak.
#[derive(Clone, Copy)]
struct Figure {
    ms: f64,
    mb: f64,
}

/// Measures every pair, or those of one of our tasks.
pub fn run(task: Option<&str>) -> Result<ExitCode> {
    let pairs: Vec<&Pair> = PAIRS.iter().filter(|pair| task.is_none_or(|task| task == pair.0)).collect();
    ensure!(
        !pairs.is_empty(),
        "no task `{}`; there are generate, train, dpo, reward and rlhf",
        task.unwrap_or("")
    );
    let scripts = PathBuf::from(env::var_os(SCRIPTS).with_context(|| {
        format!("`{SCRIPTS}` is not set: the folder with bench_trl.py (and RL_PYTHON, a Python with torch and trl)")
    })?);
    println!(
        "{:<9}{:<40}{:>10}{:>10}{:>7}{:>10}{:>10}",
        "task", "beside", "ours ms", "theirs", "ratio", "ours MB", "theirs"
    );
    for (ours, steps, script, args) in pairs {
        let old = env::var_os(OLD_TRL);
        if script.contains("ppo") && old.is_none() {
            println!("{ours:<9}skipped: `{OLD_TRL}` names no folder with trl 1.0.0");
            continue;
        }
        let own = root().join("xtask/src/bench").join(script);
        let file = if own.is_file() { own } else { scripts.join(script) };
        let mut path = scripts.clone().into_os_string();
        if let Some(old) = old.filter(|_| script.contains("ppo")) {
            path.push(":");
            path.push(old);
        }
        let (mut us, mut them) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            us.push(figure(cargo("bench").args(["--workspace", "--bench", "lm", "--", ours, steps]))?);
            let python = env::var_os("RL_PYTHON").unwrap_or_else(|| "python3".into());
            let results = env::temp_dir().join("rl_bench_results.jsonl");
            let mut command = Command::new(python);
            command.arg(&file).args(*args).env("PYTHONPATH", &path).env("BENCH_RESULTS", results);
            them.push(figure(command.env("BENCH_OUT", env::temp_dir().join("rl_bench_out")))?);
        }
        let (us, them) = (median(us), median(them));
        let beside = format!("{script} {}", args.get(1).unwrap_or(&""));
        let ratio = them.ms / us.ms;
        println!(
            "{ours:<9}{beside:<40}{:>10.0}{:>10.0}{ratio:>7.2}{:>10.0}{:>10.0}",
            us.ms, them.ms, us.mb, them.mb
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The first line of JSON with a figure that `command` prints.
fn figure(command: &mut Command) -> Result<Figure> {
    command.env("RAYON_NUM_THREADS", "1").env("OMP_NUM_THREADS", "1");
    let output = command.output().with_context(|| format!("could not start {:?}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed:\n{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    let read = |line: &str| {
        let json: Value = serde_json::from_str(line).ok()?;
        // Ours is a mean, for the clock of a process ticks in hundredths; theirs is a median.
        let ms = json["cpu_ms"].as_f64().or(json["cpu_ms_med"].as_f64())?;
        Some(Figure { ms, mb: json["peak_rss_mb"].as_f64()? })
    };
    text.lines().find_map(read).with_context(|| format!("{command:?} printed no figure:\n{text}"))
}

/// The middle of each number.
fn median(figures: Vec<Figure>) -> Figure {
    let middle = |of: fn(&Figure) -> f64| {
        let mut all: Vec<f64> = figures.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Figure { ms: middle(|f| f.ms), mb: middle(|f| f.mb) }
}

//! A folder with run files of every kind, what is in it, and when two runs are the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const ENVS: &str = "[model]\nhidden = [8]\n[eval]\nepisodes = 3\nevery_steps = 1000\n\
                    [checkpoint]\nevery_updates = 3\nkeep_best = 1\n";
const TEXTS: &str = "[lm]\nmodel = \"lm\"\n[data]\ntrain = \"pairs.jsonl\"\neval = \"held-out.jsonl\"\n\
                     prompts = \"prompts.txt\"\ngold = \"vader\"\nmax_prompt_tokens = 16\nmax_answer_tokens = 8\nbatch = 4\n\
                     [checkpoint]\nevery_updates = 2\nkeep_best = 1\n";

/// A run of each kind, about a second long.
pub const RUNS: [(&str, &str, &str); 8] = [
    (
        "ppo",
        ENVS,
        "total_steps = 9600\ntask = { kind = \"cart_pole\", envs = 2 }\nnormalize = { obs_clip = 5, reward_clip = 5 }\n\
         algo = { kind = \"ppo\", rollout_steps = 16, epochs = 4, minibatch_rows = 16, \
         kl = { kind = \"band\", beta = 0.1, target = 0.01 } }\n",
    ),
    (
        "trpo",
        ENVS,
        "total_steps = 6400\ntask = { kind = \"pendulum\", envs = 2 }\nnormalize = { obs_clip = 5 }\n\
         algo = { kind = \"trpo\", rollout_steps = 16, value_minibatch_rows = 16, fisher_share = 0.5 }\n",
    ),
    (
        "dqn",
        ENVS,
        "total_steps = 9600\ntask = { kind = \"cart_pole\", envs = 2 }\n\
         algo = { kind = \"dqn\", rollout_steps = 16, gradient_steps = 4, minibatch_rows = 16, replay = 500, \
         learning_starts = 100, target_every = 3, target_mix = 0.5, \
         epsilon = { kind = \"ramp\", from = 1, to = 0.1, over = 0.5 } }\n",
    ),
    (
        "sft",
        "[start.from]\nkind = \"scratch\"\nhidden = 16\nlayers = 1\nheads = 2\nkv_heads = 1\ncontext = 64\n\
         [eval]\nevery_steps = 80\nepisodes = 10\n[checkpoint]\nevery_updates = 3\nkeep_best = 1\n",
        "total_steps = 320\ntask = { kind = \"corpus\" }\ncorpus = { kind = \"stories\", stories = 60 }\n\
         algo = { kind = \"sft\", batch = 4, micro_batch = 2, max_tokens = 64, optimizer = { learning_rate = 1e-2 } }\n",
    ),
    (
        "reward_model",
        TEXTS,
        "total_steps = 120\ntask = { kind = \"text\" }\neval = { every_steps = 24, episodes = 3 }\n\
         algo = { kind = \"reward_model\", optimizer = { learning_rate = 1e-3 } }\n",
    ),
    (
        "dpo",
        TEXTS,
        "total_steps = 120\ntask = { kind = \"text\" }\neval = { every_steps = 24, episodes = 3 }\n\
         algo = { kind = \"dpo\", optimizer = { learning_rate = 1e-3 } }\n",
    ),
    (
        "rlhf_texts",
        TEXTS,
        "total_steps = 80\ntask = { kind = \"text\" }\neval = { every_steps = 24, episodes = 3 }\n\
         guards = { cut_ceiling = \"off\" }\n\
         algo = { kind = \"rlhf_ppo\", epochs = 2, minibatch_rows = 4, rollout = { prompts = 4 }, \
         optimizer = { learning_rate = 1e-3 } }\n",
    ),
    (
        "rlhf_world",
        "[eval]\nevery_steps = 1024\n[checkpoint]\nevery_updates = 3\nkeep_best = 1\n",
        "total_steps = 6400\ntask = { kind = \"token_world\" }\n\
         token_world = { world = \"small\", reward = \"unigram\", pairs = 200, policy = \"bigram\" }\n\
         algo = { kind = \"rlhf_ppo\", minibatch_rows = 64, rollout = { prompts = 64 }, \
         optimizer = { learning_rate = 0.015 } }\n",
    ),
];

/// A folder with `NAME.toml` of each of [`RUNS`], and what they read.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/hf");
        fs::create_dir(dir.path().join("lm")).unwrap();
        for file in
            ["llama_tied/config.json", "llama_tied/model.safetensors", "tokenizer_bpe300_gpt2/tokenizer.json"]
        {
            let from = golden.join(file);
            fs::copy(&from, dir.path().join("lm").join(from.file_name().unwrap())).unwrap();
        }
        let pair = |i| {
            format!(
                "{{\"prompt\": \"day {i} was\", \"chosen\": \" good and happy\", \"rejected\": \" bad {i}\"}}\n"
            )
        };
        let held_out = "{\"prompt\": \"night was\", \"chosen\": \" happy\", \"rejected\": \" sad\"}\n";
        let files = [
            ("pairs.jsonl", (0..10).map(pair).collect()),
            ("held-out.jsonl", held_out.to_owned()),
            ("prompts.txt", "day 1 was\nnight was\n\nnoon was\n".to_owned()),
        ];
        files.iter().for_each(|(name, text)| fs::write(dir.path().join(name), text).unwrap());
        for (name, tables, keys) in RUNS {
            fs::write(dir.path().join(format!("{name}.toml")), [keys, tables].concat()).unwrap();
        }
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `rl-train` with the words of `line` as its arguments.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rl-train"));
        command.current_dir(self.dir.path()).args(line.split_whitespace());
        command
    }

    pub fn start(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    #[track_caller]
    pub fn succeeds(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "`{line}`: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that must fail with `code`, and returns what it said.
    #[track_caller]
    pub fn fails(&self, line: &str, code: i32) -> String {
        let output = self.command(line).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "`{line}`: {said}");
        assert!(!said.contains("panicked"), "`{line}`: {said}");
        said
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// Rows of metrics that the run `out` has written.
    pub fn rows(&self, out: &str) -> usize {
        rows(&self.path(out))
    }

    /// Waits until the run `out` has written `rows` rows.
    #[track_caller]
    pub fn wait_for(&self, out: &str, rows: usize) {
        let started = Instant::now();
        while self.rows(out) < rows {
            assert!(
                started.elapsed() < Duration::from_secs(120),
                "{} rows after two minutes",
                self.rows(out)
            );
            sleep(Duration::from_millis(1));
        }
    }

    /// Both runs ended with the same metrics, the same last and best checkpoints, the same model, and the same findings.
    #[track_caller]
    pub fn assert_same(&self, whole: &str, other: &str) {
        let (want, got) = (self.outcome(whole), self.outcome(other));
        let (names, others): (Vec<_>, Vec<_>) = (want.keys().collect(), got.keys().collect());
        assert_eq!(names, others, "{whole} and {other} left other files");
        for (name, want) in &want {
            assert!(got[name] == *want, "`{name}` differs between {whole} and {other}");
        }
        let updates = |run: &str| -> Vec<u64> {
            let timing = fs::read_to_string(self.path(run).join("timing.jsonl")).unwrap();
            let rows = timing.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            rows.map(|row| row["update"].as_u64().unwrap()).collect()
        };
        assert_eq!(updates(whole), updates(other), "the timings of {other} have gaps or repetitions");
    }

    /// Every file that must not depend on what happened meanwhile.
    fn outcome(&self, run: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(run);
        let mut files = vec![];
        list(&root, &mut files);
        let name = |path: &Path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let last = files.iter().filter(|path| name(path).starts_with("checkpoint/")).max().unwrap().clone();
        let mut outcome = BTreeMap::new();
        for path in &files {
            let name = name(path);
            assert!(!name.ends_with(".partial"), "{run} left {name}");
            // The report shows times and the folder's name.
            let told_apart = ["report.html", "timing.jsonl", "run.json", "run.lock", "config.toml"]
                .contains(&name.as_str());
            if told_apart || (name.starts_with("checkpoint/") && *path != last) {
                continue;
            }
            let mut bytes = fs::read(path).unwrap();
            if name == "summary.json" {
                let mut summary: Value = serde_json::from_slice(&bytes).unwrap();
                for key in ["wall_s", "cpu_s", "steps_per_s", "peak_rss_mb"] {
                    summary.as_object_mut().unwrap().remove(key);
                }
                bytes = summary.to_string().into_bytes();
            }
            outcome.insert(name, bytes);
        }
        outcome
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => list(&path, files),
            path => files.push(path),
        }
    }
}

pub fn rows(run: &Path) -> usize {
    fs::read_to_string(run.join("metrics.jsonl")).map_or(0, |text| text.lines().count())
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The checkpoints of a folder, the oldest first.
pub fn checkpoints(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "safetensors")).collect();
    files.sort();
    files
}

pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

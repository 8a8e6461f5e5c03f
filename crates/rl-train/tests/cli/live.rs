//! The dashboard in a real terminal, by tmux where it is installed.

use std::fs;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Place, checkpoints, text};

/// A terminal that nobody sees.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn new() -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: no tmux");
            return None;
        }
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Some(Self { socket: format!("rl-train-test-{}-{number}", std::process::id()) })
    }

    fn command(&self, words: &[&str]) -> Output {
        Command::new("tmux").args(["-f", "/dev/null", "-L", &self.socket]).args(words).output().unwrap()
    }

    /// Starts a shell in `place` and types `line`.
    fn start(&self, place: &Place, line: &str) {
        let folder = place.dir.path().display().to_string();
        let output = self.command(&[
            "new-session",
            "-d",
            "-x",
            "110",
            "-y",
            "45",
            "-c",
            &folder,
            "env PS1='READY ' sh",
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        self.command(&["send-keys", line, "Enter"]);
    }

    fn screen(&self) -> String {
        text(&self.command(&["capture-pane", "-p"]).stdout)
    }

    fn key(&self, key: &str) {
        self.command(&["send-keys", key]);
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{what} did not come:\n{screen}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Whether the shell has its terminal back: echo and the normal screen.
    #[track_caller]
    fn is_as_before(&self) {
        self.wait("the shell", |screen| !screen.contains("verdict so far") && screen.contains("READY"));
        self.command(&["send-keys", "clear; stty -a; echo done", "Enter"]);
        let screen = self.wait("stty", |screen| screen.contains("\ndone"));
        assert!(screen.contains(" echo ") && screen.contains(" icanon "), "{screen}");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.command(&["kill-server"]);
    }
}

/// Long enough to be looked at.
const LONG: &str = "train tiny.toml --out run --tui --set total_steps=100000000 --set checkpoint.every_updates=1000000 \
                    --set checkpoint.keep=100";

fn line() -> String {
    format!("{} {LONG}", env!("CARGO_BIN_EXE_rl-train"))
}

#[test]
fn keys_pause_save_and_stop_a_run_and_the_terminal_is_given_back() {
    let (Some(tmux), place) = (Tmux::new(), Place::new()) else { return };
    tmux.start(&place, &line());
    let screen =
        tmux.wait("the dashboard", |screen| screen.contains("steps/s") && screen.contains("entropy"));
    assert!(
        screen.contains("verdict so far") && screen.contains("p pause   c checkpoint   q stop"),
        "{screen}"
    );

    tmux.key("p");
    tmux.wait("the pause", |screen| screen.contains("PAUSED"));
    let rows = || fs::read_to_string(place.path("run/metrics.jsonl")).unwrap().lines().count();
    let paused = rows();
    sleep(Duration::from_millis(500));
    assert_eq!(rows(), paused, "a paused run stands still");
    tmux.key("p");
    tmux.wait("the run", |screen| !screen.contains("PAUSED"));

    assert_eq!(checkpoints(&place.path("run")).len(), 1);
    tmux.key("c");
    let started = Instant::now();
    while checkpoints(&place.path("run")).len() < 2 {
        assert!(started.elapsed() < Duration::from_secs(30), "no checkpoint was saved");
        sleep(Duration::from_millis(20));
    }
    tmux.key("q");
    tmux.wait("the end", |screen| screen.contains("go on with: rl-train train --resume run"));
    tmux.is_as_before();
}

#[test]
fn a_signal_ends_a_dashboard_and_the_terminal_is_given_back() {
    let (Some(tmux), place) = (Tmux::new(), Place::new()) else { return };
    tmux.start(&place, &line());
    tmux.wait("the dashboard", |screen| screen.contains("steps/s"));
    let pane = text(&tmux.command(&["list-panes", "-F", "#{pane_pid}"]).stdout);
    let children = Command::new("pgrep").args(["-P", pane.trim()]).output().unwrap();
    let child = text(&children.stdout).trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &child]).status().unwrap().success());
    tmux.wait("the end", |screen| screen.contains("interrupted after update"));
    tmux.is_as_before();
}

#[test]
fn watch_shows_a_run_that_is_finished_and_leaves_it_alone() {
    let (Some(tmux), place) = (Tmux::new(), Place::new()) else { return };
    place.succeeds("train tiny.toml --out run");
    let before = place.bytes("run/metrics.jsonl");
    tmux.start(&place, &format!("{} watch run", env!("CARGO_BIN_EXE_rl-train")));
    let screen = tmux.wait("the note", |screen| screen.contains("the run is finished; q leaves"));
    assert!(screen.contains("step 640 of 640"), "{screen}");
    tmux.key("q");
    tmux.is_as_before();
    assert!(before == place.bytes("run/metrics.jsonl"));
}

#[test]
fn a_dashboard_without_a_terminal_is_refused() {
    let place = Place::new();
    let said = place.fails("train tiny.toml --out run --tui", 2);
    assert!(said.contains("a dashboard needs a terminal") && !place.path("run").exists(), "{said}");
}

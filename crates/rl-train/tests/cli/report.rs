//! Reports from outside: six bad runs that must be named, one file that opens anywhere, and a look at it in a browser.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::Place;
use crate::browser::{Browser, Theme};

/// The six bad runs: what is wrong, and the line that makes it.
const BAD: [(&str, &str); 6] = [
    (
        "Collapsing",
        "rlhf-token-world --set total_steps=20480 --set token_world.reward=gold \
         --set algo.rollout.kl={kind=\"fixed\",beta=0.0}",
    ),
    (
        "Cheating its reward model",
        "rlhf-token-world --set total_steps=20480 --set algo.rollout.kl={kind=\"fixed\",beta=0.0}",
    ),
    (
        "Exploding KL",
        "rlhf-token-world --set total_steps=20480 --set token_world.reward=gold \
         --set algo.rollout.kl={kind=\"proportional\",beta=0.2,target=0.2,max=0.2}",
    ),
    ("Dead learning rate", "ppo-cart-pole --set total_steps=10240 --set algo.optimizer.learning_rate=1e-12"),
    ("Critic not learning", "ppo-cart-pole --set total_steps=20480 --set algo.value_coef=0.0"),
    ("Entropy gone", "a2c-cart-pole --set total_steps=10240 --set algo.optimizer.learning_rate=0.02"),
];

/// What the page says first.
fn verdict(page: &str) -> &str {
    let first = page.split("<article class=\"verdict").nth(1).unwrap();
    first.split("<h3>").nth(1).unwrap().split("</h3>").next().unwrap()
}

#[test]
fn each_of_six_bad_runs_is_called_by_its_name() {
    let place = Place::new();
    for (i, (name, line)) in BAD.iter().enumerate() {
        let said = place.succeeds(&format!("train {line} --out bad{i}"));
        assert!(said.contains(&format!("verdict: {name}; report: bad{i}/report.html")), "{said}");
        let page = place.text(&format!("bad{i}/report.html"));
        assert_eq!(verdict(&page), *name);
        assert!(page.contains("What to try:") && page.contains(", since update "), "{name}");
    }
    let all = "bad0 bad1 bad2 bad3 bad4 bad5";
    place.succeeds(&format!("report {all} --out all.html"));
    let page = place.text("all.html");
    assert!(BAD.iter().all(|(name, _)| page.contains(name)));
    assert!(page.contains("0 of 6 healthy") && page.contains("Settings in which the runs differ"));
}

#[test]
fn a_run_that_learns_is_healthy_and_its_report_needs_nothing_but_itself() {
    let place = Place::new();
    place.succeeds("train rlhf-token-world --out run --set total_steps=25600 --set eval.every_steps=2560");
    let page = place.text("run/report.html");
    assert_eq!(verdict(&page), "Healthy");
    for outside in ["http:", "https:", "src=", "@import", "url(", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for part in [
        "Reward against √KL",
        "the highest gold at this KL",
        "KL against its target, and β",
        "target 1.3",
        "<summary>Numbers: Entropy</summary>",
        "<th scope=\"col\">steps</th>",
        "algo.rollout.kl.target",
        "git revision",
        "rustc",
        "run/config.toml --out run-again",
        "prefers-color-scheme: dark",
        "name=\"viewport\"",
        "<html lang=\"en\">",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<h1>").count(), 1);
    assert_eq!(page.matches("<svg").count(), page.matches("role=\"img\" aria-label=").count());
}

#[test]
fn a_target_that_was_right_for_one_world_is_too_far_for_another_and_the_report_says_so() {
    let place = Place::new();
    let small = "train rlhf-token-world --set total_steps=25600 --set token_world.world=small";
    // Of 4⁴ sentences the proxy has seen too few tokens: gold peaks long before 1.3 nats.
    assert!(place.succeeds(&format!("{small} --out far")).contains("verdict: Cheating its reward model"));
    let near = format!("{small} --out near --set algo.rollout.kl.target=0.3");
    assert!(place.succeeds(&near).contains("verdict: Healthy"));
}

#[test]
fn a_report_is_the_same_whenever_it_is_made() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run");
    let page = place.bytes("run/report.html");
    assert!(place.succeeds("report run").contains("report: run/report.html"));
    assert!(page == place.bytes("run/report.html"));
}

#[test]
fn whatever_stands_in_a_run_folder_is_text_in_the_report() {
    let place = Place::new();
    let evil = "<script>alert(1)</script>";
    folder(
        &place.path("<img src=x>"),
        "seed = 1\n[algo]\nkind = \"<script>alert(2)</script>\"\n",
        30,
        |_| 1.0,
    );
    let run = place.path("<img src=x>");
    fs::write(run.join("run.json"), format!("{{\"device\":\"{evil}\"}}")).unwrap();
    let sample = format!("{{\"update\":0,\"prompt\":\"{evil}\",\"response\":\"{evil}\",\"score\":1.5}}\n");
    fs::write(run.join("samples.jsonl"), sample).unwrap();
    let mut metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    metrics += "no row\n{\"step\":310,\"update\":31,\"<b>\":1}\n";
    fs::write(run.join("metrics.jsonl"), metrics).unwrap();
    let output = place.command("report").arg("<img src=x>").output().unwrap();
    assert!(output.status.success(), "{}", crate::text(&output.stderr));
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(["<script", "<img", "<b>"].iter().all(|tag| !page.contains(tag)));
    assert!(
        page.contains("&lt;script&gt;alert(1)") && page.contains("1 damaged lines, the first is line 31")
    );
}

#[test]
fn what_is_no_run_is_refused() {
    let place = Place::new();
    assert!(place.fails("report nowhere", 2).contains("there is no such folder"));
    fs::create_dir(place.path("empty")).unwrap();
    assert!(place.fails("report empty", 2).contains("it has no `config.toml`"));
    assert!(place.fails("report", 2).contains("<RUN>"));
}

/// Writes a run folder of so many rows by hand.
fn folder(path: &Path, config: &str, rows: u64, value: impl Fn(u64) -> f64) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("config.toml"), config).unwrap();
    let mut text = String::with_capacity(rows as usize * 120);
    for update in 1..=rows {
        let (step, value) = (10 * update, value(update));
        let _ = writeln!(
            text,
            r#"{{"step":{step},"update":{update},"losses/entropy":{value},"losses/approx_kl":0.01,"charts/episodic_return":{value}}}"#
        );
    }
    fs::write(path.join("metrics.jsonl"), text).unwrap();
}

#[test]
fn a_browser_shows_one_run_and_twenty_in_both_themes_without_an_error() {
    let Some(browser) = Browser::find() else { return };
    let place = Place::new();
    for i in 0..20u64 {
        let config = format!("seed = {i}\n[algo]\nclip = 0.{}\n", 1 + i % 7);
        folder(&place.path(&format!("run{i}")), &config, if i == 0 { 10 } else { 400 }, |u| (u + i) as f64);
    }
    let twenty: Vec<String> = (0..20).map(|i| format!("run{i}")).collect();
    place.succeeds("report run0");
    place.succeeds(&format!("report {} --out twenty.html", twenty.join(" ")));
    for page in ["run0/report.html", "twenty.html"] {
        let page = place.path(page);
        let light = browser.picture(&page, Theme::Light, (1280, 2000));
        let dark = browser.picture(&page, Theme::Dark, (1280, 2000));
        assert!(light.brightness() > 0.85, "{}", light.brightness());
        assert!(dark.brightness() < 0.25, "{}", dark.brightness());
        // Text, lines and frames: more than paper.
        assert!(light.busy() > 0.02 && dark.busy() > 0.02, "{} {}", light.busy(), dark.busy());
        let narrow = browser.picture(&page, Theme::Light, (390, 2000));
        assert!(narrow.busy() > 0.02, "{}", narrow.busy());
        assert_eq!(browser.width_of_content(&page, 390), 390, "nothing is wider than a phone");
    }
}

#[test]
fn a_million_rows_open_in_two_seconds() {
    if std::env::var_os("RL_SLOW").is_none() {
        eprintln!("skipped: slow");
        return;
    }
    let place = Place::new();
    folder(&place.path("long"), "seed = 1\n", 1_000_000, |u| (u as f64 * 1e-5).sin());
    let started = Instant::now();
    place.succeeds("report long");
    eprintln!("a report on 1,000,000 rows took {:.1} s to write", started.elapsed().as_secs_f64());
    assert!(place.bytes("long/report.html").len() < 500_000);
    let Some(browser) = Browser::find() else { return };
    let page = place.path("long/report.html");
    let milliseconds = browser.load_time(&page);
    assert!(milliseconds < 2000.0, "{milliseconds} ms");
}

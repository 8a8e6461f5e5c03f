//! Sweeps, comparisons and exports from outside.

use std::fs;
use std::process::Command;

use crate::Place;

const SWEEP: &str = r#"
config = "tiny.toml"
seeds = [1, 2]
cores = 2
[set]
total_steps = 320
[grid]
"algo.clip" = [0.1, 0.3]
"#;

#[test]
fn a_sweep_runs_every_setting_goes_on_where_it_was_and_reports() {
    let place = Place::new();
    fs::write(place.path("sweep.toml"), SWEEP).unwrap();
    let listed = place.succeeds("sweep sweep.toml --list");
    assert!(
        listed.contains("0001-seed2  total_steps=320 algo.clip=0.3 seed=2") && listed.contains("4 runs"),
        "{listed}"
    );
    let said = place.succeeds("sweep sweep.toml --out all");
    assert!(said.contains("4 runs, 4 to do") && said.contains("(4 of 4)"), "{said}");
    let table = place.text("all/sweep.csv");
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(place.text("all/report.html").contains("algo.clip = 0.1 (2 seeds)"));

    // One that was killed after its last checkpoint, and one that never began.
    let before = place.bytes("all/0000-seed1/metrics.jsonl");
    fs::remove_file(place.path("all/0000-seed1/summary.json")).unwrap();
    fs::remove_dir_all(place.path("all/0001-seed2")).unwrap();
    let said = place.succeeds("sweep sweep.toml --out all");
    assert!(said.contains("4 runs, 2 to do"), "{said}");
    assert!(before == place.bytes("all/0000-seed1/metrics.jsonl"));
    assert!(place.path("all/0001-seed2/summary.json").is_file());
    assert!(place.succeeds("sweep sweep.toml --out all").contains("4 runs, 0 to do"));

    let said = place.succeeds("compare all/0000-seed1 all/0000-seed2 all/0001-seed1 all/0001-seed2");
    assert!(
        said.contains("algo.clip = 0.1 (2 seeds)") && said.contains("IQM") && said.contains("beats"),
        "{said}"
    );
    let said = place.fails("compare all/0000-seed1 all/0000-seed2", 1);
    assert!(said.contains("nothing to compare"), "{said}");
    let said = place.succeeds("compare all/0000-seed1 all/0001-seed1 --metric losses/entropy --by algo.clip");
    assert!(
        said.contains("score: losses/entropy, last quarter") && said.contains("algo.clip = 0.3"),
        "{said}"
    );
}

#[test]
fn a_sweep_that_cannot_run_says_why_and_runs_nothing() {
    let place = Place::new();
    fs::write(place.path("bad.toml"), SWEEP.replace("algo.clip", "algo.clipp")).unwrap();
    assert!(place.fails("sweep bad.toml --out all", 2).contains("did you mean `clip`?"));
    assert!(!place.path("all").exists());
    fs::write(place.path("worse.toml"), "config = 3").unwrap();
    assert!(place.fails("sweep worse.toml", 2).contains("config"));
    assert!(place.fails("sweep nothing.toml", 2).contains("cannot read `nothing.toml`"));
}

#[test]
fn a_run_of_a_sweep_that_fails_is_named_and_the_others_go_on() {
    let place = Place::new();
    let text = SWEEP.replace("\"algo.clip\" = [0.1, 0.3]", "\"algo.optimizer.learning_rate\" = [1e-3, 1e38]");
    fs::write(place.path("sweep.toml"), text).unwrap();
    let output = place.run("sweep sweep.toml --out all");
    let said = crate::text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("0001-seed1 failed: ") && said.contains("0000-seed2 done"), "{said}");
    assert!(crate::text(&output.stderr).contains("2 of 4 runs failed"));
}

#[test]
fn exports_hold_every_update() {
    let place = Place::new();
    place.succeeds("train tiny.toml --out run --log tensorboard");
    place.succeeds("export run");
    let table = place.text("run/metrics.csv");
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("step,update,losses/policy_loss,"));
    assert_eq!(lines.count(), 20);
    place.succeeds("train tiny.toml --out other --log csv");
    assert!(table == place.text("other/metrics.csv"));

    let events: Vec<_> = fs::read_dir(place.path("run/tensorboard")).unwrap().collect();
    assert_eq!(events.len(), 1);
    place.succeeds("export other --format tensorboard");
    // The package reads both as we wrote them, where it is there.
    let script = "import sys\n\
                  from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n\
                  e = EventAccumulator(sys.argv[1]); e.Reload()\n\
                  s = e.Scalars('losses/entropy')\n\
                  print(len(s), s[-1].step, s[-1].value)";
    for run in ["run", "other"] {
        let folder = place.path(&format!("{run}/tensorboard"));
        let pythons = ["/tmp/v/bin/python", "python3"];
        let read = pythons.iter().find_map(|python| {
            let output = Command::new(python).args(["-c", script]).arg(&folder).output().ok()?;
            output.status.success().then(|| crate::text(&output.stdout))
        });
        let Some(read) = read else {
            eprintln!("skipped: no Python with tensorboard");
            return;
        };
        let metrics = place.text(&format!("{run}/metrics.jsonl"));
        let last: serde_json::Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
        let entropy = last["losses/entropy"].as_f64().unwrap() as f32;
        let words: Vec<&str> = read.split_whitespace().collect();
        assert_eq!((words[0], words[1]), ("20", "640"));
        assert_eq!(words[2].parse::<f32>().unwrap(), entropy);
    }
}

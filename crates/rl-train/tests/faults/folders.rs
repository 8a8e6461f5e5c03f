//! What happens to a run's folder between two sittings: written twice, moved, older than time, of another version.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::place::{Place, checkpoints, signal};

/// A run that was killed after some updates, beside an undisturbed one.
fn killed(place: &Place, out: &str) {
    place.succeeds("train ppo.toml --out whole");
    let mut child = place.start(&format!("train ppo.toml --out {out}"));
    place.wait_for(out, 40);
    signal(&child, "-KILL");
    assert!(!child.wait().unwrap().success(), "the run was over before it could be killed");
}

#[test]
fn a_second_process_is_refused_until_the_first_has_ended_however_it_ends() {
    let place = Place::new();
    place.succeeds("train ppo.toml --out whole");
    let mut first = place.start("train ppo.toml --out run");
    place.wait_for("run", 4);
    // It stands still, so that it cannot end before the second one comes.
    signal(&first, "-STOP");
    let said = place.fails("train --resume run", 1);
    let holder = format!("`run` is being written by another process (process {})", first.id());
    assert!(said.contains(&holder) && said.contains("rl-train watch run"), "{said}");
    let said = place.fails("train ppo.toml --out run", 2);
    assert!(said.contains("holds a run"), "{said}");
    // Reading is not writing.
    place.succeeds("eval run");
    first.kill().unwrap();
    first.wait().unwrap();
    place.succeeds("train --resume run");
    place.assert_same("whole", "run");
}

#[test]
fn of_many_processes_that_start_one_run_one_does() {
    let place = Place::new();
    place.succeeds("train ppo.toml --out whole");
    let mut children: Vec<_> = (0..6).map(|_| place.start("train ppo.toml --out run")).collect();
    let ended: Vec<bool> = children.iter_mut().map(|child| child.wait().unwrap().success()).collect();
    assert_eq!(ended.iter().filter(|ended| **ended).count(), 1, "{ended:?}");
    place.assert_same("whole", "run");
}

#[test]
fn a_clock_that_goes_backwards_changes_nothing() {
    let place = Place::new();
    killed(&place, "run");
    // Seen from the next sitting, whose clock is ten years behind, every file is from the future.
    fn age(folder: &Path, to: SystemTime) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => age(&path, to),
                path => fs::File::options().append(true).open(path).unwrap().set_modified(to).unwrap(),
            }
        }
    }
    age(&place.path("run"), SystemTime::now() + Duration::from_secs(10 * 365 * 86_400));
    place.succeeds("train --resume run");
    place.assert_same("whole", "run");
}

#[test]
fn a_run_goes_on_at_another_path() {
    let place = Place::new();
    killed(&place, "run");
    fs::create_dir_all(place.path("elsewhere")).unwrap();
    fs::rename(place.path("run"), place.path("elsewhere/other name")).unwrap();
    let mut resume = place.command("train --resume");
    let output = resume.arg("elsewhere/other name").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place.assert_same("whole", "elsewhere/other name");
}

#[test]
fn a_checkpoint_of_another_format_is_refused_by_name() {
    let place = Place::new();
    killed(&place, "run");
    let last = checkpoints(&place.path("run/checkpoint")).pop().unwrap();
    let ours = fs::read(&last).unwrap();
    let at = ours.windows(15).position(|it| it == b"rl-checkpoint-1").expect("it names its format");
    for version in [b'0', b'2'] {
        let mut other = ours.clone();
        other[at + 14] = version;
        fs::write(&last, other).unwrap();
        for line in ["train --resume run", "eval run"] {
            let said = place.fails(line, 1);
            let words = format!("has format `rl-checkpoint-{}`, but this version reads", char::from(version));
            let file = last.file_name().unwrap().to_string_lossy();
            assert!(said.contains(&words) && said.contains(&*file), "{line}: {said}");
        }
    }
    fs::write(&last, ours).unwrap();
    place.succeeds("train --resume run");
    place.assert_same("whole", "run");
}

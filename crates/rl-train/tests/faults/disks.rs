//! A full disk and a read-only folder: a clear error, and the last checkpoint stays whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{Place, checkpoints, signal};

/// A small file system in memory, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    /// `None` where mounting is not allowed: root only.
    fn mount(at: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir_all(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&at);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: `mount` is not permitted here");
        }
        mounted.then_some(Self(at))
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Takes all but about `left` bytes of a disk of `size`.
fn fill(disk: &Path, size: usize, left: usize) {
    fs::write(disk.join("filler"), vec![0; size - left]).unwrap();
}

#[test]
fn a_full_disk_is_named_and_costs_nothing_but_time() {
    let place = Place::new();
    place.succeeds("train ppo.toml --out whole");
    // What gives way: the first file of all, a checkpoint, the metrics of a later update.
    for left in [0, 24, 64, 128] {
        let (size, left) = (1 << 20, left << 10);
        let Some(disk) = Disk::mount(place.path("disk"), "size=1m") else { return };
        fill(&disk.0, size, left);
        let said = place.fails("train ppo.toml --out disk/run", 1);
        assert!(said.contains("No space left on device") && said.contains("`disk/run"), "{left}: {said}");
        fs::remove_file(disk.0.join("filler")).unwrap();
        match checkpoints(&place.path("disk/run/checkpoint")).is_empty() {
            true => assert!(left < 64 << 10, "no checkpoint, although there were {left} bytes"),
            false => {
                place.succeeds("eval disk/run");
                place.succeeds("train --resume disk/run");
                place.assert_same("whole", "disk/run");
            }
        }
    }
}

#[test]
fn a_read_only_folder_is_named_and_can_be_evaluated() {
    let place = Place::new();
    place.succeeds("train ppo.toml --out whole");
    let Some(disk) = Disk::mount(place.path("disk"), "size=8m") else { return };
    let mut child = place.start("train ppo.toml --out disk/run");
    place.wait_for("disk/run", 20);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    disk.remount("ro");
    for line in ["train --resume disk/run", "train ppo.toml --out disk/other"] {
        let said = place.fails(line, 1);
        assert!(said.contains("Read-only file system") && said.contains("`disk/"), "{line}: {said}");
    }
    assert!(place.succeeds("eval disk/run").contains("after update"));
    disk.remount("rw");
    place.succeeds("train --resume disk/run");
    place.assert_same("whole", "disk/run");
}

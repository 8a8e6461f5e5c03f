//! What the operating system knows about this process, and the source tree it was built from.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// CPU seconds of all threads of this process, user and system; `None` where there is no `/proc`.
///
/// The kernel counts in ticks of a hundredth of a second (`USER_HZ`, the same on all Linux machines).
pub fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may hold spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// The most memory this process has had, MB (10⁶ bytes); `None` where there is no `/proc`.
pub fn peak_rss_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// The commit of the source tree that built this binary, with `-dirty` if it has changes; `None` if
/// the tree is gone or git is not there.
pub fn git_revision() -> Option<String> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "-C", env!("CARGO_MANIFEST_DIR")])
        .args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])
        .output()
        .ok()?;
    let revision = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !revision.is_empty()).then_some(revision)
}

/// Now in UTC, as `20261130-220501`.
pub fn timestamp() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    stamp(seconds)
}

fn stamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Year, month and day of a day since 1970, by eras of 400 years that start in March.
///
/// Hinnant, *chrono-compatible low-level date algorithms*, `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    (year + 400 * era + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_date_of_the_calendar() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_796_076_301), "20261130-220501");
    }

    #[test]
    fn linux_tells_cpu_time_and_memory() {
        if cfg!(target_os = "linux") {
            assert!(cpu_seconds().unwrap() >= 0.0);
            assert!(peak_rss_mb().unwrap() > 0.5);
        }
    }
}

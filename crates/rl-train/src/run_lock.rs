//! One process per run: a lock that the operating system takes back when its holder ends, however it ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The file's name in the run's folder. It stays there; what counts is whether someone holds it.
pub const FILE: &str = "run.lock";

/// Held while a process writes a run.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock of the run in `folder`.
    ///
    /// # Errors
    /// If another process holds it, by its number, or the file cannot be written.
    pub fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let unwritable = || format!("cannot write `{}`", path.display());
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.with_context(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let (folder, holder) = (folder.display(), holder.trim());
                bail!(
                    "`{folder}` is being written by another process ({holder}); wait until it has ended, or look on with \
                     `rl-train watch {folder}`"
                );
            }
            // Some network file systems know no locks: then nothing keeps a second process away.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                say!("`{}` cannot be locked ({error}): let no second process write this run", path.display());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock `{}`", path.display()));
            }
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "process {}", std::process::id()))
            .with_context(unwritable)?;
        Ok(Self { _file: file })
    }
}

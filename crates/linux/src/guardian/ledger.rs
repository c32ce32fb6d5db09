//! What the guardian knows, also on disk, in case guardian and pinwise are killed together.
//!
//! *Method.* Before pinwise pins a thread, it appends the entry to a file of this guardian. Both
//! hold a lock (flock) on the file while they live, and the guardian removes the file when it has
//! put everything back. A file that nobody locks was left behind: the next pinwise puts back what
//! it says. Files are kept by host, boot and PID namespace, and entries name threads with their
//! start times. So an entry never reaches a later thread with the same number.
//!
//! *Limits.* Only files of the same user count. A program that the killed pinwise had launched goes
//! on: its number may mean another program by now. Without a folder that can be written, there is
//! no file.

use super::{GuardianEntry, lines, restore_affinities, restore_files, run_commands};
use crate::thread::{Pid, Stat};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the files are.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// From now on guardians of this process also keep what they know below `folder`.
pub fn keep_ledgers(folder: &Path) {
    // The first call counts.
    let _ = FOLDER.set(folder.to_owned());
}

/// Puts back what pinwise changed if its guardian was killed with it, by the files below `folder`.
/// Returns the processes.
pub fn restore_abandoned(folder: &Path) -> Vec<Pid> {
    let mut restored = Vec::new();
    let Ok(folder) = boot_folder(folder) else { return restored };
    let own = rustix::process::geteuid().as_raw();
    for file in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        // Whoever can write the file can have a command run by it.
        if !file.metadata().is_ok_and(|data| data.is_file() && data.uid() == own) {
            continue;
        }
        let path = file.path();
        let Ok(file) = File::open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let entries: Vec<GuardianEntry> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        restore_files(&entries);
        restore_affinities(&entries);
        run_commands(&entries);
        let _ = fs::remove_file(&path);
        restored.extend(entries.iter().filter_map(|entry| match entry {
            GuardianEntry::Process { pid, start, .. }
            | GuardianEntry::Confined { pid, start, .. }
            | GuardianEntry::Command { pid, start, .. } => {
                Stat::read(*pid, pid.main()).is_ok_and(|stat| stat.start == *start).then_some(*pid)
            }
            _ => None,
        }));
    }
    restored.dedup();
    restored
}

/// The folder for this host, boot and PID namespace in `folder`. Those of earlier boots are
/// removed: what they are about is gone.
pub(crate) fn boot_folder(folder: &Path) -> io::Result<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::metadata("/proc/self/ns/pid")?.ino();
    let host = host_prefix();
    let this_boot = format!("{host}{}", boot.trim());
    for other in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let name = other.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&host) && !name.starts_with(&this_boot) {
            // Left behind it is only a few lines.
            let _ = fs::remove_dir_all(other.path());
        }
    }
    Ok(folder.join(format!("{this_boot}.{namespace}")))
}

/// The prefix of the names of all folders of this host. Hosts may share a home folder.
pub(crate) fn host_prefix() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().replace('/', "_");
    format!("{host}.boot-")
}

/// The file of one guardian, locked while this lives.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) path: PathBuf,
    file: File,
}

impl Ledger {
    /// A new file, if there is a folder that can be written.
    pub(super) fn create() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = boot_folder(FOLDER.get()?).ok()?;
        fs::create_dir_all(&folder).ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}", std::process::id()));
        // One that was left behind under this number was put back when this process began.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path).ok()?;
        let ledger = Self { path, file };
        ledger.lock()?;
        Some(ledger)
    }

    /// The file of the guardian that this process is.
    pub(super) fn open(path: PathBuf) -> Option<Self> {
        let file = OpenOptions::new().append(true).open(&path).ok()?;
        let ledger = Self { path, file };
        ledger.lock()?;
        Some(ledger)
    }

    /// Another pinwise that begins may have taken the new file for one that was left behind.
    fn lock(&self) -> Option<()> {
        flock(&self.file, FlockOperation::LockShared).ok()?;
        self.path.exists().then_some(())
    }

    /// Appends entries, each on a line of its own: one that a kill cut short spoils no other.
    pub(super) fn append(&mut self, entries: &[GuardianEntry]) -> io::Result<()> {
        let text = [b"\n".to_vec(), lines(entries)?].concat();
        self.file.write_all(&text)
    }

    /// Everything was put back.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

//! The files in `guarded/`: what to put back if guardian and pinwise are killed together.
//!
//! *Method.* Before pinwise pins a thread, it appends the entry to a file of this guardian. Both
//! hold a lock (flock) on the file while they live. The guardian removes the file when it has put
//! everything back. It leaves there what the kernel refused. A file that nobody locks was left
//! behind: the next pinwise puts back what it says. Files are kept by host, boot and PID namespace,
//! and entries name threads with their start times. So an entry never reaches a later thread with
//! the same number.
//!
//! What could not be put back stays in the file for the next start. A file whose process another
//! pinwise holds waits too.
//!
//! A program that the killed pinwise had launched is ended. The mark in its environment finds it:
//! its number may mean another program by now.
//!
//! *Limits.* Only files and folders of the same user count. Without a folder of this user that can
//! be written, there is no file, and a note says so. A launched program that removed the mark goes
//! on.

use super::launched::Launched;
use super::{
    GuardianEntry, MARK, leave_out_ended, lines, restore_affinities, restore_files, restore_memory,
    run_commands,
};
use crate::process_lock::ProcessLock;
use crate::thread::Pid;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
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

/// What a killed pinwise left changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftChanged {
    /// The affinities of a process.
    Affinities(Pid),
    /// The number that a command set for a process.
    Number(Pid),
    /// The text of a file of a control group.
    File(PathBuf),
    /// Where the memory of a process lies.
    Memory(Pid),
    /// A process of a program that it had launched, which is ended.
    Program(Pid),
}

/// What became of one thing that a killed pinwise left changed. A thing that no longer exists is
/// left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The thing.
    pub what: LeftChanged,
    /// Whether it was put back. If not, the next start tries again.
    pub worked: bool,
}

/// Puts back what pinwise changed if its guardian was killed with it, by the files below `folder`.
pub fn restore_abandoned(folder: &Path) -> Vec<Restored> {
    restore_of(folder, rustix::process::geteuid().as_raw())
}

/// Tries once more what the guardians of this process could not put back, when they have ended.
pub fn restore_again(folder: &Path) -> Vec<Restored> {
    let prefix = format!("{}-", std::process::id());
    restore_named(folder, rustix::process::geteuid().as_raw(), &prefix)
}

/// As [`restore_abandoned`], for the user `own`.
fn restore_of(folder: &Path, own: u32) -> Vec<Restored> {
    restore_named(folder, own, "")
}

/// By the files whose names begin with `prefix`.
fn restore_named(folder: &Path, own: u32, prefix: &str) -> Vec<Restored> {
    let boot = own_folder(folder, own).and_then(|_| boot_folder(folder));
    let Ok((path, folder)) = boot.and_then(|path| Ok((path.clone(), own_folder(&path, own)?)))
    else {
        return Vec::new();
    };
    let files = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    files
        .map(|file| file.file_name())
        .filter(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
        .flat_map(|name| restore_file(&folder, &name, own).unwrap_or_default())
        .collect()
}

/// Puts back what one file says. `None`: it is not of this user, is in use, or is gone.
fn restore_file(folder: &File, name: &OsStr, own: u32) -> Option<Vec<Restored>> {
    // An exclusive lock over NFS needs write access. A pipe must not be waited for.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::empty()).ok()?);
    // Anyone who can write the file can make pinwise run a command.
    let data = file.metadata().ok()?;
    if !data.is_file() || data.uid() != own {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    if file.metadata().ok()?.nlink() == 0 {
        // Another pinwise has just put it back.
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let entries: Vec<GuardianEntry> =
        bytes.split(|byte| *byte == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
    let own_mark = std::env::var(MARK).ok();
    let mut restored = Vec::new();
    if !entries.is_empty() {
        let _lock = ProcessLock::at_once(&living(&entries)).ok()?;
        let launched = Launched::abandoned(&entries, own_mark.as_deref());
        let told = launched.terminate();
        restored.extend(restore_files(&entries));
        restored.extend(restore_affinities(&entries));
        restored.extend(run_commands(&entries));
        restored.extend(launched.end_marked(told));
        leave_out_ended(&mut restored, &entries);
        restored.extend(restore_memory(&entries));
    }
    let rest = failed(entries, &restored, own_mark.as_deref());
    if rest.is_empty() {
        let _ = unlinkat(folder, name, AtFlags::empty());
    } else {
        replace(&mut file, &rest);
    }
    Some(restored)
}

/// Writes these entries in place of those in the file. If that fails, the next start finds less, or
/// the same again.
fn replace(file: &mut File, entries: &[GuardianEntry]) {
    if let Ok(text) = lines(entries) {
        let _ = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(&text));
    }
}

/// The processes in entries that still live.
fn living(entries: &[GuardianEntry]) -> Vec<Pid> {
    let mut pids: Vec<Pid> = entries.iter().filter_map(GuardianEntry::living).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The entries that are needed to try again what failed. What was put back must not be put back
/// once more: you may have changed it since. `own_mark`: that of this process, whose program goes
/// on.
fn failed(
    entries: Vec<GuardianEntry>,
    restored: &[Restored],
    own_mark: Option<&str>,
) -> Vec<GuardianEntry> {
    let failed: Vec<&LeftChanged> =
        restored.iter().filter(|one| !one.worked).map(|one| &one.what).collect();
    let affinities = failed.iter().any(|what| matches!(what, LeftChanged::Affinities(_)));
    let is_own = |entry: &GuardianEntry| match entry {
        GuardianEntry::Launching { mark } => Some(mark.as_str()) == own_mark,
        _ => false,
    };
    let programs = entries.iter().any(is_own)
        || failed.iter().any(|what| matches!(what, LeftChanged::Program(_)));
    let is_needed = |entry: &GuardianEntry| match entry {
        // All of them: a thread that is missing would look like one that inherited a pin.
        GuardianEntry::Existing { .. }
        | GuardianEntry::Process { .. }
        | GuardianEntry::Thread { .. }
        | GuardianEntry::Pinned { .. }
        | GuardianEntry::Confined { .. } => affinities,
        GuardianEntry::Command { pid, .. } => failed.contains(&&LeftChanged::Number(*pid)),
        GuardianEntry::Memory { pid, .. } => failed.contains(&&LeftChanged::Memory(*pid)),
        GuardianEntry::File { path, .. } => failed.contains(&&LeftChanged::File(path.clone())),
        GuardianEntry::Launching { .. }
        | GuardianEntry::Launched { .. }
        | GuardianEntry::Ended { .. } => programs,
    };
    entries.into_iter().filter(is_needed).collect()
}

/// Makes a folder, with those above it, that only this user may read.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a folder that belongs to `own`. Another user could put files in place of those in it.
pub(crate) fn own_folder(folder: &Path, own: u32) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
    if file.metadata()?.uid() == own {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The folder for this host, boot and PID namespace in `folder`. Those of earlier boots are
/// removed: what they are about is gone.
pub(crate) fn boot_folder(folder: &Path) -> io::Result<PathBuf> {
    let (host, this_boot) = (host_prefix(), boot_prefix()?);
    for other in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let name = other.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&host) && !name.starts_with(&this_boot) {
            // If it stays, it is only a few lines.
            let _ = fs::remove_dir_all(other.path());
        }
    }
    boot_path(folder)
}

/// The path of the folder for this host, boot and PID namespace in `folder`. Changes nothing.
pub(crate) fn boot_path(folder: &Path) -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/pid")?.ino();
    Ok(folder.join(format!("{}.{namespace}", boot_prefix()?)))
}

/// The prefix of the names of all folders of this host and boot.
fn boot_prefix() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("{}{}", host_prefix(), boot.trim()))
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
    /// A new file, if ledgers are kept.
    ///
    /// # Errors
    /// There is no folder of this user that can be written.
    pub(super) fn create() -> io::Result<Option<Self>> {
        FOLDER.get().map(|folder| Self::create_in(folder)).transpose()
    }

    pub(super) fn create_in(folder: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let own = rustix::process::geteuid().as_raw();
        private_folder(folder)?;
        own_folder(folder, own)?;
        let folder = boot_folder(folder)?;
        private_folder(&folder)?;
        own_folder(&folder, own)?;
        let (path, file) = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{number}", std::process::id()));
            match Self::options().create_new(true).mode(0o600).open(&path) {
                Ok(file) => break (path, file),
                // An earlier process had this number, and its file waits for a later start.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        let ledger = Self { path, file };
        if ledger.lock().is_none() {
            ledger.remove();
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(ledger)
    }

    /// The file of the guardian that this process is.
    pub(super) fn open(path: PathBuf) -> Option<Self> {
        let file = Self::options().open(&path).ok()?;
        let ledger = Self { path, file };
        ledger.lock()?;
        Some(ledger)
    }

    /// A shared lock over NFS needs read access.
    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).append(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        options
    }

    /// Another pinwise that begins may have taken the new file for one that was left behind.
    fn lock(&self) -> Option<()> {
        flock(&self.file, FlockOperation::LockShared).ok()?;
        self.path.exists().then_some(())
    }

    /// Appends entries, each on its own line. A line that a kill cut short spoils no other.
    pub(super) fn append(&mut self, entries: &[GuardianEntry]) -> io::Result<()> {
        let text = [b"\n".to_vec(), lines(entries)?].concat();
        self.file.write_all(&text)
    }

    /// Keeps what could not be put back. If there is nothing, removes the file.
    pub(super) fn keep_rest(mut self, entries: Vec<GuardianEntry>, restored: &[Restored]) {
        let rest = failed(entries, restored, None);
        if rest.is_empty() {
            self.remove();
        } else {
            replace(&mut self.file, &rest);
        }
    }

    /// Everything was put back.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Guardian, is_left_changed};
    use super::*;
    use crate::process_lock::tests::Sleeping;
    use crate::thread::{StartTime, Stat, ThreadId};
    use pinwise_topology::CpuSet;
    use std::process::{Command, Stdio};

    impl Sleeping {
        fn start(&self) -> StartTime {
            Stat::read(self.pid(), self.pid().main()).unwrap().start
        }

        fn command(&self, command: &str, folder: &Path) -> GuardianEntry {
            GuardianEntry::Command {
                pid: self.pid(),
                start: self.start(),
                command: Some(command.into()),
                folder: folder.to_owned(),
                setting: None,
            }
        }

        fn thread(&self, mask: CpuSet) -> GuardianEntry {
            let (pid, tid) = (self.pid(), self.pid().main());
            GuardianEntry::Thread { id: ThreadId { pid, tid, start: self.start() }, mask }
        }
    }

    /// A file with these entries that nobody locks.
    fn abandoned(folder: &Path, entries: &[GuardianEntry]) -> PathBuf {
        let mut ledger = Ledger::create_in(folder).unwrap();
        ledger.append(entries).unwrap();
        ledger.path
    }

    fn outcomes(folder: &Path) -> Vec<(LeftChanged, bool)> {
        restore_abandoned(folder).into_iter().map(|one| (one.what, one.worked)).collect()
    }

    /// The first outcomes. Another test may be starting a program, which shares this test's locks
    /// until it runs.
    fn outcomes_soon(folder: &Path) -> Vec<(LeftChanged, bool)> {
        let tries = (0..10_000).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            outcomes(folder)
        });
        tries.into_iter().find(|outcomes| !outcomes.is_empty()).unwrap_or_default()
    }

    #[test]
    fn what_another_user_could_have_written_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let sleeping = Sleeping::new();
        let path = abandoned(folder.path(), &[sleeping.command("echo 1 >> n", folder.path())]);
        let another = rustix::process::geteuid().as_raw() + 1;
        assert!(restore_of(folder.path(), another).is_empty());
        let boot = own_folder(path.parent().unwrap(), another - 1).unwrap();
        let name = path.file_name().unwrap();
        assert!(restore_file(&boot, name, another).is_none(), "the file itself counts too");
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!(outcomes(folder.path()), []);
        assert!(!folder.path().join("n").exists());
        fs::rename(&elsewhere, &path).unwrap();
        assert_eq!(outcomes(folder.path()), [(LeftChanged::Number(sleeping.pid()), true)]);
        assert!(folder.path().join("n").exists() && !path.exists());
    }

    #[test]
    fn a_file_can_be_locked_either_way_and_goes_with_a_guardian_that_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create_in(folder.path()).unwrap();
        let path = ledger.path.clone();
        let again = Ledger::open(path.clone()).unwrap();
        for file in [&ledger.file, &again.file] {
            let flags = rustix::fs::fcntl_getfl(file).unwrap();
            assert!(flags.contains(OFlags::RDWR | OFlags::APPEND), "{flags:?}");
        }
        drop(again);
        // This test program is no guardian.
        assert!(Guardian::start_with(Ok(Some(ledger))).is_err());
        assert!(!path.exists());
        let empty = abandoned(folder.path(), &[]);
        assert_eq!(outcomes(folder.path()), []);
        assert!(!empty.exists());
    }

    #[test]
    fn a_guardian_that_could_not_open_the_file_leaves_none_behind() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create_in(folder.path()).unwrap();
        let path = ledger.path.clone();
        // It ends when its pipe is closed, and knows no file.
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (entries, unwritten) = (Vec::new(), None);
        drop(Guardian { child, entries, ledger: Some(ledger), unwritten });
        assert!(!path.exists());
    }

    #[test]
    fn what_a_guardian_could_not_put_back_waits_for_the_next_start() {
        // One that ends as it does after a refusal, and one that ends without doing its work.
        for code in ["3", "1"] {
            let folder = tempfile::tempdir().unwrap();
            let program = Sleeping::new();
            let mut ledger = Ledger::create_in(folder.path()).unwrap();
            let entries = vec![program.command("false", folder.path())];
            ledger.append(&entries).unwrap();
            let path = ledger.path.clone();
            let exits = format!("exit {code}");
            let mut child = Command::new("sh");
            let child = child.args(["-c", &exits]).stdin(Stdio::piped()).spawn().unwrap();
            drop(Guardian { child, entries, ledger: Some(ledger), unwritten: None });
            assert!(path.exists(), "{code}");
            // Another test may be starting a program, which shares this lock until it runs.
            let mut tries = (0..10_000).map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(2));
                restore_again(folder.path())
            });
            let failed = Restored { what: LeftChanged::Number(program.pid()), worked: false };
            assert_eq!(tries.find(|tried| !tried.is_empty()), Some(vec![failed]), "{code}");
            assert!(is_left_changed(), "{code}");
            drop(program);
            let again = |_: &u32| path.exists() && outcomes(folder.path()).is_empty();
            (0..10_000).find(|tried| !again(tried));
            assert!(!path.exists(), "{code}: nothing is left to put back");
        }
    }

    #[test]
    fn failed_entries_are_reported_and_kept_and_done_ones_are_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (Sleeping::new(), Sleeping::new());
        let quota = folder.path().join("cpu.max");
        let text = GuardianEntry::File { path: quota.clone(), text: "max".into() };
        let nowhere = CpuSet::new();
        let entries = [
            text,
            one.thread(nowhere.clone()),
            one.command("echo 1 >> n", folder.path()),
            other.command("test -e allowed", folder.path()),
        ];
        let path = abandoned(folder.path(), &entries);
        assert_eq!(
            outcomes_soon(folder.path()),
            [
                (LeftChanged::File(quota), true),
                (LeftChanged::Affinities(one.pid()), false),
                (LeftChanged::Number(one.pid()), true),
                (LeftChanged::Number(other.pid()), false),
            ]
        );
        fs::write(folder.path().join("allowed"), "").unwrap();
        assert_eq!(
            outcomes_soon(folder.path()),
            [(LeftChanged::Affinities(one.pid()), false), (LeftChanged::Number(other.pid()), true)]
        );
        assert_eq!(fs::read_to_string(folder.path().join("n")).unwrap(), "1\n");
        assert!(path.exists());
        drop(one);
        assert_eq!(outcomes(folder.path()), [], "the process has ended");
        assert!(!path.exists());
    }

    #[test]
    fn a_process_that_another_pinwise_holds_is_left_to_a_later_start() {
        let folder = tempfile::tempdir().unwrap();
        let sleeping = Sleeping::new();
        let path = abandoned(folder.path(), &[sleeping.command("true", folder.path())]);
        let mut elsewhere = ProcessLock::default();
        elsewhere.share(sleeping.pid());
        assert_eq!(restore_abandoned(folder.path()), []);
        assert!(path.exists());
        drop(elsewhere);
        assert_eq!(outcomes(folder.path()), [(LeftChanged::Number(sleeping.pid()), true)]);
    }
}

//! Locks a process, so that only one pinwise changes it at a time.
//!
//! *Problem.* A second search would mistake the pins of the first one for the process's own
//! affinities. It would put these back at its end. Both would measure each other's pins.
//!
//! *Method.* A lock (flock) on the folder of the process in `/proc`. It needs no file, and is gone
//! with its holder, however that ends. Pinwise holds it shared while it may change the process. So
//! does the guardian until it has put everything back. To begin, a process must hold it exclusively
//! for a moment. If guardians alone hold it, their search was killed, and they restore its changes.
//! pinwise then waits for them. `/proc/locks` says who holds it. A holder that it does not show, as
//! in another container, may be a guardian too.
//!
//! Within one pinwise a hold is shared: a search may consist of others.
//!
//! *Limits.* A holder that sees another `/proc`, as in a container, is not seen. If there are many
//! processes, only the first [`MOST`] are held. Those that the user named come first. A process
//! that begins later is not held. For some milliseconds after a `kill -9`, before the guardian has
//! read its last entries, nobody holds the process.

use crate::guardian_timeouts::AT_WORK;
use crate::thread::{Pid, Stat};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The guardian's name in process lists. It tells a guardian's hold from a search's, and `killall
/// pinwise` leaves it alone.
pub(crate) const GUARDIAN_NAME: &str = "affinity-guard";

/// How long to wait for a lock that another process holds.
#[derive(Clone, Copy)]
struct Patience {
    /// If a search has it: the search may be at its very end.
    search: Duration,
    /// If guardians alone have it.
    guardian: Duration,
}

impl Patience {
    /// The patience with these holders, or with one that is not shown.
    fn with(self, holders: &[Pid]) -> Duration {
        let may_be_guardian = |pid: &Pid| pid.0 <= 0 || is_guardian(*pid);
        if holders.iter().all(may_be_guardian) { self.guardian } else { self.search }
    }

    /// What a busy machine adds is a guess.
    const USUAL: Self = Self {
        search: Duration::from_secs(1),
        guardian: AT_WORK.saturating_add(Duration::from_secs(2)),
    };
}

/// From one try to the next.
const PAUSE: Duration = Duration::from_millis(20);
/// The most processes that are held. Each takes a file descriptor, and other code needs many.
const MOST: usize = 64;

/// The processes that this process holds. A lock belongs to the open file: a file opened again
/// would be another holder.
static HELD: Mutex<BTreeMap<Pid, Weak<File>>> = Mutex::new(BTreeMap::new());

/// Processes that no other pinwise changes while this lives.
#[derive(Debug, Default)]
pub struct ProcessLock {
    folders: Vec<Arc<File>>,
}

/// Another pinwise measures or pins the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "another pinwise{} measures or pins process {pid}: wait until that ends, or stop it, then try \
     again",
    holder.map_or(String::new(), |holder| format!(" (process {holder})"))
)]
pub struct ProcessLockedError {
    /// The process to be changed.
    pub pid: Pid,
    /// The other pinwise, if the kernel shows it here.
    pub holder: Option<Pid>,
}

impl ProcessLock {
    /// Holds these processes. Waits for a guardian that is at work, and for a moment otherwise. A
    /// process that has ended, or whose folder may not be opened, is passed over.
    ///
    /// # Errors
    /// Another pinwise holds one of them.
    pub fn of(pids: &[Pid]) -> Result<Self, ProcessLockedError> {
        Self::within(pids, Patience::USUAL)
    }

    /// As [`ProcessLock::of`], without a wait.
    pub(crate) fn at_once(pids: &[Pid]) -> Result<Self, ProcessLockedError> {
        Self::within(pids, Patience { search: Duration::ZERO, guardian: Duration::ZERO })
    }

    fn within(pids: &[Pid], patience: Patience) -> Result<Self, ProcessLockedError> {
        let mut lock = Self::default();
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, folder| folder.strong_count() > 0);
        for &pid in pids.iter().take(MOST) {
            if let Some(folder) = held.get(&pid).and_then(Weak::upgrade) {
                lock.folders.push(folder);
                continue;
            }
            let Ok(folder) = File::open(folder(pid)) else { continue };
            let begin = Instant::now();
            while !is_taken(&folder) {
                let holders = holders(&folder);
                // They may have let go before the look.
                if is_taken(&folder) {
                    break;
                }
                if begin.elapsed() >= patience.with(&holders) {
                    let shown = holders.into_iter().filter(|holder| holder.0 > 0);
                    // A guardian ends with its pinwise.
                    let holder = shown.min_by_key(|&holder| is_guardian(holder));
                    return Err(ProcessLockedError { pid, holder });
                }
                std::thread::sleep(PAUSE);
            }
            let folder = Arc::new(folder);
            held.insert(pid, Arc::downgrade(&folder));
            lock.folders.push(folder);
        }
        Ok(lock)
    }

    /// Lets the guardian hold a process that its parent already holds.
    pub(crate) fn share(&mut self, pid: Pid) {
        if self.folders.len() < MOST
            && let Ok(folder) = File::open(folder(pid))
        {
            // Not to have it costs the next search its wait for this guardian.
            let _ = flock(&folder, FlockOperation::NonBlockingLockShared);
            self.folders.push(Arc::new(folder));
        }
    }
}

fn folder(pid: Pid) -> String {
    format!("/proc/{pid}")
}

/// Takes the lock, shared, if nobody else has it.
fn is_taken(folder: &File) -> bool {
    !is_refused(folder, FlockOperation::NonBlockingLockExclusive)
        && !is_refused(folder, FlockOperation::NonBlockingLockShared)
}

/// The processes that hold the lock. None if the kernel does not show them here.
fn holders(folder: &File) -> Vec<Pid> {
    let Ok(file) = folder.metadata() else { return Vec::new() };
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", file.ino());
    holders_in(&fs::read_to_string("/proc/locks").unwrap_or_default(), &file)
}

/// The processes that hold a lock of `file` (`MAJOR:MINOR:INODE`), from the text of `/proc/locks`.
fn holders_in(locks: &str, file: &str) -> Vec<Pid> {
    let holder = |line: &str| {
        // A waiting one has an arrow in its second field.
        let [_, "FLOCK", _, _, pid, of, ..] = line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        (of == file).then(|| pid.parse().ok().map(Pid))?
    };
    locks.lines().filter_map(holder).collect()
}

fn is_guardian(pid: Pid) -> bool {
    Stat::read(pid, pid.main()).is_ok_and(|stat| stat.comm == GUARDIAN_NAME)
}

/// If locks are not known nobody can hold one.
fn is_refused(folder: &File, lock: FlockOperation) -> bool {
    matches!(flock(folder, lock), Err(Errno::WOULDBLOCK))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A process that does nothing. It ends with this.
    pub(crate) struct Sleeping(Child);

    impl Sleeping {
        pub(crate) fn new() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }

        pub(crate) fn pid(&self) -> Pid {
            Pid(self.0.id() as i32)
        }
    }

    impl Drop for Sleeping {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_has_one_holder_until_its_guardian_is_done() {
        let (one, other) = (Sleeping::new(), Sleeping::new());
        let hold = ProcessLock::of(&[one.pid()]).unwrap();
        let mut guardian = ProcessLock::default();
        guardian.share(one.pid());
        // A search within the search, and one after the other.
        drop(ProcessLock::of(&[one.pid()]).unwrap());
        drop(hold);
        let refused = ProcessLock::at_once(&[other.pid(), one.pid()]).unwrap_err();
        assert_eq!(refused.pid, one.pid());
        // A process that was held before the refusal is free again.
        let mut elsewhere = ProcessLock::default();
        elsewhere.share(other.pid());
        assert!(ProcessLock::at_once(&[other.pid()]).is_err());
        drop((guardian, elsewhere));
        drop(ProcessLock::of(&[one.pid(), other.pid()]).unwrap());
    }

    /// This test is no guardian, so its hold is not waited for long.
    #[test]
    fn a_hold_names_its_holder() {
        let sleeping = Sleeping::new();
        let mut holder = ProcessLock::default();
        holder.share(sleeping.pid());
        let own = Pid(std::process::id() as i32);
        // Locks that come and go can hide another one from a look at the kernel's list.
        assert!((0..1000).any(|_| holders(&holder.folders[0]) == [own]));
        assert!(!is_guardian(own));
        let patience = Patience { search: Duration::ZERO, guardian: Duration::MAX };
        let named = || ProcessLock::within(&[sleeping.pid()], patience).unwrap_err();
        assert!((0..1000).any(|_| named().holder == Some(own)));
        let told = format!("another pinwise (process {own}) measures or pins process ");
        let error = ProcessLockedError { pid: sleeping.pid(), holder: Some(own) };
        assert!(error.to_string().starts_with(&told), "{error}");
    }

    #[test]
    fn a_holder_that_is_not_shown_is_waited_for_like_a_guardian() {
        let patience = Patience { search: Duration::ZERO, guardian: Duration::MAX };
        let own = Pid(std::process::id() as i32);
        assert_eq!(patience.with(&[]), Duration::MAX);
        assert_eq!(patience.with(&[Pid(0)]), Duration::MAX);
        assert_eq!(patience.with(&[Pid(0), own]), Duration::ZERO);
    }

    #[test]
    fn holders_are_those_that_have_a_lock_of_the_file() {
        let locks = "1: FLOCK  ADVISORY  READ 71 00:17:900 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 72 00:17:900 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 73 00:17:900 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 74 00:17:901 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 75 00:17:900 0 EOF\n";
        assert_eq!(holders_in(locks, "00:17:900"), [Pid(71), Pid(75)]);
    }

    #[test]
    fn what_has_ended_is_passed_over() {
        let sleeping = Sleeping::new();
        let pid = sleeping.pid();
        drop(sleeping);
        assert!(ProcessLock::of(&[pid]).unwrap().folders.is_empty());
    }
}

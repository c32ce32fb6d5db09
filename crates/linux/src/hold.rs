//! Locks a process, so that only one pinwise changes it at a time.
//!
//! *Problem.* A second search would take the pins of the first one for the process's own
//! affinities, and put these back at its end. Both would measure each other's pins.
//!
//! *Method.* A lock (flock) on the folder of the process in `/proc`. It needs no file, and is gone
//! with its holder, however that ends. Pinwise holds it shared while it may change the process. So
//! does the guardian until it has put everything back. To begin, a process must hold it exclusively
//! for a moment.
//!
//! Within one pinwise a hold is shared: a search may consist of others.
//!
//! *Limits.* A holder that sees another `/proc`, as in a container, is not seen. If there are many
//! processes, only the first [`MOST`] are held. Those that the user named come first. A process
//! that begins later is not held. For some milliseconds after a `kill -9`, before the guardian has
//! read its last entries, nobody holds the process.

use crate::guardian::AT_WORK;
use crate::thread::Pid;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A guardian may be at work. What a busy machine adds is a guess.
const PATIENCE: Duration = AT_WORK.saturating_add(Duration::from_secs(2));
/// From one try to the next.
const PAUSE: Duration = Duration::from_millis(20);
/// The most processes that are held. Each takes a file descriptor, and other code needs many.
const MOST: usize = 64;

/// The processes that this process holds. A lock belongs to the open file: a file opened anew would
/// be another holder.
static HELD: Mutex<BTreeMap<Pid, Weak<File>>> = Mutex::new(BTreeMap::new());

/// Processes that no other pinwise changes while this lives.
#[derive(Debug, Default)]
pub struct Hold {
    folders: Vec<Arc<File>>,
}

/// Another pinwise measures or pins the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "another pinwise measures or pins process {0}: wait until that ends, or stop it, then try again"
)]
pub struct HeldError(pub Pid);

impl Hold {
    /// Holds these processes. Waits for a guardian that is at work. A process that has ended, or
    /// whose folder may not be opened, is passed over.
    ///
    /// # Errors
    /// Another pinwise holds one of them.
    pub fn of(pids: &[Pid]) -> Result<Self, HeldError> {
        let until = Instant::now() + PATIENCE;
        let mut hold = Self::default();
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, folder| folder.strong_count() > 0);
        for &pid in pids.iter().take(MOST) {
            if let Some(folder) = held.get(&pid).and_then(Weak::upgrade) {
                hold.folders.push(folder);
                continue;
            }
            let Ok(folder) = File::open(folder(pid)) else { continue };
            while is_refused(&folder, FlockOperation::NonBlockingLockExclusive)
                || is_refused(&folder, FlockOperation::NonBlockingLockShared)
            {
                if Instant::now() >= until {
                    return Err(HeldError(pid));
                }
                std::thread::sleep(PAUSE);
            }
            let folder = Arc::new(folder);
            held.insert(pid, Arc::downgrade(&folder));
            hold.folders.push(folder);
        }
        Ok(hold)
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

/// If locks are not known nobody can hold one.
fn is_refused(folder: &File, lock: FlockOperation) -> bool {
    matches!(flock(folder, lock), Err(Errno::WOULDBLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Sleeping(Child);

    impl Sleeping {
        fn new() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }

        fn pid(&self) -> Pid {
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
        let hold = Hold::of(&[one.pid()]).unwrap();
        let mut guardian = Hold::default();
        guardian.share(one.pid());
        // A search within the search, and one after the other.
        drop(Hold::of(&[one.pid()]).unwrap());
        drop(hold);
        assert_eq!(Hold::of(&[other.pid(), one.pid()]).unwrap_err(), HeldError(one.pid()));
        // A process that was held before the refusal is free again.
        let mut elsewhere = Hold::default();
        elsewhere.share(other.pid());
        assert!(Hold::of(&[other.pid()]).is_err());
        drop((guardian, elsewhere));
        drop(Hold::of(&[one.pid(), other.pid()]).unwrap());
    }

    #[test]
    fn what_has_ended_is_passed_over() {
        let sleeping = Sleeping::new();
        let pid = sleeping.pid();
        drop(sleeping);
        assert!(Hold::of(&[pid]).unwrap().folders.is_empty());
    }
}

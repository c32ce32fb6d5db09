//! One pinwise at a time changes a process.
//!
//! *Problem.* A second search would take the pins of the first one for the process's own
//! affinities, and put these back at its end. Both would measure each other's pins.
//!
//! *Method.* A lock (flock) on the folder of the process in `/proc`. It needs no file, and is gone
//! with its holder, however that ends. Pinwise holds it shared while it may change the process. So
//! does the guardian until it has put everything back. Whoever wants to begin must get it
//! exclusively for a moment.
//!
//! *Limit.* A holder in another PID namespace has another `/proc`, so it is not seen.

use crate::thread::Pid;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::time::{Duration, Instant};

/// A guardian takes less to put affinities back, or to end a program.
const PATIENCE: Duration = Duration::from_secs(3);
/// From one try to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// Processes that no other pinwise changes while this lives.
#[derive(Debug, Default)]
pub struct Hold {
    folders: Vec<File>,
}

/// Another pinwise measures or pins the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "another pinwise measures or pins process {0}: wait until that ends, or stop it, then try again"
)]
pub struct Held(pub Pid);

impl Hold {
    /// Holds these processes. Waits for a guardian that is at work. A process that has ended, or
    /// whose folder may not be opened, is passed over.
    ///
    /// # Errors
    /// Another pinwise holds one of them.
    pub fn of(pids: &[Pid]) -> Result<Self, Held> {
        let until = Instant::now() + PATIENCE;
        let mut hold = Self::default();
        for &pid in pids {
            let Ok(folder) = File::open(folder(pid)) else { continue };
            while is_refused(&folder, FlockOperation::NonBlockingLockExclusive)
                || is_refused(&folder, FlockOperation::NonBlockingLockShared)
            {
                if Instant::now() >= until {
                    return Err(Held(pid));
                }
                std::thread::sleep(PAUSE);
            }
            hold.folders.push(folder);
        }
        Ok(hold)
    }

    /// Also holds a process that the one who began holds already: the guardian's part.
    pub(crate) fn share(&mut self, pid: Pid) {
        if let Ok(folder) = File::open(folder(pid)) {
            // Not to have it costs the next search its wait for this guardian.
            let _ = flock(&folder, FlockOperation::NonBlockingLockShared);
            self.folders.push(folder);
        }
    }
}

fn folder(pid: Pid) -> String {
    format!("/proc/{pid}")
}

/// Where locks are not known nobody can hold one.
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
        assert_eq!(Hold::of(&[other.pid(), one.pid()]).unwrap_err(), Held(one.pid()));
        // Also that of a process that was held before the refusal.
        drop(Hold::of(&[other.pid()]).unwrap());
        drop(hold);
        assert!(Hold::of(&[one.pid()]).is_err(), "the guardian is at work");
        drop(guardian);
        Hold::of(&[one.pid()]).unwrap();
    }

    #[test]
    fn what_has_ended_is_passed_over() {
        let sleeping = Sleeping::new();
        let pid = sleeping.pid();
        drop(sleeping);
        assert!(Hold::of(&[pid]).unwrap().folders.is_empty());
    }
}

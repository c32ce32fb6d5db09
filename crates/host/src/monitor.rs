//! How a running program spends its time, watched from outside without privilege.
//!
//! Whether more threads would help shows in what the present ones do: compute, wait for a CPU, wait for each other, or sleep.
//! The kernel accounts the first two exactly (`/proc/PID/task/TID/schedstat`); the rest of a thread's time it slept. What it slept
//! *for* is sampled: a thread that waits for another one, at a lock, a condition variable, a barrier or a join, sleeps in the
//! `futex` system call, which `/proc/PID/task/TID/syscall` tells. Voluntary switches and migrations are counters of the kernel.
//!
//! ```text
//! slept  = elapsed - ran - waited                      exact
//! locked = slept * looks in futex / looks asleep       the looks only split what is known exactly
//! ```
//!
//! A look costs a system call per thread on a file that is kept open; opening it every time would cost a program that blocks
//! often 8 to 14 % at a look per millisecond. The counters, which need three more files, are read ten times less often.
//!
//! Limits: a thread that lives for less than the time between two looks is missed, and what a thread counts after the last
//! reading of its counters is lost with it. A lock that spins before it sleeps shows as computing. Another user's program does
//! not show its system calls; then locks are not told ([`Activity::lock`]).

mod activity;
mod counters;
mod ledger;

pub use activity::{Activity, ThreadActivity};

use crate::roster::{Roster, Scope};
use crate::thread::{Stat, ThreadId};
use counters::Counters;
use ledger::{Doing, Ledger};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Between two looks at what every thread does.
const LOOK: Duration = Duration::from_millis(10);
/// The counters are read at every so many-th look.
const COUNTED: u32 = 10;

/// Watches the threads of a program.
#[derive(Debug)]
pub struct Monitor {
    roster: Roster,
    watched: HashMap<ThreadId, Watched>,
}

/// A thread that is watched.
#[derive(Debug)]
struct Watched {
    comm: String,
    /// `/proc/PID/task/TID/syscall`, kept open; `None` where it may not be read.
    syscall: Option<File>,
    ledger: Ledger,
}

impl Monitor {
    /// Of the processes in `scope`, and those they create.
    pub fn attach(scope: Scope) -> io::Result<Self> {
        Ok(Self { roster: Roster::new(scope)?, watched: HashMap::new() })
    }

    /// Whether any thread is left.
    pub fn alive(&self) -> bool {
        !self.roster.members().is_empty()
    }

    /// Watches for `window`, or until `cancelled` says so or no thread is left. `pause` sleeps.
    pub fn watch(
        &mut self,
        window: Duration,
        pause: &dyn Fn(Duration),
        cancelled: &dyn Fn() -> bool,
    ) -> io::Result<Activity> {
        let begin = Instant::now();
        self.watched.clear();
        let mut ended = Vec::new();
        for number in 0.. {
            let at = begin.elapsed();
            let last = at >= window || cancelled() || !self.alive();
            let counting = number % COUNTED == 0 || last;
            if counting {
                self.roster.look()?;
            } else {
                self.roster.look_at_threads();
            }
            self.look(at, counting, &mut ended);
            if last {
                break;
            }
            pause(LOOK.min(window.saturating_sub(at)));
        }
        let elapsed = begin.elapsed();
        let order: HashMap<ThreadId, usize> =
            self.roster.threads().enumerate().map(|(index, (_, id))| (id, index)).collect();
        let mut alive: Vec<(ThreadId, Watched)> = self.watched.drain().collect();
        alive.sort_by_key(|(id, _)| order.get(id).copied());
        let threads = alive.into_iter().chain(ended);
        Ok(Activity {
            elapsed,
            threads: threads.map(|(id, watched)| watched.ledger.activity(id, watched.comm)).collect(),
        })
    }

    /// Looks at every thread; those that are gone go to `ended`.
    fn look(&mut self, at: Duration, counting: bool, ended: &mut Vec<(ThreadId, Watched)>) {
        let present: Vec<ThreadId> = self.roster.threads().map(|(_, id)| id).collect();
        let gone: Vec<ThreadId> = self.watched.keys().filter(|id| !present.contains(id)).copied().collect();
        ended.extend(gone.into_iter().filter_map(|id| Some((id, self.watched.remove(&id)?))));
        for id in present {
            if let Some(watched) = self.watched.get_mut(&id) {
                watched.look(id, at, counting);
            } else if let Some(watched) = Watched::begin(id, at) {
                self.watched.insert(id, watched);
            }
        }
    }
}

impl Watched {
    /// `None`: the thread ended meanwhile.
    fn begin(id: ThreadId, at: Duration) -> Option<Self> {
        let counters = Counters::read(id).ok()?;
        let comm = Stat::read(id.pid, id.tid).ok()?.comm;
        // The file opens for everybody and refuses to be read.
        let readable = |file: &File| doing(file).is_ok();
        let syscall = File::open(format!("/proc/{}/task/{}/syscall", id.pid, id.tid)).ok().filter(readable);
        Some(Self { comm, syscall, ledger: Ledger::new(at, counters) })
    }

    fn look(&mut self, id: ThreadId, at: Duration, counting: bool) {
        if let Some(doing) = self.syscall.as_ref().and_then(|file| doing(file).ok()) {
            self.ledger.see(doing);
        }
        if counting && let Ok(counters) = Counters::read(id) {
            self.ledger.count(at, counters);
            // A thread often gets its name after it was created.
            if let Ok(stat) = Stat::read(id.pid, id.tid) {
                self.comm = stat.comm;
            }
        }
    }
}

/// What a thread does now, read from its file.
fn doing(file: &File) -> io::Result<Doing> {
    let mut text = [0; 32];
    let length = file.read_at(&mut text, 0)?;
    Ok(Doing::parse(&text[..length]))
}

#[cfg(test)]
mod tests;

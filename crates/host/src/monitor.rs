//! How a running program spends its time, watched from outside.
//!
//! Whether more threads would help shows in what the present ones do: compute, wait for a CPU, wait for each other, or sleep.
//! There are three ways to see it, the [`Layer`]s; all give an [`Activity`], and it says which one it is from.
//!
//! Without privilege ([`Layer::Proc`]) the kernel accounts the first two exactly (`/proc/PID/task/TID/schedstat`); the rest of a
//! thread's time it slept. What it slept *for* is sampled: a thread that waits for another one, at a lock, a condition variable, a
//! barrier or a join, sleeps in the `futex` system call, which `/proc/PID/task/TID/syscall` tells. Voluntary switches and
//! migrations are counters of the kernel.
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
mod layer;
mod ledger;
mod overhead;
mod sampling;
mod source;

pub use activity::{Activity, ThreadActivity};
pub use layer::{Layer, Unavailable, UnknownLayer};
pub use overhead::Overhead;

use crate::fifo::Fifo;
use crate::roster::{Roster, Scope};
use crate::thread::ThreadId;
use sampling::Sampling;
use source::Source;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Between two looks at what every thread does.
const LOOK: Duration = Duration::from_millis(10);
/// Files that are slower to read are read at every so many-th look.
const COUNTED: u32 = 10;

/// A program that cannot be watched.
#[derive(Debug, Error)]
pub enum MonitorError {
    /// The layer that was asked for cannot be used here.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The program's processes cannot be listed.
    #[error("cannot list the program's threads: {0}")]
    Threads(#[from] io::Error),
}

/// Watches the threads of a program.
#[derive(Debug)]
pub struct Monitor {
    layer: Layer,
    refused: Vec<Unavailable>,
    roster: Roster,
    source: Box<dyn Source>,
    look: Duration,
}

impl Monitor {
    /// Of the processes in `scope` and those they create, by the best layer that is allowed here; [`Monitor::refused`] tells why
    /// it is no better one.
    pub fn best(scope: Scope) -> io::Result<Self> {
        let mut refused = Vec::new();
        for layer in [Layer::Ebpf, Layer::Perf] {
            match open(layer) {
                Ok(source) => return Self::new(scope, layer, source, refused),
                Err(unavailable) => refused.push(unavailable),
            }
        }
        Self::new(scope, Layer::Proc, Box::new(Sampling::default()), refused)
    }

    /// By the layer that is asked for.
    pub fn with(scope: Scope, layer: Layer) -> Result<Self, MonitorError> {
        Ok(Self::new(scope, layer, open(layer)?, Vec::new())?)
    }

    fn new(scope: Scope, layer: Layer, source: Box<dyn Source>, refused: Vec<Unavailable>) -> io::Result<Self> {
        Ok(Self { layer, refused, roster: Roster::new(scope)?, source, look: LOOK })
    }

    /// How the program is watched.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Better layers that were tried and cannot be used, the best one first.
    pub fn refused(&self) -> &[Unavailable] {
        &self.refused
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
        // Without the class looks are late beside busy threads; they are still looks.
        let _punctual = Fifo::raise();
        let spent = overhead::own_time();
        let begin = Instant::now();
        self.source.begin(&self.roster)?;
        for number in 0.. {
            let at = begin.elapsed();
            let last = at >= window || cancelled() || !self.alive();
            let counting = number % COUNTED == 0 || last;
            if counting {
                self.roster.look()?;
            } else {
                self.roster.look_at_threads();
            }
            self.source.look(&self.roster, at, counting)?;
            if last {
                break;
            }
            pause(self.look.min(window.saturating_sub(at)));
        }
        let elapsed = begin.elapsed();
        let mut threads = self.source.end(elapsed)?;
        let order: HashMap<ThreadId, usize> =
            self.roster.threads().enumerate().map(|(index, (_, id))| (id, index)).collect();
        threads.sort_by_key(|thread| order.get(&thread.id).copied().unwrap_or(usize::MAX));
        let mut overhead = Overhead { watching: overhead::own_time().saturating_sub(spent), ..Overhead::default() };
        self.source.charge(&mut overhead);
        Ok(Activity { layer: self.layer, elapsed, threads, lost: self.source.lost(), overhead })
    }
}

/// Prepares a layer.
fn open(layer: Layer) -> Result<Box<dyn Source>, Unavailable> {
    match layer {
        Layer::Proc => Ok(Box::new(Sampling::default())),
        Layer::Perf | Layer::Ebpf => Err(Unavailable { layer, reason: "not in this build of pinwise".into() }),
    }
}

#[cfg(test)]
mod tests;

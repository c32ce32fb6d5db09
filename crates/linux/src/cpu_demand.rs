//! The share of a CPU that a thread would use if it never had to wait for one.
//!
//! The CPU time that a thread got does not measure what it wants. On a crowded machine, a thread
//! that computes without pause may get less than 1 % of a CPU. The time it ran and waited does not
//! measure it either. A helper that wakes for 20 us every few milliseconds then waits most of its
//! time.
//!
//! A thread runs, waits for a CPU, or sleeps. Only sleeping is its own choice: it has nothing to
//! do. With nobody in the way there is no waiting, so the share it would use is
//!
//! ```text
//! demand = ran / (ran + slept) = ran / (elapsed - waited)
//! ```
//!
//! This is 1 for the thread that computes, however little it gets. It is a fraction of a percent
//! for the helper, however long it waits.
//!
//! The kernel accounts a wait when it is over (`/proc/PID/task/TID/schedstat`, second field). A
//! thread that still waits shows in its state. It is runnable from one look to the next and has not
//! run.

use crate::thread::SchedulerTimes;
use std::time::Duration;

/// The result of one look at a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSample {
    /// When, on any clock that does not jump.
    pub at: Duration,
    /// The kernel's account of it since its start.
    pub account: SchedulerTimes,
    /// It runs or waits for a CPU (state `R`).
    pub runnable: bool,
}

/// The account of a thread since pinwise began to watch it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuDemand {
    begin: Duration,
    first: SchedulerTimes,
    last: ThreadSample,
    /// Waits that are over, as far as they lie in the time watched.
    waited: Duration,
    /// Since when it has been runnable without having run.
    stuck: Duration,
}

impl CpuDemand {
    /// Begins with this look.
    pub(crate) fn from(look: ThreadSample) -> Self {
        Self {
            begin: look.at,
            first: look.account,
            last: look,
            waited: Duration::ZERO,
            stuck: look.at,
        }
    }

    /// Begins with the creation of the thread: what it did before this look counts.
    pub fn from_birth(look: ThreadSample) -> Self {
        Self { first: SchedulerTimes::default(), ..Self::from(look) }
    }

    /// Adds the next look.
    pub fn see(&mut self, look: ThreadSample) {
        let over = look.account.waited.saturating_sub(self.last.account.waited);
        // The first wait that ends may have begun before the thread was watched.
        let room = look
            .at
            .saturating_sub(self.begin)
            .saturating_sub(look.account.ran.saturating_sub(self.first.ran));
        self.waited = (self.waited + over).min(room);
        if !look.runnable || !self.last.runnable || look.account != self.last.account {
            self.stuck = look.at;
        }
        self.last = look;
    }

    /// Time on a CPU.
    pub(crate) fn ran(&self) -> Duration {
        self.last.account.ran.saturating_sub(self.first.ran)
    }

    /// Time waited for a CPU, the wait that is not over included.
    fn waited(&self) -> Duration {
        self.waited + self.last.at.saturating_sub(self.stuck)
    }

    /// Its own time: it ran, or slept by choice.
    pub(crate) fn own(&self) -> Duration {
        self.last.at.saturating_sub(self.begin).saturating_sub(self.waited())
    }

    /// The share of a CPU, 0 to 1, that it would have used in `elapsed` without waiting. If a
    /// thread waited for more than half of the time and never ran, the answer is 1. Nothing else is
    /// known.
    pub fn share(&self, elapsed: Duration) -> f64 {
        let (ran, waited) = (self.ran().as_secs_f64(), self.waited().as_secs_f64());
        let elapsed = elapsed.as_secs_f64();
        if ran == 0.0 {
            return if waited > elapsed / 2.0 { 1.0 } else { 0.0 };
        }
        (ran / (elapsed - waited).max(ran)).min(1.0)
    }
}

#[cfg(test)]
mod tests;

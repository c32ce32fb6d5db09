//! How much of a CPU a thread would use if it never had to wait for one.
//!
//! What a thread got is no measure of what it wants: on a crowded machine one that computes without
//! pause may get less than 1 % of a CPU. Nor is what it got and waited for together: a helper that
//! wakes for 20 us every few milliseconds then waits most of its time. Of the three parts of a
//! thread's time, running, waiting for a CPU and sleeping, only sleeping is its own choice: it has
//! nothing to do. Where nobody is in the way there is no waiting, so the share it would use is
//!
//! ```text
//! demand = ran / (ran + slept) = ran / (elapsed - waited)
//! ```
//!
//! 1 for the thread that computes, however little it gets, and a fraction of a per cent for the
//! helper, however long it waits.
//!
//! The kernel accounts a wait when it is over (`/proc/PID/task/TID/schedstat`, second field). A
//! thread that still waits shows in its state: runnable from one look to the next without having
//! run.

use crate::thread::Account;
use std::time::Duration;

/// What one look at a thread shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// When, on any clock that does not jump.
    pub at: Duration,
    /// The kernel's account of it since its start.
    pub account: Account,
    /// It runs or waits for a CPU (state `R`).
    pub runnable: bool,
}

/// A thread's time since it is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuDemand {
    begin: Duration,
    first: Account,
    last: Look,
    /// Waits that are over, as far as they lie in the time watched.
    waited: Duration,
    /// Since when it has been runnable without having run.
    stuck: Duration,
}

impl CpuDemand {
    /// Of a thread that is watched from this look on.
    pub(crate) fn from(look: Look) -> Self {
        Self {
            begin: look.at,
            first: look.account,
            last: look,
            waited: Duration::ZERO,
            stuck: look.at,
        }
    }

    /// Of a thread that has just been created; what it did before this look counts.
    pub fn from_birth(look: Look) -> Self {
        Self { first: Account::default(), ..Self::from(look) }
    }

    /// Takes in the next look.
    pub fn see(&mut self, look: Look) {
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

    /// Time of its own: it ran, or slept because it wanted to.
    pub(crate) fn own(&self) -> Duration {
        self.last.at.saturating_sub(self.begin).saturating_sub(self.waited())
    }

    /// The share of a CPU, 0 to 1, it would have used in `elapsed` without waiting. A thread that
    /// waited for more than half of the time and never ran counts as one that would have used
    /// all: nothing else is known of it.
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

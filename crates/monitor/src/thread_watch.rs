//! What pinwise observes of one thread in a window.

use crate::activity::ThreadActivity;
use crate::counters::Counters;
use pinwise_linux::thread::{Stat, ThreadId};
use std::time::Duration;

/// System calls by which a thread waits for another one. `futex_waitv` and `futex_wait` have the
/// same number on every architecture, but libc knows them only on some.
const WAITS_FOR_THREADS: [i64; 3] = [libc::SYS_futex, 449, 455];

/// What a thread does at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It runs or waits for a CPU.
    Runnable,
    /// It sleeps until another thread wakes it.
    Locked,
    /// It sleeps for another reason.
    Asleep,
}

impl Doing {
    /// Reads `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)). It says `running`, or the number
    /// of the system call that the thread sleeps in. The number -1 means none.
    pub(super) fn parse(text: &[u8]) -> Self {
        if text.starts_with(b"running") {
            return Self::Runnable;
        }
        let number = text
            .split(|byte| byte.is_ascii_whitespace())
            .next()
            .and_then(|field| std::str::from_utf8(field).ok());
        match number.and_then(|number| number.parse().ok()) {
            Some(number) if WAITS_FOR_THREADS.contains(&number) => Self::Locked,
            _ => Self::Asleep,
        }
    }
}

/// What is known about one thread so far.
#[derive(Clone, Debug)]
pub(super) struct ThreadWatch {
    begin: Duration,
    first: Counters,
    end: Duration,
    last: Counters,
    /// Looks that found it in a futex, and those that found it asleep for another reason.
    locked: u32,
    asleep: u32,
    looks: u32,
}

impl ThreadWatch {
    /// Begins to watch a thread at `at`.
    pub(super) fn new(at: Duration, counters: Counters) -> Self {
        Self { begin: at, first: counters, end: at, last: counters, locked: 0, asleep: 0, looks: 0 }
    }

    /// Takes in a look.
    pub(super) fn see(&mut self, doing: Doing) {
        self.looks += 1;
        match doing {
            Doing::Runnable => {}
            Doing::Locked => self.locked += 1,
            Doing::Asleep => self.asleep += 1,
        }
    }

    /// Takes in a reading of the counters.
    pub(super) fn count(&mut self, at: Duration, counters: Counters) {
        (self.end, self.last) = (at, counters);
    }

    /// Its counters at `at`; `None`: they were not read then.
    pub(super) fn counted(&self, at: Duration) -> Option<Counters> {
        (self.end == at).then_some(self.last)
    }

    /// What it did while it was watched.
    pub(super) fn activity(self, id: ThreadId, stat: Stat) -> ThreadActivity {
        let (first, last) = (self.first, self.last);
        let elapsed = self.end - self.begin;
        let ran = last.account.ran.saturating_sub(first.account.ran).min(elapsed);
        let waited = last.account.waited.saturating_sub(first.account.waited).min(elapsed - ran);
        let slept = elapsed - ran - waited;
        let locked = match (self.looks, self.locked, self.locked + self.asleep) {
            (0, ..) => None,
            (_, _, 0) => Some(Duration::ZERO),
            (_, locked, sleeping) => Some(slept.mul_f64(f64::from(locked) / f64::from(sleeping))),
        };
        ThreadActivity {
            id,
            comm: stat.comm,
            elapsed,
            ran,
            waited,
            slept,
            locked,
            looks: self.looks,
            voluntary: last.voluntary.saturating_sub(first.voluntary),
            involuntary: last.involuntary.saturating_sub(first.involuntary),
            migrations: last
                .migrations
                .zip(first.migrations)
                .map(|(last, first)| last.saturating_sub(first)),
            cpu: stat.cpu,
        }
    }
}

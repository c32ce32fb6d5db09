//! The kernel's counters of one thread, and the files they are in.
//!
//! Reading an open file takes a fifth of the time of opening it again. A process may have only a
//! limited number of open files, 1,024 by default. Files beyond that are opened for each reading.

use pinwise_linux::thread::{SchedulerTimes, Stat, ThreadId, field};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Since the thread's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) account: SchedulerTimes,
    /// Times it gave up its CPU to wait for something.
    pub(super) voluntary: u64,
    /// Times its CPU was taken from it.
    pub(super) involuntary: u64,
    /// Migrations to another CPU; `None` if the kernel does not report them (`CONFIG_SCHED_DEBUG`).
    pub(super) migrations: Option<u64>,
}

/// The files of a thread below `/proc/PID/task/TID`.
#[derive(Debug)]
pub(super) struct CounterFiles {
    id: ThreadId,
    /// In the order of [`NAMES`]; `None` if a file is not open.
    kept: [Option<File>; NAMES.len()],
    keep: bool,
    text: Vec<u8>,
}

const NAMES: [&str; 5] = ["syscall", "schedstat", "sched", "status", "stat"];
const SYSCALL: usize = 0;
const SCHEDSTAT: usize = 1;
const SCHED: usize = 2;
const STATUS: usize = 3;
const STAT: usize = 4;
/// Longer than any of them.
const LONGEST: usize = 8192;

impl CounterFiles {
    /// Opens the files of a thread if `others` are watched already.
    pub(super) fn new(id: ThreadId, others: usize) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let keep = ((others + 1) * NAMES.len()) as u64 <= limit / 2;
        Self { id, kept: [const { None }; NAMES.len()], keep, text: vec![0; LONGEST] }
    }

    /// What the thread does now. Fails if that is not visible, or if the thread has ended.
    pub(super) fn syscall(&mut self) -> io::Result<&[u8]> {
        self.read(SYSCALL)
    }

    /// What the scheduler has accounted to it. Fails if the thread has ended.
    pub(super) fn account(&mut self) -> io::Result<SchedulerTimes> {
        match self
            .read(SCHEDSTAT)
            .ok()
            .and_then(|text| SchedulerTimes::parse(std::str::from_utf8(text).ok()?))
        {
            Some(account) => Ok(account),
            // A kernel that does not report it; then its clock ticks.
            None => SchedulerTimes::read(self.id.pid, self.id.tid),
        }
    }

    /// Its counters. Fails if the thread has ended.
    pub(super) fn counters(&mut self) -> io::Result<Counters> {
        let account = self.account()?;
        // One file that has all of them, if there is one. A text as long as that takes as long as
        // three short ones.
        if let Ok(sched) = self.read(SCHED)
            && let (Some(voluntary), Some(involuntary)) =
                (field(sched, "nr_voluntary_switches"), field(sched, "nr_involuntary_switches"))
        {
            let migrations = field(sched, "se.nr_migrations");
            return Ok(Counters { account, voluntary, involuntary, migrations });
        }
        let status = self.read(STATUS)?;
        let voluntary = field(status, "voluntary_ctxt_switches").unwrap_or(0);
        let involuntary = field(status, "nonvoluntary_ctxt_switches").unwrap_or(0);
        Ok(Counters { account, voluntary, involuntary, migrations: None })
    }

    /// Its name, the CPU it ran on last, and the rest of `stat`.
    pub(super) fn stat(&mut self) -> io::Result<Stat> {
        Stat::parse(self.read(STAT)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn read(&mut self, which: usize) -> io::Result<&[u8]> {
        let length = if let Some(file) = &self.kept[which] {
            file.read_at(&mut self.text, 0)?
        } else {
            let file =
                File::open(format!("/proc/{}/task/{}/{}", self.id.pid, self.id.tid, NAMES[which]))?;
            let length = file.read_at(&mut self.text, 0)?;
            self.kept[which] = self.keep.then_some(file);
            length
        };
        Ok(&self.text[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::thread::{Pid, Tid};

    #[test]
    fn files_tell_the_same_whether_they_are_kept_open_or_not() {
        let (pid, tid) = (rustix::process::getpid(), rustix::thread::gettid());
        let (pid, tid) = (Pid(pid.as_raw_nonzero().get()), Tid(tid.as_raw_nonzero().get()));
        let id = ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start };
        let (mut kept, mut anew) =
            (CounterFiles::new(id, 0), CounterFiles::new(id, usize::MAX / 8));
        for _ in 0..2 {
            let before = anew.counters().unwrap();
            let between = kept.counters().unwrap();
            let after = anew.counters().unwrap();
            assert!(
                before.account.ran <= between.account.ran
                    && between.account.ran <= after.account.ran
            );
            assert!((before.voluntary..=after.voluntary).contains(&between.voluntary));
            assert!(!kept.syscall().unwrap().is_empty());
        }
        assert!(kept.kept[SCHEDSTAT].is_some() && anew.kept.iter().all(Option::is_none));
        let gone = ThreadId { tid: Tid(i32::MAX), ..id };
        assert!(CounterFiles::new(gone, 0).counters().is_err());
    }
}

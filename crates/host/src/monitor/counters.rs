//! What the kernel counts of one thread, and the files that tell.
//!
//! Reading a file that is kept open takes a fifth of the time of opening it anew. A process may keep only so many open (1,024
//! unless told otherwise): what is over half of that is opened for each reading.

use crate::roster::may_stay_open;
use crate::thread::{Account, Stat, ThreadId};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Since the thread's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) account: Account,
    /// Times it gave up its CPU to wait for something.
    pub(super) voluntary: u64,
    /// Times its CPU was taken from it.
    pub(super) involuntary: u64,
    /// Times it went on at another CPU; `None` where the kernel does not tell (`CONFIG_SCHED_DEBUG`).
    pub(super) migrations: Option<u64>,
}

/// The files of a thread below `/proc/PID/task/TID`.
#[derive(Debug)]
pub(super) struct Files {
    id: ThreadId,
    /// In the order of [`NAMES`]; `None` where it is not kept open.
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

impl Files {
    /// Of a thread.
    pub(super) fn new(id: ThreadId) -> Self {
        Self { id, kept: [const { None }; NAMES.len()], keep: true, text: vec![0; LONGEST] }
    }

    /// What the thread does now; an error where that may not be seen, or where it has ended.
    pub(super) fn syscall(&mut self) -> io::Result<&[u8]> {
        self.read(SYSCALL)
    }

    /// What the scheduler has accounted to it; an error where it has ended.
    pub(super) fn account(&mut self) -> io::Result<Account> {
        let account = match self.read(SCHEDSTAT) {
            Ok(text) => std::str::from_utf8(text).ok().and_then(Account::parse),
            // It has ended; by now its number may be another thread's.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(error),
            Err(_) => None,
        };
        // A kernel that does not tell; then its clock ticks.
        account.map_or_else(|| Account::read(self.id.pid, self.id.tid), Ok)
    }

    /// Its counters; an error where it has ended.
    pub(super) fn counters(&mut self) -> io::Result<Counters> {
        let account = self.account()?;
        // One file that has all of them, where there is one: a text as long as that takes as long as three short ones.
        if let Ok(sched) = self.read(SCHED)
            && let (Some(voluntary), Some(involuntary)) =
                (field(sched, b"nr_voluntary_switches"), field(sched, b"nr_involuntary_switches"))
        {
            let migrations = field(sched, b"se.nr_migrations");
            return Ok(Counters { account, voluntary, involuntary, migrations });
        }
        let status = self.read(STATUS)?;
        let voluntary = field(status, b"voluntary_ctxt_switches").unwrap_or(0);
        let involuntary = field(status, b"nonvoluntary_ctxt_switches").unwrap_or(0);
        Ok(Counters { account, voluntary, involuntary, migrations: None })
    }

    /// Its name, where it ran last, and the rest that is there.
    pub(super) fn stat(&mut self) -> io::Result<Stat> {
        Stat::parse(self.read(STAT)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn read(&mut self, which: usize) -> io::Result<&[u8]> {
        let length = if let Some(file) = &self.kept[which] {
            file.read_at(&mut self.text, 0)?
        } else {
            let file = File::open(format!("/proc/{}/task/{}/{}", self.id.pid, self.id.tid, NAMES[which]))?;
            let length = file.read_at(&mut self.text, 0)?;
            self.keep &= may_stay_open(&file);
            self.kept[which] = self.keep.then_some(file);
            length
        };
        Ok(&self.text[..length])
    }
}

/// The number on the line that begins with `name`, blanks and a colon.
fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    let value = text.split(|&byte| byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(name)?.trim_ascii_start();
        rest.strip_prefix(b":")
    })?;
    std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{Pid, Tid};

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(field(status, b"voluntary_ctxt_switches"), Some(150));
        assert_eq!(field(status, b"nonvoluntary_ctxt_switches"), Some(545));
        let sched = b"x (1, #threads: 1)\n-----\nse.nr_migrations              :        7\nnr_switches  :  9\n";
        assert_eq!(field(sched, b"se.nr_migrations"), Some(7));
        assert_eq!(field(sched, b"nr_migrations"), None);
        assert_eq!(field(b"se.nr_migrations : many\n", b"se.nr_migrations"), None);
    }

    #[test]
    fn files_tell_the_same_whether_they_are_kept_open_or_not() {
        let (pid, tid) = (rustix::process::getpid(), rustix::thread::gettid());
        let (pid, tid) = (Pid(pid.as_raw_nonzero().get()), Tid(tid.as_raw_nonzero().get()));
        let id = ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start };
        let (mut kept, mut anew) = (Files::new(id), Files { keep: false, ..Files::new(id) });
        for _ in 0..2 {
            let before = anew.counters().unwrap();
            let between = kept.counters().unwrap();
            let after = anew.counters().unwrap();
            assert!(before.account.ran <= between.account.ran && between.account.ran <= after.account.ran);
            assert!((before.voluntary..=after.voluntary).contains(&between.voluntary));
            assert!(!kept.syscall().unwrap().is_empty());
        }
        assert!(kept.kept[SCHEDSTAT].is_some() && anew.kept.iter().all(Option::is_none));
        let gone = ThreadId { tid: Tid(i32::MAX), ..id };
        assert!(Files::new(gone).counters().is_err());
    }

    #[test]
    fn a_thread_that_has_ended_is_not_taken_for_the_one_that_has_its_number() {
        let pid = Pid(rustix::process::getpid().as_raw_nonzero().get());
        let ended = std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero();
            File::open(format!("/proc/self/task/{tid}/schedstat")).unwrap()
        });
        let ended = ended.join().unwrap();
        // It is told to have ended a moment before the kernel has taken it away.
        while ended.read_at(&mut [0; 64], 0).is_ok() {
            std::thread::yield_now();
        }
        let mut files =
            Files::new(ThreadId { pid, tid: pid.main(), start: Stat::read(pid, pid.main()).unwrap().start });
        assert!(files.account().is_ok());
        files.kept[SCHEDSTAT] = Some(ended);
        assert!(crate::thread::gone(&files.account().unwrap_err()));
    }
}

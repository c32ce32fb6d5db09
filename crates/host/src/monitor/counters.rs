//! What the kernel counts of one thread.

use crate::thread::{Account, ThreadId};
use std::fs;
use std::io;

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

impl Counters {
    /// Reads them; an error where the thread has ended.
    pub(super) fn read(id: ThreadId) -> io::Result<Self> {
        let file = |name: &str| format!("/proc/{}/task/{}/{name}", id.pid, id.tid);
        let status = fs::read_to_string(file("status"))?;
        let sched = fs::read_to_string(file("sched")).unwrap_or_default();
        Ok(Self {
            account: Account::read(id.pid, id.tid)?,
            voluntary: field(&status, "voluntary_ctxt_switches").unwrap_or(0),
            involuntary: field(&status, "nonvoluntary_ctxt_switches").unwrap_or(0),
            migrations: field(&sched, "se.nr_migrations"),
        })
    }
}

/// The number on the line that begins with `name`, blanks and a colon.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(field(status, "voluntary_ctxt_switches"), Some(150));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches"), Some(545));
        let sched = "x (1, #threads: 1)\n-----\nse.nr_migrations              :        7\nnr_switches  :  9\n";
        assert_eq!(field(sched, "se.nr_migrations"), Some(7));
        assert_eq!(field(sched, "nr_migrations"), None);
        assert_eq!(field("se.nr_migrations : many\n", "se.nr_migrations"), None);
    }
}

//! Watching by looking at `/proc` ([`Layer::Proc`]).
//!
//! [`Layer::Proc`]: super::Layer::Proc

use super::activity::ThreadActivity;
use super::counters::Counters;
use super::ledger::{Doing, Ledger};
use super::source::Source;
use crate::roster::Roster;
use crate::thread::{Stat, ThreadId};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The threads that are watched, and those that ended meanwhile.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    watched: HashMap<ThreadId, Watched>,
    ended: Vec<(ThreadId, Watched)>,
}

/// A thread that is watched.
#[derive(Debug)]
struct Watched {
    stat: Stat,
    /// `/proc/PID/task/TID/syscall`, kept open; `None` where it may not be read.
    syscall: Option<File>,
    ledger: Ledger,
}

impl Source for Sampling {
    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        *self = Self::default();
        Ok(())
    }

    /// Looks at every thread; those that are gone go to `ended`.
    fn look(&mut self, roster: &Roster, at: Duration, counting: bool) -> io::Result<()> {
        let present: Vec<ThreadId> = roster.threads().map(|(_, id)| id).collect();
        let gone: Vec<ThreadId> = self.watched.keys().filter(|id| !present.contains(id)).copied().collect();
        self.ended.extend(gone.into_iter().filter_map(|id| Some((id, self.watched.remove(&id)?))));
        for id in present {
            if let Some(watched) = self.watched.get_mut(&id) {
                watched.look(id, at, counting);
            } else if let Some(watched) = Watched::begin(id, at) {
                self.watched.insert(id, watched);
            }
        }
        Ok(())
    }

    fn end(&mut self, _: Duration) -> io::Result<Vec<ThreadActivity>> {
        let threads = self.watched.drain().chain(self.ended.drain(..));
        Ok(threads.map(|(id, watched)| watched.ledger.activity(id, watched.stat)).collect())
    }
}

impl Watched {
    /// `None`: the thread ended meanwhile.
    fn begin(id: ThreadId, at: Duration) -> Option<Self> {
        let counters = Counters::read(id).ok()?;
        let stat = Stat::read(id.pid, id.tid).ok()?;
        // The file opens for everybody and refuses to be read.
        let readable = |file: &File| doing(file).is_ok();
        let syscall = File::open(format!("/proc/{}/task/{}/syscall", id.pid, id.tid)).ok().filter(readable);
        Some(Self { stat, syscall, ledger: Ledger::new(at, counters) })
    }

    fn look(&mut self, id: ThreadId, at: Duration, counting: bool) {
        if let Some(doing) = self.syscall.as_ref().and_then(|file| doing(file).ok()) {
            self.ledger.see(doing);
        }
        if counting && let Ok(counters) = Counters::read(id) {
            self.ledger.count(at, counters);
            // A thread often gets its name after it was created.
            if let Ok(stat) = Stat::read(id.pid, id.tid) {
                self.stat = stat;
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

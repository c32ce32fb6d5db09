//! Watching by looking at `/proc` ([`Layer::Proc`]).
//!
//! [`Layer::Proc`]: super::Layer::Proc

use super::activity::ThreadActivity;
use super::counters::Files;
use super::ledger::{Doing, Ledger};
use super::source::Source;
use crate::roster::Roster;
use crate::thread::{Stat, ThreadId};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

/// The threads that are watched, and those that ended meanwhile.
#[derive(Debug)]
pub(super) struct Sampling {
    pace: Duration,
    watched: HashMap<ThreadId, Watched>,
    ended: Vec<(ThreadId, Watched)>,
}

/// A thread that is watched.
#[derive(Debug)]
struct Watched {
    stat: Stat,
    files: Files,
    /// Whether what it does may be seen.
    seen: bool,
    /// `None` before the first look of a window.
    ledger: Option<Ledger>,
}

impl Sampling {
    /// `pace` from one look to the next.
    pub(super) fn every(pace: Duration) -> Self {
        Self { pace, watched: HashMap::new(), ended: Vec::new() }
    }
}

impl Source for Sampling {
    fn pace(&self) -> Duration {
        self.pace
    }

    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        self.ended.clear();
        self.watched.values_mut().for_each(|watched| watched.ledger = None);
        Ok(())
    }

    /// Looks at every thread; those that are gone go to `ended`.
    fn look(&mut self, roster: &Roster, at: Duration, counting: bool) -> io::Result<()> {
        let present: HashSet<ThreadId> = roster.threads().map(|(_, id)| id).collect();
        self.ended.extend(self.watched.extract_if(|id, _| !present.contains(id)));
        let mut others = self.watched.len();
        for (_, id) in roster.threads() {
            if let Some(watched) = self.watched.get_mut(&id) {
                watched.look(at, counting);
            } else if let Some(watched) = Watched::begin(id, at, others) {
                self.watched.insert(id, watched);
                others += 1;
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &Roster) -> io::Result<Vec<ThreadActivity>> {
        let alive = self.watched.iter_mut().map(|(&id, watched)| (id, watched));
        let ended = self.ended.iter_mut().map(|(id, watched)| (*id, watched));
        Ok(alive.chain(ended).filter_map(|(id, watched)| watched.end(id)).collect())
    }
}

impl Watched {
    /// `None`: the thread ended meanwhile.
    fn begin(id: ThreadId, at: Duration, others: usize) -> Option<Self> {
        let mut files = Files::new(id, others);
        let stat = files.stat().ok()?;
        // The file opens for everybody and refuses to be read.
        let seen = files.syscall().is_ok();
        let ledger = Some(Ledger::new(at, files.counters().ok()?));
        Some(Self { stat, files, seen, ledger })
    }

    fn look(&mut self, at: Duration, counting: bool) {
        let Some(ledger) = &mut self.ledger else {
            self.ledger = self.files.counters().ok().map(|counters| Ledger::new(at, counters));
            return;
        };
        if self.seen
            && let Ok(text) = self.files.syscall()
        {
            ledger.see(Doing::parse(text));
        }
        if counting && let Ok(counters) = self.files.counters() {
            ledger.count(at, counters);
        }
    }

    /// What it did in the window; `None`: it was not looked at.
    fn end(&mut self, id: ThreadId) -> Option<ThreadActivity> {
        // A thread often gets its name after it was created.
        if let Some(stat) = self.files.stat().ok().filter(|stat| stat.start == id.start) {
            self.stat = stat;
        }
        Some(self.ledger.take()?.activity(id, self.stat.clone()))
    }
}

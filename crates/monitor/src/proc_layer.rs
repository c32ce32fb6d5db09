//! The layer that looks at `/proc` ([`Layer::Proc`]).
//!
//! [`Layer::Proc`]: super::Layer::Proc

use crate::activity::ThreadActivity;
use crate::counters::{CounterFiles, Counters};
use crate::layer_reader::LOOK;
use crate::layer_reader::LayerReader;
use crate::thread_watch::{Doing, ThreadWatch};
use pinwise_linux::{
    Roster,
    thread::{Stat, ThreadId, gone},
};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

/// The threads that are watched, and those that ended meanwhile.
#[derive(Debug)]
pub(super) struct ProcLayer {
    /// Whether to report switches and migrations: their file costs the most to read.
    switches: bool,
    watched: HashMap<ThreadId, WatchedThread>,
    ended: Vec<(ThreadId, WatchedThread)>,
    /// The last look of the window so far.
    last: Duration,
}

/// A thread that is watched.
#[derive(Debug)]
struct WatchedThread {
    stat: Stat,
    files: CounterFiles,
    /// Whether what it does may be seen.
    seen: bool,
    /// `None` before the first look of a window.
    watch: Option<ThreadWatch>,
    /// Its counters at the end of the window before.
    left: Option<Counters>,
}

impl ProcLayer {
    /// A sampler of everything in `/proc`.
    pub(super) fn new() -> Self {
        Self { switches: true, watched: HashMap::new(), ended: Vec::new(), last: Duration::ZERO }
    }

    /// What records of switches do not show.
    pub(super) fn beside_records() -> Self {
        Self { switches: false, ..Self::new() }
    }
}

impl LayerReader for ProcLayer {
    fn pace(&self) -> Duration {
        LOOK
    }

    fn begin(&mut self, _: &Roster) -> io::Result<()> {
        self.ended.clear();
        self.watched.values_mut().for_each(|watched| watched.watch = None);
        Ok(())
    }

    fn follow(&mut self, _: &Roster) -> io::Result<bool> {
        self.ended.clear();
        self.last = Duration::ZERO;
        for watched in self.watched.values_mut() {
            watched.watch =
                watched.left.take().map(|counters| ThreadWatch::new(Duration::ZERO, counters));
        }
        Ok(true)
    }

    fn glimpse(&mut self) -> bool {
        self.watched.values_mut().fold(false, |gone, watched| watched.glimpse() | gone)
    }

    /// Counts, and takes up new threads; those that are gone go to `ended`.
    fn look(&mut self, roster: &Roster, at: Duration, counting: bool) -> io::Result<bool> {
        self.last = at;
        let (mut others, mut found, mut gone) = (self.watched.len(), 0, false);
        for (_, id) in roster.threads() {
            if let Some(watched) = self.watched.get_mut(&id) {
                gone |= watched.look(at, counting, self.switches);
            } else if let Some(watched) = WatchedThread::begin(id, at, others, self.switches) {
                self.watched.insert(id, watched);
                others += 1;
            } else {
                continue;
            }
            found += 1;
        }
        if found < self.watched.len() {
            let present: HashSet<ThreadId> = roster.threads().map(|(_, id)| id).collect();
            self.ended.extend(self.watched.extract_if(|id, _| !present.contains(id)));
        }
        Ok(gone)
    }

    fn end(&mut self, _: &Roster) -> io::Result<Vec<ThreadActivity>> {
        let last = self.last;
        let alive = self.watched.iter_mut().map(|(&id, watched)| (id, watched));
        let ended = self.ended.iter_mut().map(|(id, watched)| (*id, watched));
        Ok(alive.chain(ended).filter_map(|(id, watched)| watched.end(id, last)).collect())
    }
}

impl WatchedThread {
    /// `None`: the thread ended meanwhile.
    fn begin(id: ThreadId, at: Duration, others: usize, switches: bool) -> Option<Self> {
        let mut files = CounterFiles::new(id, others);
        let stat = files.stat().ok()?;
        // The file opens for everybody and refuses to be read.
        let seen = files.syscall().is_ok();
        let watch = Some(ThreadWatch::new(at, read(&mut files, switches).ok()?));
        Some(Self { stat, files, seen, watch, left: None })
    }

    /// Whether it was found to have ended.
    fn glimpse(&mut self) -> bool {
        let Some(watch) = self.watch.as_mut().filter(|_| self.seen) else { return false };
        match self.files.syscall() {
            Ok(text) => {
                watch.see(Doing::parse(text));
                false
            }
            Err(error) => gone(&error),
        }
    }

    /// Whether it was found to have ended.
    fn look(&mut self, at: Duration, counting: bool, switches: bool) -> bool {
        let Some(watch) = &mut self.watch else {
            self.watch =
                read(&mut self.files, switches).ok().map(|counters| ThreadWatch::new(at, counters));
            return self.watch.is_none();
        };
        if counting {
            match read(&mut self.files, switches) {
                Ok(counters) => watch.count(at, counters),
                Err(error) => return gone(&error),
            }
        }
        false
    }

    /// What it did in the window, whose last look was at `last`; `None`: it was not looked at.
    fn end(&mut self, id: ThreadId, last: Duration) -> Option<ThreadActivity> {
        // A thread often gets its name after it was created.
        if let Some(stat) = self.files.stat().ok().filter(|stat| stat.start == id.start) {
            self.stat = stat;
        }
        let watch = self.watch.take()?;
        self.left = watch.counted(last);
        Some(watch.activity(id, self.stat.clone()))
    }
}

fn read(files: &mut CounterFiles, switches: bool) -> io::Result<Counters> {
    if switches {
        files.counters()
    } else {
        Ok(Counters { account: files.account()?, ..Counters::default() })
    }
}

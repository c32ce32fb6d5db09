//! Keeps a program's threads in their places while they appear.
//!
//! A program that is started anew creates its threads anew. They are told apart by name ([`crate::role`]): comm and order of
//! creation. Both settle only as the program starts up: a new thread carries its creator's comm until it gives itself one, and
//! `pigz` becomes `pigz#0` when the second appears. So names are worked out again whenever something changed, and a thread
//! moves when its name says so. Threads without a place run where their process may.
//!
//! Limit: between two looks (1 ms while threads appear, then up to 20 ms) a new thread runs where its creator is pinned.

use crate::affinity::{self, AffinityError};
use crate::guardian::release_inherited;
use crate::role::{self, Found};
use crate::roster::{Roster, Scope};
use crate::thread::{Pid, Stat, ThreadId, on_cpu};
use pinwise_testbed::Thread;
use pinwise_topology::CpuSet;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

/// While something changes.
const SHORTEST: Duration = Duration::from_millis(1);
/// When nothing has changed for long; also how often other processes are looked for.
const LONGEST: Duration = Duration::from_millis(20);
/// How long a new thread is asked for its name at every look.
const NAMING: Duration = Duration::from_millis(100);
/// How long it is asked now and then: on a crowded machine it may take long to run its first instructions.
const RENAMING: Duration = Duration::from_secs(2);

/// A thread that was seen, alive or not.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) id: ThreadId,
    pub(crate) comm: String,
    process: usize,
    since: Instant,
    alive: bool,
    /// Where we put it.
    place: Option<CpuSet>,
    /// Time on a CPU when it was last asked.
    pub(crate) on_cpu: Duration,
}

/// Places threads by name.
#[derive(Debug)]
pub struct Placer {
    roster: Roster,
    places: BTreeMap<String, CpuSet>,
    seen: Vec<Seen>,
    interval: Duration,
    looked_for_processes: Instant,
}

impl Placer {
    /// For the threads of `pid` and the processes it starts. `places` are by thread name.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn new(pid: Pid, places: BTreeMap<String, CpuSet>) -> io::Result<Self> {
        let roster = Roster::new(Scope::Trees(vec![pid]))?;
        let mut placer =
            Self { roster, places, seen: Vec::new(), interval: SHORTEST, looked_for_processes: Instant::now() };
        let first: Vec<(ThreadId, usize)> = placer.roster.threads().map(|(member, id)| (id, member.root)).collect();
        placer.meet(first);
        Ok(placer)
    }

    /// Looks for threads and moves those that are not in their place. Answers after how long to look again.
    ///
    /// # Errors
    /// A move that was refused; a thread that is gone is none.
    pub fn step(&mut self) -> Result<Duration, AffinityError> {
        let now = Instant::now();
        let look_for_processes = now - self.looked_for_processes >= LONGEST;
        let changes = if look_for_processes {
            self.looked_for_processes = now;
            // An unreadable /proc shows nothing new.
            self.roster.look().unwrap_or_default()
        } else {
            self.roster.look_at_threads()
        };
        let gone: HashSet<ThreadId> = changes.gone.into_iter().collect();
        self.seen.iter_mut().filter(|seen| gone.contains(&seen.id)).for_each(|seen| seen.alive = false);
        let new: Vec<(ThreadId, usize)> =
            changes.new.iter().filter_map(|id| Some((*id, self.roster.member(id.pid)?.root))).collect();
        let mut changed = !new.is_empty();
        self.meet(new);
        // The first thread of a process is renamed by exec at any time.
        for seen in self.seen.iter_mut().filter(|seen| seen.alive) {
            let age = now - seen.since;
            let now_and_then = look_for_processes && (age < RENAMING || seen.id.tid == seen.id.pid.main());
            if (now_and_then || age < NAMING)
                && let Ok(stat) = Stat::read(seen.id.pid, seen.id.tid)
                && stat.comm != seen.comm
            {
                seen.comm = stat.comm;
                changed = true;
            }
        }
        self.place()?;
        self.interval = if changed { SHORTEST } else { (self.interval * 5 / 4).min(LONGEST) };
        Ok(self.interval)
    }

    /// The threads seen so far, in the order of creation, and their names.
    pub(crate) fn seen(&self) -> (&[Seen], Vec<Thread>) {
        (&self.seen, self.names())
    }

    /// Asks how long each thread has been on a CPU.
    pub(crate) fn account(&mut self) {
        for seen in self.seen.iter_mut().filter(|seen| seen.alive) {
            if let Ok(time) = on_cpu(seen.id.pid, seen.id.tid) {
                seen.on_cpu = time;
            }
        }
    }

    fn meet(&mut self, new: Vec<(ThreadId, usize)>) {
        let since = Instant::now();
        self.seen.extend(new.into_iter().map(|(id, process)| {
            let comm = Stat::read(id.pid, id.tid).map(|stat| stat.comm).unwrap_or_default();
            Seen { id, comm, process, since, alive: true, place: None, on_cpu: Duration::ZERO }
        }));
    }

    fn names(&self) -> Vec<Thread> {
        let found: Vec<Found<'_>> =
            self.seen.iter().map(|seen| Found { comm: &seen.comm, process: seen.process }).collect();
        role::name(&found)
    }

    fn place(&mut self) -> Result<(), AffinityError> {
        if self.places.is_empty() {
            return Ok(());
        }
        let names = self.names();
        for (seen, thread) in self.seen.iter_mut().zip(names).filter(|(seen, _)| seen.alive) {
            let wanted = self.places.get(&thread.name);
            let fresh = seen.since.elapsed() < NAMING;
            let moved = match wanted {
                Some(cpus) if seen.place.as_ref() != Some(cpus) => affinity::set(seen.id.tid, cpus),
                None if seen.place.is_some() || fresh => match self.roster.member(seen.id.pid) {
                    Some(member) => release_inherited(seen.id.tid, &member.mask),
                    None => Ok(()),
                },
                _ => Ok(()),
            };
            match moved {
                Ok(()) => seen.place = wanted.cloned(),
                Err(AffinityError::Gone(_)) => seen.alive = false,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

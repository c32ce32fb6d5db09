//! Groups of events of many threads that come and go, and what they counted since the last reading.
//!
//! A thread has a file descriptor for each event. A reading takes one system call for each group.

use crate::multiplexing::{PartialCount, whole};
use crate::source::CountError;
use pinwise_linux::sys::{CountedModes, EventCode, EventGroup, GroupReading};
use pinwise_linux::{ThreadId, Tid};
use pinwise_measure::{CounterEvent, EventCounts};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::io;
use std::time::{Duration, Instant};

/// The system calls that count events.
pub(crate) trait EventKernel {
    /// Events of a thread that are counted at the same time.
    type Group: Debug;

    /// See [`EventGroup::open`].
    fn open(&self, tid: Tid, codes: &[EventCode], modes: CountedModes) -> io::Result<Self::Group>;

    /// See [`EventGroup::read`].
    fn read(&self, group: &Self::Group) -> io::Result<GroupReading>;

    /// A steady clock.
    fn now(&self) -> Duration;
}

/// This machine.
#[derive(Debug)]
pub(crate) struct ThisKernel(Instant);

impl ThisKernel {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl EventKernel for ThisKernel {
    type Group = EventGroup;

    fn open(&self, tid: Tid, codes: &[EventCode], modes: CountedModes) -> io::Result<EventGroup> {
        EventGroup::open(tid.0, codes, modes)
    }

    fn read(&self, group: &EventGroup) -> io::Result<GroupReading> {
        group.read()
    }

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Events that each thread gets as a group. An event of several kinds of cores is in several
/// groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedGroup {
    pub(crate) events: Vec<CounterEvent>,
    pub(crate) codes: Vec<EventCode>,
}

/// The groups of all threads.
#[derive(Debug)]
pub(crate) struct ThreadGroups<K: EventKernel> {
    pub(crate) kernel: K,
    pub(crate) plan: Vec<PlannedGroup>,
    pub(crate) modes: CountedModes,
    open: HashMap<ThreadId, OpenThread<K::Group>>,
}

/// The groups of a thread, in the order of the plan, and what they had counted when they were read.
#[derive(Debug)]
struct OpenThread<G> {
    groups: Vec<G>,
    last: Vec<GroupReading>,
    at: Duration,
}

impl<K: EventKernel> ThreadGroups<K> {
    pub(crate) fn new(kernel: K, plan: Vec<PlannedGroup>, modes: CountedModes) -> Self {
        Self { kernel, plan, modes, open: HashMap::new() }
    }

    /// See [`crate::CountSource::read`].
    pub(crate) fn read(
        &mut self,
        threads: &[ThreadId],
    ) -> Result<Vec<Option<EventCounts>>, CountError> {
        let given: HashSet<ThreadId> = threads.iter().copied().collect();
        self.open.retain(|thread, _| given.contains(thread));
        threads.iter().map(|&thread| self.read_thread(thread, threads.len())).collect()
    }

    fn read_thread(
        &mut self,
        thread: ThreadId,
        threads: usize,
    ) -> Result<Option<EventCounts>, CountError> {
        let Some(open) = self.open.get_mut(&thread) else {
            return match self.open_thread(thread.tid) {
                Ok(open) => {
                    self.open.insert(thread, open);
                    Ok(None)
                }
                Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => Ok(None),
                Err(error) => Err(self.explain(error, thread.tid, threads)),
            };
        };
        let readings: io::Result<Vec<GroupReading>> =
            open.groups.iter().map(|group| self.kernel.read(group)).collect();
        let now = self.kernel.now();
        let readings = match readings {
            Ok(readings) => readings,
            Err(error) => return Err(self.explain(error, thread.tid, threads)),
        };
        let seconds = now.saturating_sub(open.at).as_secs_f64();
        let counts = counts_between(&self.plan, &open.last, &readings, seconds);
        (open.last, open.at) = (readings, now);
        Ok(Some(counts))
    }

    fn open_thread(&self, tid: Tid) -> io::Result<OpenThread<K::Group>> {
        let open = |group: &PlannedGroup| self.kernel.open(tid, &group.codes, self.modes);
        let groups: Vec<K::Group> = self.plan.iter().map(open).collect::<io::Result<_>>()?;
        // What the thread does between two of these system calls is not lost, and not told twice.
        let last = groups.iter().map(|group| self.kernel.read(group)).collect::<io::Result<_>>()?;
        Ok(OpenThread { groups, last, at: self.kernel.now() })
    }

    fn explain(&self, error: io::Error, tid: Tid, threads: usize) -> CountError {
        match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::PERM) => CountError::OfAnotherUser { tid },
            Some(Errno::MFILE) => {
                let files =
                    threads * self.plan.iter().map(|group| group.codes.len()).sum::<usize>();
                // pinwise opens other files, too.
                CountError::TooManyFiles { threads, files, limit: 2 * files }
            }
            _ => CountError::Kernel { tid, error },
        }
    }
}

/// What was counted between two readings of the groups of a thread.
fn counts_between(
    plan: &[PlannedGroup],
    before: &[GroupReading],
    after: &[GroupReading],
    seconds: f64,
) -> EventCounts {
    let mut parts: BTreeMap<CounterEvent, Vec<PartialCount>> = BTreeMap::new();
    let on_cpu = before.iter().zip(after).any(|(before, after)| after.enabled > before.enabled);
    for ((group, before), after) in plan.iter().zip(before).zip(after) {
        let enabled = after.enabled.saturating_sub(before.enabled);
        let running = after.running.saturating_sub(before.running);
        let share = match (on_cpu, enabled) {
            // A thread that did not run did nothing, and nothing of that was missed.
            (false, _) => 1.0,
            (true, 0) => 0.0,
            (true, _) => running as f64 / enabled as f64,
        };
        for ((&event, before), after) in group.events.iter().zip(&before.counts).zip(&after.counts)
        {
            let count = after.saturating_sub(*before) as f64;
            parts.entry(event).or_default().push(PartialCount { count, share });
        }
    }
    let mut counted: f64 = 1.0;
    let whole = parts.into_iter().filter_map(|(event, parts)| {
        let (count, share) = whole(parts)?;
        counted = counted.min(share);
        Some((event, count))
    });
    EventCounts { seconds, counts: whole.collect(), counted }
}

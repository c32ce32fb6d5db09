//! Groups of events of many threads that come and go, and what they counted since the last reading.
//!
//! A thread has a file descriptor for each event. A reading takes one system call for each group,
//! and one to see whether the thread has ended.

use crate::multiplexing::{PartialCount, whole};
use crate::source::{CountError, ThreadCounts};
use pinwise_linux::sys::{CountedModes, EventCode, EventGroup, GroupReading};
use pinwise_linux::{ThreadId, Tid};
use pinwise_measure::{CounterEvent, EventCounts};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, test_kill_process};
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

    /// See [`ThreadId::alive`].
    fn alive(&self, thread: ThreadId) -> bool;

    /// Whether no thread has this number. It takes one system call and no file.
    fn is_free(&self, tid: Tid) -> bool;

    /// How many files may be open.
    fn file_limit(&self) -> u64;

    /// `kernel.perf_event_paranoid`, if it can be read.
    fn paranoid(&self) -> Option<String>;
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

    fn alive(&self, thread: ThreadId) -> bool {
        thread.alive()
    }

    fn is_free(&self, tid: Tid) -> bool {
        let number = rustix::process::Pid::from_raw(tid.0);
        number.is_some_and(|number| test_kill_process(number) == Err(Errno::SRCH))
    }

    fn file_limit(&self) -> u64 {
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }

    fn paranoid(&self) -> Option<String> {
        let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
        Some(text.trim().to_owned())
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
    pub(crate) fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
        let given: HashSet<ThreadId> = threads.iter().copied().collect();
        self.open.retain(|thread, _| given.contains(thread));
        let files = self.plan.iter().map(|group| group.codes.len()).sum::<usize>() * threads.len();
        let files = files as u64;
        let mut read = Vec::with_capacity(threads.len());
        // Half of the limit is for the rest of pinwise.
        let mut too_many = files > self.kernel.file_limit() / 2;
        for &thread in threads {
            let one = if too_many { Ok(None) } else { self.read_thread(thread) };
            too_many |= one.as_ref().is_err_and(|error| is(error, Errno::MFILE));
            read.push(one.map_err(|error| explain(error, thread.tid)));
        }
        if too_many {
            self.open.clear();
            let refuse = |_| Err(too_many_files(threads.len(), files, self.kernel.file_limit()));
            return threads.iter().map(refuse).collect();
        }
        read
    }

    fn read_thread(&mut self, thread: ThreadId) -> io::Result<Option<EventCounts>> {
        let Some(open) = self.open.get_mut(&thread) else {
            match self.open_thread(thread.tid) {
                // The number may have gone to a later thread before it was opened.
                Ok(open) if self.kernel.alive(thread) => {
                    self.open.insert(thread, open);
                }
                Err(error) if !is(&error, Errno::SRCH) => return Err(error),
                _ => {}
            }
            return Ok(None);
        };
        // Asked before it is read: then nothing comes after these counts.
        let ended = self.kernel.is_free(thread.tid);
        let readings: Vec<GroupReading> =
            open.groups.iter().map(|group| self.kernel.read(group)).collect::<io::Result<_>>()?;
        if ended && readings == open.last {
            self.open.remove(&thread);
            return Ok(None);
        }
        let now = self.kernel.now();
        let seconds = now.saturating_sub(open.at).as_secs_f64();
        let counts = counts_between(&self.plan, &open.last, &readings, seconds);
        (open.last, open.at) = (readings, now);
        Ok(Some(counts))
    }

    fn open_thread(&self, tid: Tid) -> io::Result<OpenThread<K::Group>> {
        let open = |group: &PlannedGroup| self.kernel.open(tid, &group.codes, self.modes);
        let groups: Vec<K::Group> = self.plan.iter().map(open).collect::<io::Result<_>>()?;
        // Events between two of these system calls are neither lost nor reported twice.
        let last = groups.iter().map(|group| self.kernel.read(group)).collect::<io::Result<_>>()?;
        Ok(OpenThread { groups, last, at: self.kernel.now() })
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    Errno::from_io_error(error) == Some(errno)
}

/// Why a thread other than the calling one cannot be counted.
fn explain(error: io::Error, tid: Tid) -> CountError {
    match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM) => CountError::OfAnotherUser { tid },
        Some(Errno::BUSY) => CountError::Busy,
        _ => CountError::Kernel { tid, error },
    }
}

/// The error of threads that need as many files.
pub(crate) fn too_many_files(threads: usize, files: u64, limit: u64) -> CountError {
    // If half of the limit is enough, others have the rest of it.
    let limit = if files > limit / 2 { files } else { limit }.saturating_mul(2);
    CountError::TooManyFiles { threads, files, limit }
}

/// The counts between two readings of the groups of a thread.
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
        let whole = whole(parts);
        // An event that never had a turn was counted in no part of the time.
        counted = counted.min(whole.map_or(0.0, |(_, share)| share));
        whole.map(|(count, _)| (event, count))
    });
    EventCounts { seconds, counts: whole.collect(), counted }
}

//! Events that the kernel counts: time on a CPU, context switches, migrations, page faults.
//!
//! If permitted, perf's software events are used. They are exact, with one system call for each
//! thread and reading. Context switches and migrations happen in the kernel. So the events must not
//! leave it out, which needs CAP_PERFMON, or `kernel.perf_event_paranoid` of 1 or less.
//!
//! Otherwise the counts come from `/proc`, which everybody may read. So do those of another user's
//! threads, and of threads that need more open files than allowed. In `/proc` the time of a running
//! thread is up to two clock ticks late (8 ms at 250 Hz). A reading opens three files per thread.
//!
//! A reading of 100 threads took 0.16 ms from perf and 1.9 ms from `/proc`. These are medians of
//! 100 readings (`cargo bench -p pinwise-counters`, on a virtual 2.6 GHz Xeon beside others).

use crate::source::{CountError, CountSource, ThreadCounts, UncountedEvent, UncountedReason};
use crate::thread_groups::{EventKernel, PlannedGroup, ThisKernel, ThreadGroups};
use pinwise_linux::sys::{CountedModes, EventCode};
use pinwise_linux::thread::{SchedulerTimes, Stat, field, gone};
use pinwise_linux::{StartTime, ThreadId, Tid};
use pinwise_measure::{CounterEvent, EventCounts};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::time::Instant;

/// The events, ascending.
const EVENTS: [CounterEvent; 4] = [
    CounterEvent::TaskClock,
    CounterEvent::ContextSwitches,
    CounterEvent::Migrations,
    CounterEvent::PageFaults,
];

/// Events of the kernel, from perf where it is permitted, else from `/proc`.
#[derive(Debug)]
pub enum SoftwareSource {
    /// From perf.
    Perf(SoftwareGroups),
    /// From `/proc`.
    Proc(ProcCounts),
}

impl SoftwareSource {
    /// The better of both that is permitted here.
    pub fn open() -> Self {
        match SoftwareGroups::open() {
            Some(groups) => Self::Perf(groups),
            None => Self::Proc(ProcCounts::default()),
        }
    }
}

impl CountSource for SoftwareSource {
    fn events(&self) -> Vec<CounterEvent> {
        match self {
            Self::Perf(_) => EVENTS.to_vec(),
            Self::Proc(counts) => counts.events(),
        }
    }

    fn uncounted(&self) -> Vec<UncountedEvent> {
        let counted = self.events();
        let lacking = EVENTS.into_iter().filter(|event| !counted.contains(event));
        lacking.map(|event| UncountedEvent { event, reason: UncountedReason::NotInProc }).collect()
    }

    fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
        let groups = match self {
            Self::Perf(groups) => groups,
            Self::Proc(counts) => return counts.read(threads),
        };
        let read = groups.0.read(threads);
        let refused = |one: &ThreadCounts| {
            matches!(one, Err(CountError::OfAnotherUser { .. } | CountError::TooManyFiles { .. }))
        };
        if !read.iter().any(refused) {
            return read;
        }
        *self = Self::Proc(ProcCounts::default());
        self.read(threads)
    }
}

/// A group of the four events for each thread.
#[derive(Debug)]
pub struct SoftwareGroups(ThreadGroups<ThisKernel>);

impl SoftwareGroups {
    /// `None`: they are not permitted, or this kernel has none.
    fn open() -> Option<Self> {
        let codes: Vec<EventCode> = EVENTS.into_iter().filter_map(EventCode::generic).collect();
        let (kernel, modes) = (ThisKernel::new(), CountedModes::UserAndKernel);
        kernel.open(Tid(0), &codes, modes).ok()?;
        let plan = vec![PlannedGroup { events: EVENTS.to_vec(), codes }];
        Some(Self(ThreadGroups::new(kernel, plan, modes)))
    }
}

/// What `/proc` had shown of each thread when it was read last.
#[derive(Debug, Default)]
pub struct ProcCounts {
    last: HashMap<ThreadId, (BTreeMap<CounterEvent, u64>, Instant)>,
}

impl ProcCounts {
    /// Those of the calling thread.
    fn events(&self) -> Vec<CounterEvent> {
        read_proc("/proc/thread-self")
            .map_or_else(|_| Vec::new(), |(_, counts)| counts.into_keys().collect())
    }

    fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
        let given: HashSet<ThreadId> = threads.iter().copied().collect();
        self.last.retain(|thread, _| given.contains(thread));
        let read = |&thread: &ThreadId| {
            let counts = match read_proc(&format!("/proc/{}/task/{}", thread.pid, thread.tid)) {
                Ok((start, counts)) if start == thread.start => counts,
                // A later thread has its number.
                Ok(_) => return Ok(None),
                Err(error) if gone(&error) => return Ok(None),
                Err(error) => return Err(CountError::Kernel { tid: thread.tid, error }),
            };
            let now = Instant::now();
            let Some((last, at)) = self.last.insert(thread, (counts.clone(), now)) else {
                return Ok(None);
            };
            let grown = counts.into_iter().filter_map(|(event, count)| {
                Some((event, count.saturating_sub(*last.get(&event)?) as f64))
            });
            let seconds = now.duration_since(at).as_secs_f64();
            Ok(Some(EventCounts { seconds, counts: grown.collect(), counted: 1.0 }))
        };
        threads.iter().map(read).collect()
    }
}

/// When a thread began, and what its directory shows of the events since then.
fn read_proc(directory: &str) -> io::Result<(StartTime, BTreeMap<CounterEvent, u64>)> {
    let read = |name| std::fs::read(format!("{directory}/{name}"));
    let stat = std::fs::read(format!("{directory}/stat"))?;
    let stat = Stat::parse(&stat).ok_or(io::ErrorKind::InvalidData)?;
    let mut counts = BTreeMap::from([(CounterEvent::PageFaults, stat.faults)]);
    // Clock ticks are too coarse for an interval: without the scheduler's account there is no time.
    if let Some(account) = read("schedstat")
        .ok()
        .and_then(|text| SchedulerTimes::parse(std::str::from_utf8(&text).ok()?))
    {
        counts.insert(CounterEvent::TaskClock, account.ran.as_nanos() as u64);
    }
    // With CONFIG_SCHED_DEBUG one file has both.
    let sched = read("sched").unwrap_or_default();
    let switches = field(&sched, "nr_switches").or_else(|| {
        let status = read("status").ok()?;
        let voluntary = field(&status, "voluntary_ctxt_switches")?;
        Some(voluntary + field(&status, "nonvoluntary_ctxt_switches")?)
    });
    counts.extend(switches.map(|count| (CounterEvent::ContextSwitches, count)));
    let moves = field(&sched, "se.nr_migrations");
    counts.extend(moves.map(|count| (CounterEvent::Migrations, count)));
    Ok((stat.start, counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::{Pid, affinity};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// CPU time of the calling thread.
    fn used() -> Duration {
        let time = rustix::time::clock_gettime(rustix::thread::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }

    #[test]
    fn both_sources_see_what_a_thread_does_between_two_readings() {
        const SLEEPS: u32 = 20;
        let cpus = affinity::get(Tid(0)).unwrap();
        let (tell, told) = channel();
        let (go, may_go) = channel::<()>();
        let (work, worked) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(Tid(rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
            may_go.recv().unwrap();
            let before = used();
            // More than the C library ever keeps for later: so no page is there. At least 20 page
            // faults, even if the kernel gives 2 MiB at a time.
            std::hint::black_box(vec![1u8; 48 << 20]);
            for cpu in cpus.iter() {
                affinity::set(Tid(0), &[cpu].into_iter().collect()).unwrap();
            }
            (0..SLEEPS).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
            while used() - before < Duration::from_millis(20) {}
            work.send((used() - before, cpus.len())).unwrap();
            let _ = may_go.recv();
        });
        let tid = told.recv().unwrap();
        let pid = Pid(std::process::id() as i32);
        let id = ThreadId { pid, tid, start: Stat::read(pid, tid).unwrap().start };
        let mut sources = vec![SoftwareSource::Proc(ProcCounts::default())];
        match SoftwareGroups::open() {
            Some(groups) => sources.push(SoftwareSource::Perf(groups)),
            None => pinwise_synthetic::not_judged("software events are not permitted"),
        }
        for source in &mut sources {
            assert!(matches!(source.read(&[id])[..], [Ok(None)]));
        }
        go.send(()).unwrap();
        let (used, cpus) = worked.recv().unwrap();
        // It is on its way to sleep, and its time is accounted then.
        while Stat::read(pid, tid).unwrap().state != 'S' {
            std::thread::yield_now();
        }
        for source in &mut sources {
            let counts = source.read(&[id]).remove(0).unwrap().unwrap();
            let count = |event| counts.get(event);
            // The clocks of perf and of the scheduler begin at different moments of a switch.
            let ran = count(CounterEvent::TaskClock).unwrap() / 1e9;
            assert!(ran >= 0.9 * used.as_secs_f64() && ran < 10.0 * counts.seconds, "{counts:?}");
            let switches = count(CounterEvent::ContextSwitches).unwrap();
            assert!(switches >= f64::from(SLEEPS), "{source:?}: {counts:?}");
            assert!(count(CounterEvent::PageFaults).unwrap() >= 20.0, "{counts:?}");
            let lacking = source.uncounted();
            let moves = count(CounterEvent::Migrations);
            assert_eq!(
                moves.is_none(),
                lacking.iter().any(|one| one.event == CounterEvent::Migrations)
            );
            // It visited all CPUs, and was on one of them before.
            assert!(moves.is_none_or(|moves| moves >= cpus as f64 - 1.0), "{counts:?}");
        }
        drop(go);
        thread.join().unwrap();
    }
}

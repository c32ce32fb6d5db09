//! Events that the kernel counts: time on a CPU, context switches, migrations, page faults.
//!
//! Where perf's software events are permitted, they are used: exact, one system call for each thread
//! and reading. Context switches and migrations happen in the kernel. So the events must not leave it
//! out, which needs CAP_PERFMON, or `kernel.perf_event_paranoid` of 1 or less.
//!
//! Else they come from `/proc`, which everybody may read. There the time of a thread that runs now is
//! up to two clock ticks late (8 ms at 250 Hz), and a reading opens up to four files a thread.

use crate::source::{CountError, CountSource, UncountedEvent, UncountedReason};
use crate::thread_groups::{EventKernel, PlannedGroup, ThisKernel, ThreadGroups};
use pinwise_linux::sys::{CountedModes, EventCode};
use pinwise_linux::thread::{SchedulerTimes, Stat, gone};
use pinwise_linux::{ThreadId, Tid};
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

    fn read(&mut self, threads: &[ThreadId]) -> Result<Vec<Option<EventCounts>>, CountError> {
        match self {
            Self::Perf(groups) => groups.0.read(threads),
            Self::Proc(counts) => counts.read(threads),
        }
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
            .map_or_else(|_| Vec::new(), |counts| counts.into_keys().collect())
    }

    fn read(&mut self, threads: &[ThreadId]) -> Result<Vec<Option<EventCounts>>, CountError> {
        let given: HashSet<ThreadId> = threads.iter().copied().collect();
        self.last.retain(|thread, _| given.contains(thread));
        let read = |&thread: &ThreadId| {
            let counts = match read_proc(&format!("/proc/{}/task/{}", thread.pid, thread.tid)) {
                Ok(counts) => counts,
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

/// What the directory of a thread shows of the events since the thread began.
fn read_proc(directory: &str) -> io::Result<BTreeMap<CounterEvent, u64>> {
    let read = |name| std::fs::read_to_string(format!("{directory}/{name}"));
    let stat = std::fs::read(format!("{directory}/stat"))?;
    let stat = Stat::parse(&stat).ok_or(io::ErrorKind::InvalidData)?;
    let mut counts = BTreeMap::from([(CounterEvent::PageFaults, stat.faults)]);
    // Clock ticks are too coarse for an interval: without the scheduler's account there is no time.
    if let Some(account) = read("schedstat").ok().and_then(|text| SchedulerTimes::parse(&text)) {
        counts.insert(CounterEvent::TaskClock, account.ran.as_nanos() as u64);
    }
    let status = read("status")?;
    let switches = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
    if let [Some(voluntary), Some(involuntary)] = switches.map(|name| field(&status, name)) {
        counts.insert(CounterEvent::ContextSwitches, voluntary + involuntary);
    }
    // CONFIG_SCHED_DEBUG.
    if let Some(moves) = read("sched").ok().and_then(|text| field(&text, "se.nr_migrations")) {
        counts.insert(CounterEvent::Migrations, moves);
    }
    Ok(counts)
}

/// The number on the line that begins with `name` and a colon.
fn field(text: &str, name: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == name).then(|| value.trim().parse().ok())?
    };
    text.lines().find_map(of_line)
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
            // 256 pages that nobody has touched.
            std::hint::black_box(vec![1u8; 256 << 12]);
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
        let ended = ThreadId { tid: Tid(i32::MAX >> 4), ..id };
        let mut sources = vec![SoftwareSource::Proc(ProcCounts::default())];
        match SoftwareGroups::open() {
            Some(groups) => sources.push(SoftwareSource::Perf(groups)),
            None => pinwise_synthetic::not_judged("software events are not permitted"),
        }
        for source in &mut sources {
            assert_eq!(source.read(&[ended, id]).unwrap(), [None, None]);
        }
        go.send(()).unwrap();
        let (used, cpus) = worked.recv().unwrap();
        // It is on its way to sleep, and its time is accounted then.
        while Stat::read(pid, tid).unwrap().state != 'S' {
            std::thread::yield_now();
        }
        for source in &mut sources {
            let counts = source.read(&[ended, id]).unwrap().remove(1).unwrap();
            let count = |event| counts.get(event);
            // The clocks of perf and of the scheduler begin at different moments of a switch.
            let ran = count(CounterEvent::TaskClock).unwrap() / 1e9;
            assert!(ran >= 0.9 * used.as_secs_f64() && ran < 10.0 * counts.seconds, "{counts:?}");
            let switches = count(CounterEvent::ContextSwitches).unwrap();
            assert!(switches >= f64::from(SLEEPS), "{source:?}: {counts:?}");
            assert!(count(CounterEvent::PageFaults).unwrap() >= 200.0, "{counts:?}");
            let lacking = source.uncounted();
            let moves = count(CounterEvent::Migrations);
            assert_eq!(
                moves.is_none(),
                lacking.iter().any(|one| one.event == CounterEvent::Migrations)
            );
            // It visited all CPUs, and was on one of them before.
            assert!(moves.is_none_or(|moves| moves >= cpus as f64 - 1.0), "{counts:?}");
            // Nothing happens twice.
            let again = source.read(&[id]).unwrap().remove(0).unwrap();
            assert_eq!(again.get(CounterEvent::PageFaults), Some(0.0));
            assert_eq!(again.get(CounterEvent::ContextSwitches), Some(0.0));
        }
        drop(go);
        thread.join().unwrap();
    }

    #[test]
    fn the_kernels_words_are_found_by_their_whole_name() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "voluntary_ctxt_switches"), Some(12));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches"), Some(3));
        assert_eq!(
            field("se.nr_migrations                   :      5\n", "se.nr_migrations"),
            Some(5)
        );
        assert_eq!(field(status, "Name"), None);
        assert_eq!(field("", "x"), None);
    }
}

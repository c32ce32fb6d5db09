//! The source on recorded machines, with a kernel that only computes.

use super::*;
use crate::fixture;
use crate::source::tests::contract_holds;
use pinwise_linux::sys::GroupReading;
use pinwise_linux::{Pid, StartTime};
use pinwise_measure::EventCounts;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A kernel with PMUs: which codes it knows, and how many counters each PMU has. Groups that need
/// more counters than there are take turns.
#[derive(Debug)]
struct FakeKernel {
    knows: fn(EventCode) -> bool,
    counters: usize,
    permits: Option<CountedModes>,
    /// The most open files.
    files: Cell<usize>,
    clock: Cell<Duration>,
    alive: RefCell<Vec<Tid>>,
    /// When all of them began.
    start: Cell<StartTime>,
    /// Why a thread cannot be opened.
    refuses: Cell<Option<(Tid, Errno)>>,
    groups: RefCell<Vec<Weak<FakeGroup>>>,
}

#[derive(Debug)]
struct FakeGroup {
    tid: Tid,
    codes: Vec<EventCode>,
    reading: RefCell<GroupReading>,
}

/// The PMU of a code: its type, or what stands in the upper half of a generic one.
fn pmu_of(code: EventCode) -> u32 {
    if code.pmu == EventCode::HARDWARE || code.pmu == EventCode::CACHE {
        (code.config >> 32) as u32
    } else {
        code.pmu
    }
}

/// How often an event happens in a nanosecond: by its code, so that no two are the same.
fn rate(code: EventCode) -> f64 {
    (code.config & 0xffff) as f64 / 1e3
}

impl FakeKernel {
    fn new(knows: fn(EventCode) -> bool, counters: usize) -> Self {
        Self {
            knows,
            counters,
            permits: Some(CountedModes::UserAndKernel),
            files: Cell::new(usize::MAX),
            clock: Cell::default(),
            alive: RefCell::new(vec![OWN]),
            start: Cell::new(StartTime(1)),
            refuses: Cell::default(),
            groups: RefCell::default(),
        }
    }

    fn open_groups(&self) -> Vec<Rc<FakeGroup>> {
        self.groups.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    fn open_files(&self) -> usize {
        self.open_groups().iter().map(|group| group.codes.len()).sum()
    }

    /// A thread runs on cores of a PMU.
    fn run(&self, tid: Tid, pmu: u32, nanoseconds: u64) {
        let groups = self.open_groups();
        let of_thread = || groups.iter().filter(|group| group.tid == tid);
        let here = || of_thread().filter(|group| pmu_of(group.codes[0]) == pmu);
        let needed: usize = here().map(|group| group.codes.len()).sum();
        let turns = if needed <= self.counters { 1 } else { here().count() as u64 };
        of_thread().for_each(|group| group.reading.borrow_mut().enabled += nanoseconds);
        for group in here() {
            let mut reading = group.reading.borrow_mut();
            reading.running += nanoseconds / turns;
            for (count, &code) in reading.counts.iter_mut().zip(&group.codes) {
                *count += ((nanoseconds / turns) as f64 * rate(code)).round() as u64;
            }
        }
        self.clock.set(self.clock.get() + Duration::from_nanos(nanoseconds));
    }
}

impl EventKernel for FakeKernel {
    type Group = Rc<FakeGroup>;

    fn open(&self, tid: Tid, codes: &[EventCode], modes: CountedModes) -> io::Result<Self::Group> {
        let refuse = |error: Errno| Err(error.into());
        if let Some((_, error)) = self.refuses.get().filter(|(refused, _)| *refused == tid) {
            return refuse(error);
        }
        if !matches!(
            (self.permits, modes),
            (Some(CountedModes::UserAndKernel), _) | (Some(CountedModes::User), CountedModes::User)
        ) {
            return refuse(Errno::ACCESS);
        }
        if !self.alive.borrow().contains(&tid) {
            return refuse(Errno::SRCH);
        }
        if codes.iter().any(|&code| code.pmu != EventCode::SOFTWARE && !(self.knows)(code)) {
            return refuse(Errno::NOENT);
        }
        let other = |&code: &EventCode| pmu_of(code) != pmu_of(codes[0]);
        if codes.len() > self.counters || codes.iter().any(other) {
            return refuse(Errno::INVAL);
        }
        if self.open_files() + codes.len() > self.files.get() {
            return refuse(Errno::MFILE);
        }
        let reading = GroupReading { counts: vec![0; codes.len()], ..GroupReading::default() };
        let group =
            Rc::new(FakeGroup { tid, codes: codes.to_vec(), reading: RefCell::new(reading) });
        self.groups.borrow_mut().push(Rc::downgrade(&group));
        Ok(group)
    }

    fn read(&self, group: &Self::Group) -> io::Result<GroupReading> {
        Ok(group.reading.borrow().clone())
    }

    fn now(&self) -> Duration {
        self.clock.get()
    }

    fn alive(&self, thread: ThreadId) -> bool {
        !self.is_free(thread.tid) && thread.start == self.start.get()
    }

    fn is_free(&self, tid: Tid) -> bool {
        !self.alive.borrow().contains(&tid)
    }

    fn file_limit(&self) -> u64 {
        self.files.get() as u64
    }

    fn paranoid(&self) -> Option<String> {
        Some("2".into())
    }
}

fn thread(tid: i32) -> ThreadId {
    ThreadId { pid: Pid(1), tid: Tid(tid), start: StartTime(1) }
}

/// On Zen 4, with threads 7 and 8.
fn groups() -> ThreadGroups<FakeKernel> {
    let kernel = FakeKernel::new(|code| pmu_of(code) == 4, 8);
    kernel.alive.borrow_mut().extend([Tid(7), Tid(8)]);
    PerfCounters::open(kernel, &fixture::zen4()).unwrap().groups
}

/// Reads threads that can be counted.
fn read(groups: &mut ThreadGroups<FakeKernel>, threads: &[ThreadId]) -> Vec<Option<EventCounts>> {
    groups.read(threads).into_iter().map(Result::unwrap).collect()
}

fn uncounted<K: EventKernel>(counters: &PerfCounters<K>, event: CounterEvent) -> UncountedReason {
    let found = counters.uncounted.iter().find(|uncounted| uncounted.event == event);
    found.expect("it is counted").reason.clone()
}

/// Alder Lake knows its PMUs' events; the E-cores have no MSR of the front end.
fn on_alder_lake(code: EventCode) -> bool {
    matches!(pmu_of(code), 4 | 10) && !(code.pmu == 10 && code.config1 != 0)
}

#[test]
fn every_kind_of_core_counts_and_the_counts_are_added() {
    let kernel = FakeKernel::new(on_alder_lake, 8);
    kernel.alive.borrow_mut().push(Tid(7));
    let mut counters = PerfCounters::open(kernel, &fixture::alder_lake()).unwrap();
    let lacking = UncountedReason::NotOnCores { cores: vec!["cpu_atom".into()] };
    assert_eq!(uncounted(&counters, CounterEvent::FpOperations), lacking);
    assert_eq!(counters.uncounted.len(), 1);
    let named = |event| counters.named.iter().find(|named| named.event == event).unwrap();
    assert_eq!(
        named(CounterEvent::FrontEndMisses).names,
        ["ICACHE.MISSES", "FRONTEND_RETIRED.DSB_MISS"]
    );
    assert_eq!(named(CounterEvent::Cycles).names, ["cpu-cycles"]);
    // A group belongs to one PMU.
    let plan = &counters.groups.plan;
    let pmus: Vec<u32> = plan.iter().map(|group| pmu_of(group.codes[0])).collect();
    assert_eq!(pmus, [10, 10, 4, 4]);
    assert!(plan.iter().all(|group| group.codes.len() <= MOST_IN_GROUP));

    assert_eq!(read(&mut counters.groups, &[thread(7)]), [None]);
    counters.groups.kernel.run(Tid(7), 4, 1_000_000);
    counters.groups.kernel.run(Tid(7), 10, 3_000_000);
    let counts = read(&mut counters.groups, &[thread(7)]).remove(0).unwrap();
    // The code of cycles is 0x3c on both, and each kind counted its part of the time.
    assert_eq!(counts.get(CounterEvent::Cycles), Some(4_000_000.0 * 0.06));
    // On the performance cores 0x01c6, on the others 0x0280.
    let misses = 1_000_000.0 * 0.454 + 3_000_000.0 * 0.640;
    assert_eq!(counts.get(CounterEvent::FrontEndMisses), Some(misses));
    assert_eq!((counts.counted, counts.seconds), (1.0, 0.004));
    // On one kind alone.
    counters.groups.kernel.run(Tid(7), 4, 500_000);
    let counts = read(&mut counters.groups, &[thread(7)]).remove(0).unwrap();
    assert_eq!(counts.get(CounterEvent::Cycles), Some(500_000.0 * 0.06));
}

#[test]
fn groups_that_take_turns_are_scaled_and_their_share_is_told() {
    // Six counters and seven events: this kernel knows no generic ones.
    let kernel = FakeKernel::new(|code| pmu_of(code) == 4, 6);
    kernel.alive.borrow_mut().push(Tid(7));
    let mut counters = PerfCounters::open(kernel, &fixture::zen4()).unwrap();
    assert_eq!((counters.events().len(), counters.uncounted.len()), (7, 2));
    let sizes: Vec<usize> = counters.groups.plan.iter().map(|group| group.codes.len()).collect();
    assert_eq!(sizes, [4, 3]);
    read(&mut counters.groups, &[thread(7)]);
    // It has not run: nothing was counted and nothing missed.
    let idle = read(&mut counters.groups, &[thread(7)]).remove(0).unwrap();
    assert_eq!((idle.get(CounterEvent::Cycles), idle.counted), (Some(0.0), 1.0));
    counters.groups.kernel.run(Tid(7), 4, 2_000_000);
    let counts = read(&mut counters.groups, &[thread(7)]).remove(0).unwrap();
    assert_eq!(counts.get(CounterEvent::Cycles), Some(2_000_000.0 * 0.118));
    assert_eq!(counts.get(CounterEvent::L2Misses), Some(2_000_000.0 * 2.404));
    assert_eq!(counts.counted, 0.5);
}

#[test]
fn an_event_that_no_counter_had_time_for_is_left_out() {
    let kernel = FakeKernel::new(|code| pmu_of(code) == 4, 6);
    kernel.alive.borrow_mut().push(Tid(7));
    let mut counters = PerfCounters::open(kernel, &fixture::zen4()).unwrap();
    read(&mut counters.groups, &[thread(7)]);
    // Somebody else holds all counters.
    for group in counters.groups.kernel.open_groups() {
        group.reading.borrow_mut().enabled += 1_000_000;
    }
    let counts = read(&mut counters.groups, &[thread(7)]).remove(0).unwrap();
    assert!(counts.counts.is_empty(), "{counts:?}");
}

#[test]
fn arms_kinds_of_cores_go_by_the_names_that_the_kernel_lists() {
    // Before Linux 6.6 no generic event takes the number of a PMU.
    let old = |code: EventCode| matches!(code.pmu, 8 | 9);
    let counters = PerfCounters::open(FakeKernel::new(old, 7), &fixture::big_little()).unwrap();
    assert_eq!(
        uncounted(&counters, CounterEvent::Branches),
        UncountedReason::NotOnCores { cores: vec!["armv8_cortex_a53".into()] }
    );
    assert_eq!(uncounted(&counters, CounterEvent::LlcMisses), UncountedReason::NotOnProcessor);
    let names: Vec<&str> =
        counters.named.iter().flat_map(|named| &named.names).map(String::as_str).collect();
    assert_eq!(
        names,
        ["cpu_cycles", "inst_retired", "l1i_cache_refill", "l2d_cache_refill", "vfp_spec"]
    );
    // From 6.6 on they do.
    let new = |code: EventCode| matches!(pmu_of(code), 8 | 9);
    let counters = PerfCounters::open(FakeKernel::new(new, 7), &fixture::big_little()).unwrap();
    assert!(counters.events().contains(&CounterEvent::Branches));
}

#[test]
fn groups_are_as_small_as_the_kernel_demands() {
    let kernel = FakeKernel::new(|code| pmu_of(code) == 4, 2);
    let counters = PerfCounters::open(kernel, &fixture::zen4()).unwrap();
    let sizes: Vec<usize> = counters.groups.plan.iter().map(|group| group.codes.len()).collect();
    assert_eq!(sizes, [2, 2, 2, 1]);
    assert_eq!(counters.groups.kernel.open_files(), 0, "what was tried is closed");
}

#[test]
fn threads_come_and_go_and_leave_no_file_open() {
    let mut groups = groups();
    assert_eq!(read(&mut groups, &[thread(7), thread(8), thread(9)]), [None, None, None]);
    assert_eq!(groups.kernel.open_files(), 2 * 7);
    // One ends after it has run: its last counts are read.
    groups.kernel.run(Tid(8), 4, 1000);
    groups.kernel.alive.borrow_mut().pop();
    let counts = read(&mut groups, &[thread(7), thread(8)]);
    assert_eq!(counts[1].as_ref().unwrap().get(CounterEvent::Cycles), Some(118.0));
    assert_eq!(read(&mut groups, &[thread(7)]).len(), 1);
    assert_eq!(groups.kernel.open_files(), 7);
    // Its number is given to a new thread, which begins again.
    let later = ThreadId { start: StartTime(2), ..thread(7) };
    groups.kernel.start.set(later.start);
    assert_eq!(read(&mut groups, &[later]), [None]);
    assert_eq!(groups.kernel.open_files(), 7);
}

#[test]
fn half_of_the_files_is_left_to_others_and_too_many_leave_none_open() {
    let mut groups = groups();
    let threads = [thread(7), thread(8)];
    let refused = |groups: &mut ThreadGroups<FakeKernel>| {
        read(groups, &threads[..1]);
        let errors: Vec<String> =
            groups.read(&threads).into_iter().map(|one| one.unwrap_err().to_string()).collect();
        assert_eq!((&errors[0], groups.kernel.open_files()), (&errors[1], 0));
        errors[0].clone()
    };
    groups.kernel.files.set(27);
    assert_eq!(
        refused(&mut groups),
        "2 threads need 14 open files to be counted, more than the limit permits beside others: \
         ulimit -n 28, or name fewer threads"
    );
    groups.kernel.files.set(28);
    assert_eq!(read(&mut groups, &threads), [None, None]);
    read(&mut groups, &[]);
    // Others have more than their half.
    groups.kernel.refuses.set(Some((Tid(8), Errno::MFILE)));
    assert!(refused(&mut groups).contains("ulimit -n 56"));
}

#[test]
fn a_thread_that_cannot_be_counted_leaves_the_others() {
    let mut groups = groups();
    groups.kernel.refuses.set(Some((Tid(7), Errno::ACCESS)));
    for cycles in [None, Some(118.0)] {
        let [foreign, own] = &groups.read(&[thread(7), thread(8)])[..] else { panic!("two") };
        assert!(matches!(foreign, Err(CountError::OfAnotherUser { tid: Tid(7) })));
        let own = own.as_ref().unwrap().as_ref();
        assert_eq!(own.and_then(|counts| counts.get(CounterEvent::Cycles)), cycles);
        groups.kernel.run(Tid(8), 4, 1000);
    }
}

#[test]
fn counters_of_the_processor_keep_the_contract_of_all_sources() {
    let groups = RefCell::new(groups());
    let end = || {
        groups.borrow().kernel.run(Tid(8), 4, 1000);
        groups.borrow().kernel.alive.borrow_mut().pop();
    };
    contract_holds(&mut |threads| groups.borrow_mut().read(threads), thread(8), end);
    assert_eq!(groups.borrow().kernel.open_files(), 0);
}

#[test]
fn what_is_not_permitted_or_not_there_is_one_line_with_the_remedy() {
    let open = |permits, knows: fn(EventCode) -> bool, files: &Snapshot| {
        PerfCounters::open(FakeKernel { permits, ..FakeKernel::new(knows, 6) }, files)
    };
    let refused = open(None, |_| true, &fixture::zen4()).err().unwrap().to_string();
    assert!(
        refused.contains("sysctl kernel.perf_event_paranoid=1")
            && refused.contains("cap_perfmon+ep"),
        "{refused}"
    );
    let none = open(Some(CountedModes::User), |_| false, &fixture::without_pmu());
    assert!(matches!(none, Err(CountError::NoPmu)));
    // Each kind of core has an event, and none has that of the other.
    let halves =
        |code: EventCode| matches!((pmu_of(code), code.config & 0xffff), (4, 0x3c) | (10, 0xc0));
    let halves = open(Some(CountedModes::User), halves, &fixture::alder_lake());
    assert!(matches!(halves, Err(CountError::NotOnAllCores)), "{halves:?}");
    // A filter of the container, which is no setting of the kernel.
    let own = |errno| {
        let kernel = FakeKernel::new(|_| true, 6);
        kernel.refuses.set(Some((OWN, errno)));
        PerfCounters::open(kernel, &fixture::zen4()).unwrap_err()
    };
    assert!(own(Errno::PERM).to_string().contains("seccomp"));
    assert!(matches!(own(Errno::ACCESS), CountError::NotPermitted { .. }));
    assert!(matches!(own(Errno::BUSY), CountError::Busy));
    assert!(matches!(own(Errno::MFILE), CountError::TooManyFiles { .. }));
    assert!(matches!(own(Errno::NOSYS), CountError::NotInKernel));
    // An ordinary user counts user space alone.
    let user = open(Some(CountedModes::User), |code| pmu_of(code) == 4, &fixture::zen4()).unwrap();
    assert_eq!((user.groups.modes, user.events().len()), (CountedModes::User, 7));
}

#[test]
fn this_machine_counts_something_or_says_why_not() {
    match PerfSource::open() {
        Ok(source) => {
            let names: Vec<&NamedEvent> = source.named_events().iter().collect();
            assert!(!names.is_empty() && names.len() + source.uncounted().len() == EVENTS.len());
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains(": "), "{text}");
        }
    }
}

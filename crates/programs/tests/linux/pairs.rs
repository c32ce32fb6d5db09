//! Programs alone and in pairs, with counters that are emulated.

use crate::programs::*;
use pinwise_counters::{CountError, CountSource, ThreadCounts, UncountedEvent};
use pinwise_linux::{Launch, ThreadId};
use pinwise_measure::{
    AccompaniedRuns, CounterEvent, Effort, EventCounts, Interrupt, PinnedInstance, Setting, Testbed,
};
use pinwise_programs::PairsTestbed;
use std::collections::HashSet;
use std::time::Duration;

/// Counts the same of each thread at each reading but the first, in half of the time.
#[derive(Default)]
struct EmulatedSource(HashSet<ThreadId>);

impl CountSource for EmulatedSource {
    fn events(&self) -> Vec<CounterEvent> {
        vec![CounterEvent::Cycles, CounterEvent::L2Misses]
    }

    fn uncounted(&self) -> Vec<UncountedEvent> {
        Vec::new()
    }

    fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
        let counts = || EventCounts {
            seconds: 0.1,
            counts: [(CounterEvent::Cycles, 1e6), (CounterEvent::L2Misses, 2e4)].into(),
            counted: 0.5,
        };
        let before = std::mem::replace(&mut self.0, threads.iter().copied().collect());
        threads.iter().map(|id| Ok(before.contains(id).then(counts))).collect()
    }
}

#[test]
fn a_program_alone_is_counted_with_its_children_and_a_pair_is_not() {
    if !enough_cpus() {
        return;
    }
    let launch = |seconds: &str| Launch {
        program: "sh".into(),
        arguments: vec!["-c".into(), format!("sleep {seconds}; :").into()],
        ..Launch::default()
    };
    let programs = vec![("one".to_owned(), launch("0.35")), ("other".to_owned(), launch("0.35"))];
    let limit = Duration::from_secs(60);
    let mut testbed = PairsTestbed::new(programs, &machine(), limit, Interrupt::default()).unwrap();
    testbed.count(Box::new(EmulatedSource::default()));
    let mut measure = |instances: &[usize]| -> AccompaniedRuns {
        let part = |(leaf, &instance): (usize, &usize)| PinnedInstance {
            instance,
            leaves: vec![leaf as u32],
        };
        let setting = Setting::Profile(instances.iter().enumerate().map(part).collect());
        let measured = testbed.measure(&setting, Effort::default()).unwrap();
        measured.detail.unwrap().read().unwrap()
    };
    let alone = measure(&[1]);
    let [counts] = &alone.counts[..] else { panic!("{alone:?}") };
    assert_eq!(counts.per_cycle(CounterEvent::L2Misses), Some(0.02));
    let [quality] = &alone.counters[..] else { panic!("{alone:?}") };
    let runs = alone.seconds[0].len() as u64;
    assert!(quality.counted == 0.5 && quality.quanta >= runs, "{quality:?} of {runs} runs");
    // The shell and what it started.
    let cycles = counts.get(CounterEvent::Cycles).unwrap();
    assert!(cycles > quality.quanta as f64 * 1e6, "{counts:?} in {quality:?}");
    let both = measure(&[0, 1]);
    assert!(both.counts.is_empty() && both.counters.is_empty(), "{both:?}");
}

/// Counts nothing.
struct UncountedSource;

impl CountSource for UncountedSource {
    fn events(&self) -> Vec<CounterEvent> {
        vec![CounterEvent::Cycles]
    }

    fn uncounted(&self) -> Vec<UncountedEvent> {
        Vec::new()
    }

    fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
        threads.iter().map(|_| Err(CountError::Busy)).collect()
    }
}

#[test]
fn a_program_of_which_nothing_can_be_counted_fails_with_the_reason() {
    let launch =
        Launch { program: "sleep".into(), arguments: vec!["0.2".into()], ..Launch::default() };
    let limit = Duration::from_secs(60);
    let programs = vec![("one".to_owned(), launch)];
    let mut testbed = PairsTestbed::new(programs, &machine(), limit, Interrupt::default()).unwrap();
    let setting = Setting::Profile(vec![PinnedInstance { instance: 0, leaves: vec![0] }]);
    assert!(testbed.measure(&setting, Effort::default()).is_ok(), "nobody asks for counts");
    testbed.count(Box::new(UncountedSource));
    let error = testbed.measure(&setting, Effort::default()).unwrap_err().to_string();
    assert!(
        error.contains("nothing of one could be counted") && error.contains("EBUSY"),
        "{error}"
    );
}

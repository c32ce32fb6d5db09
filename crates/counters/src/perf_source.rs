//! Counters of the processor, through perf_event_open(2).
//!
//! **Problem.** A processor has a few counters for each context, and some count only some events. A
//! group of events that needs more counters than exist is never counted. Groups that do not fit
//! together take turns.
//!
//! **Method.** At the start, each way to count an event is tried on the calling thread, the best
//! first. This is repeated for the PMU of each kind of core. Groups hold at most four events of one
//! PMU, which is what Intel's processors have with SMT. The kernel is asked whether a group fits;
//! an event that does not begins the next group. If permitted, a count includes the kernel's work
//! for a thread. Otherwise it covers user space alone: see [`PerfSource::modes`].
//!
//! **Limits.** If other programs occupy counters, as `perf stat -a` does, a group may never be
//! counted. Its events are then left out.

use crate::event_table::{self, CoreDesign, EVENTS, EventEncoding};
use crate::pmu::{Pmu, pmu_files};
use crate::source::{CountError, CountSource, ThreadCounts, UncountedEvent, UncountedReason};
use crate::thread_groups::{EventKernel, PlannedGroup, ThisKernel, ThreadGroups, too_many_files};
use pinwise_linux::sys::{self, CountedModes, EventCode};
use pinwise_linux::{ThreadId, Tid};
use pinwise_measure::CounterEvent;
use pinwise_topology::Snapshot;
use rustix::io::Errno;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The most events in a group.
const MOST_IN_GROUP: usize = 4;
/// The calling thread.
const OWN: Tid = Tid(0);

/// Counters of the processor.
#[derive(Debug)]
pub struct PerfSource(PerfCounters<ThisKernel>);

/// An event and the processor's name of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedEvent {
    /// The event.
    pub event: CounterEvent,
    /// Its name, as `perf list` shows it, without the part if perf has it in parts. One for each
    /// kind of core, if they differ.
    pub names: Vec<String>,
}

impl PerfSource {
    /// Finds out what this machine counts.
    ///
    /// # Errors
    /// It counts nothing at all.
    pub fn open() -> Result<Self, CountError> {
        PerfCounters::open(ThisKernel::new(), &pmu_files(Path::new("/"))).map(Self)
    }

    /// The events with the processor's names of them.
    pub fn named_events(&self) -> &[NamedEvent] {
        &self.0.named
    }

    /// Whether the kernel's work for a thread is counted, too.
    pub fn modes(&self) -> CountedModes {
        self.0.groups.modes
    }
}

impl CountSource for PerfSource {
    fn events(&self) -> Vec<CounterEvent> {
        self.0.events()
    }

    fn uncounted(&self) -> Vec<UncountedEvent> {
        self.0.uncounted.clone()
    }

    fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
        self.0.groups.read(threads)
    }
}

/// The same, on any kernel.
#[derive(Debug)]
struct PerfCounters<K: EventKernel> {
    groups: ThreadGroups<K>,
    named: Vec<NamedEvent>,
    uncounted: Vec<UncountedEvent>,
}

/// The events of a PMU, each with the encoding that the kernel accepted.
type Accepted = BTreeMap<CounterEvent, (EventEncoding, EventCode)>;

impl<K: EventKernel> PerfCounters<K> {
    fn open(kernel: K, files: &Snapshot) -> Result<Self, CountError> {
        let mut pmus = Pmu::of_cores(files);
        if pmus.is_empty() {
            // The kernel says why.
            pmus.push(Pmu::default());
        }
        let modes = permitted_modes(&kernel)?;
        let several = pmus.len() > 1;
        let accepted: Vec<Accepted> = pmus
            .iter()
            .map(|pmu| accept(&kernel, pmu, CoreDesign::of(files, &pmu.name), several, modes))
            .collect::<Result<_, _>>()?;
        let (mut named, mut uncounted) = (Vec::new(), Vec::new());
        for event in EVENTS {
            let mut names: Vec<String> = accepted
                .iter()
                .filter_map(|accepted| Some(accepted.get(&event)?.0.name().to_owned()))
                .collect();
            if names.len() == pmus.len() {
                names.dedup();
                named.push(NamedEvent { event, names });
                continue;
            }
            let lacking = |(pmu, accepted): (&Pmu, &Accepted)| {
                (!accepted.contains_key(&event)).then(|| pmu.name.clone())
            };
            let cores = pmus.iter().zip(&accepted).filter_map(lacking).collect();
            let reason = match names.is_empty() {
                true => UncountedReason::NotOnProcessor,
                false => UncountedReason::NotOnCores { cores },
            };
            uncounted.push(UncountedEvent { event, reason });
        }
        if named.is_empty() {
            let absent = accepted.iter().all(Accepted::is_empty);
            return Err(if absent { CountError::NoPmu } else { CountError::NotOnAllCores });
        }
        let mut plan = Vec::new();
        for accepted in &accepted {
            let of_pmu = named.iter().map(|named| (named.event, accepted[&named.event].1));
            plan.extend(groups(&kernel, of_pmu, modes)?);
        }
        Ok(Self { groups: ThreadGroups::new(kernel, plan, modes), named, uncounted })
    }

    fn events(&self) -> Vec<CounterEvent> {
        self.named.iter().map(|named| named.event).collect()
    }
}

/// What may be counted of the calling thread. A refusal is one of the counters at all.
fn permitted_modes<K: EventKernel>(kernel: &K) -> Result<CountedModes, CountError> {
    let clock: Vec<EventCode> = EventCode::generic(CounterEvent::TaskClock).into_iter().collect();
    let attempt = |modes| match kernel.open(OWN, &clock, modes) {
        Ok(_) => Ok(modes),
        Err(error) => Err(explain(kernel, error)),
    };
    match attempt(CountedModes::UserAndKernel) {
        Err(CountError::NotPermitted { .. }) => attempt(CountedModes::User),
        decided => decided,
    }
}

/// Why the calling thread cannot be counted.
fn explain<K: EventKernel>(kernel: &K, error: std::io::Error) -> CountError {
    let paranoid = kernel.paranoid();
    match Errno::from_io_error(&error) {
        Some(Errno::NOSYS) => CountError::NotInKernel,
        Some(Errno::PERM) if sys::permits_user_events(paranoid.as_deref()) => {
            CountError::NotInKernel
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            CountError::NotPermitted { paranoid: paranoid.unwrap_or("unknown".into()) }
        }
        Some(Errno::MFILE) => too_many_files(1, MOST_IN_GROUP as u64, kernel.file_limit()),
        Some(Errno::BUSY) => CountError::Busy,
        _ => CountError::Kernel { tid: OWN, error },
    }
}

/// The events that the kernel accepts on a PMU.
fn accept<K: EventKernel>(
    kernel: &K,
    pmu: &Pmu,
    design: CoreDesign,
    several: bool,
    modes: CountedModes,
) -> Result<Accepted, CountError> {
    let cores = if several { pmu.number } else { 0 };
    let code = |event, encoding| match encoding {
        EventEncoding::Listed(name) => pmu.listed(name),
        EventEncoding::Terms(_, terms) => pmu.code(terms),
        EventEncoding::Generic(_) => Some(EventCode::generic(event)?.on(cores)),
        EventEncoding::Cache(_, config) => {
            Some(EventCode { pmu: EventCode::CACHE, config, config1: 0 }.on(cores))
        }
    };
    let mut accepted = Accepted::new();
    for event in EVENTS {
        for encoding in event_table::encodings(event, design) {
            let Some(code) = code(event, encoding) else { continue };
            match kernel.open(OWN, &[code], modes) {
                Ok(_) => {
                    accepted.insert(event, (encoding, code));
                    break;
                }
                Err(error) if is_unknown(&error) => {}
                Err(error) => return Err(explain(kernel, error)),
            }
        }
    }
    Ok(accepted)
}

/// Whether the kernel says that there is no such event, or that it cannot count it.
fn is_unknown(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP)
    )
}

/// The events of a PMU in groups that the kernel accepts.
fn groups<K: EventKernel>(
    kernel: &K,
    events: impl Iterator<Item = (CounterEvent, EventCode)>,
    modes: CountedModes,
) -> Result<Vec<PlannedGroup>, CountError> {
    let mut groups: Vec<PlannedGroup> = Vec::new();
    for (event, code) in events {
        if let Some(last) = groups.last_mut().filter(|last| last.codes.len() < MOST_IN_GROUP) {
            last.codes.push(code);
            match kernel.open(OWN, &last.codes, modes) {
                Ok(_) => {
                    last.events.push(event);
                    continue;
                }
                Err(error) if is_unknown(&error) => {
                    last.codes.pop();
                }
                Err(error) => return Err(explain(kernel, error)),
            }
        }
        groups.push(PlannedGroup { events: vec![event], codes: vec![code] });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;

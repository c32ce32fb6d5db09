//! Several running programs, whose threads are moved while they run.

use super::live::{allowed_to, take_up};
use super::{OpenSubject, allowed_machine, scope, target_error, whole_machine};
use crate::cosched::CoschedRequest;
use crate::error::JobError;
use pinwise_coscheduling::{Coscheduler, PairSeats};
use pinwise_counters::{CountSource, PerfSource};
use pinwise_linux::{Pid, Streams, take_precedence};
use pinwise_measure::{CounterEvent, Interrupt, ProgramNote, Testbed};
use pinwise_metric::{Meter, Metric, MetricSpec};
use pinwise_programs::{
    CoscheduleError, CoscheduleOptions, CoscheduledTestbed, FoundPrograms, process_time,
};
use pinwise_topology::{DomainKind, Fingerprint, Machine};
use std::time::Duration;

impl OpenSubject for CoscheduledTestbed {
    fn pids(&self) -> Option<Vec<Pid>> {
        Some(self.pids())
    }

    fn notes(&self) -> Vec<ProgramNote> {
        self.notes()
    }

    fn is_gone(&self) -> bool {
        self.is_gone()
    }

    fn fingerprint(&self) -> Fingerprint {
        pinwise_linux::fingerprint(self.machine())
    }
}

/// By what the progress of programs is known.
pub(crate) enum ProgressMeans {
    /// Counters.
    Counts(Box<dyn CountSource>),
    /// A metric.
    Metric(MetricSpec),
    /// Nothing: they can be looked at, and no gain is known.
    Nothing,
}

/// Opens the counters of this machine. `other` says what else would do.
///
/// # Errors
/// It counts no instructions, or does not permit that. Names the remedy.
pub(crate) fn counters(other: &str) -> Result<Box<dyn CountSource>, JobError> {
    let source =
        PerfSource::open().map_err(|error| JobError::failed(format!("{error}; {other}")))?;
    if !source.events().contains(&CounterEvent::Instructions) {
        return Err(JobError::failed(format!(
            "this processor counts no instructions for pinwise: see pinwise doctor; {other}"
        )));
    }
    Ok(Box::new(source))
}

/// The contexts that programs share, those together that share the level.
pub(crate) fn shared_contexts(
    machine: &Machine,
    level: Option<&str>,
) -> Result<(DomainKind, Vec<Vec<usize>>), JobError> {
    let level = PairSeats::of(machine, level, 1).map_err(JobError::usage)?.level;
    let contexts = |domain: &pinwise_topology::Domain| -> Vec<usize> {
        domain.cpus.intersection(&machine.allowed).iter().map(|cpu| cpu.0 as usize).collect()
    };
    let cores = machine.domains(level).map(contexts).filter(|cpus| !cpus.is_empty());
    Ok((level, cores.collect()))
}

/// Attaches to programs that run. Only then it asks for the means: what was named wrongly is said
/// first.
pub(crate) fn open_running(
    request: &CoschedRequest,
    means: impl FnOnce() -> Result<ProgressMeans, JobError>,
    interrupt: &Interrupt,
) -> Result<CoscheduledTestbed, JobError> {
    let scope = scope(&request.subject).ok_or_else(|| {
        JobError::Usage("give programs that run: --pid, --tree or --cgroup".into())
    })?;
    // A resumed search takes it only here.
    take_precedence();
    let mut found = FoundPrograms::attach(scope, interrupt).map_err(coschedule_error)?;
    let machine = allowed_to(&found.mask(), whole_machine()?);
    let machine = allowed_machine(machine, request.cpus.as_deref())?;
    let (_, cores) = shared_contexts(&machine, request.level.as_deref())?;
    let mut notes = Vec::new();
    let (counts, meter) = match means()? {
        ProgressMeans::Counts(source) => {
            let missing = request.question.rule.check(&machine.name, &source.events());
            let missing = missing.map_err(JobError::usage)?;
            if !missing.is_empty() {
                notes.push(ProgramNote::WithoutEvents { events: missing });
            }
            (Some(source), None)
        }
        ProgressMeans::Metric(metric) => {
            let (meter, own_notes) = open_meter(request, &metric, &mut found, interrupt)?;
            notes = own_notes;
            (None, Some(meter))
        }
        ProgressMeans::Nothing => (None, None),
    };
    let question = &request.question;
    let mut coscheduler =
        Coscheduler::new(cores.clone(), question.rule.clone(), question.objective);
    let options = CoscheduleOptions {
        quantum: question.quantum,
        cores,
        meter,
        counts,
        decision: Box::new(move |threads| coscheduler.decide(threads)),
        own_time: process_time,
        notes,
    };
    CoscheduledTestbed::new(found, machine, options, interrupt.clone()).map_err(coschedule_error)
}

type OpenMeter = (Box<dyn Meter>, Duration);

fn open_meter(
    request: &CoschedRequest,
    metric: &MetricSpec,
    found: &mut FoundPrograms,
    interrupt: &Interrupt,
) -> Result<(OpenMeter, Vec<ProgramNote>), JobError> {
    let options = request.reading.metric_options()?;
    metric.check(&options, Some(&found.pids())).map_err(JobError::usage)?;
    let mut streams = Streams::default();
    let Metric { meter, shortest_window, notes, .. } =
        take_up(metric, &options, found.target(), &mut streams, interrupt)?;
    Ok(((meter, shortest_window), notes))
}

pub(crate) fn coschedule_error(error: CoscheduleError) -> JobError {
    match error {
        CoscheduleError::Target(error) => target_error(error),
        error @ (CoscheduleError::TooFewPrograms { .. } | CoscheduleError::NoChoice { .. }) => {
            JobError::usage(error)
        }
        error @ CoscheduleError::Count(_) => JobError::failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement_request::ReadingOptions;
    use crate::subject::Subject;
    use pinwise_coscheduling::{
        CoschedQuestion, CoscheduleObjective, CoscheduleRule, CounterModel, PublishedRule,
        TrainingPair,
    };
    use pinwise_counters::{ThreadCounts, UncountedEvent};
    use pinwise_linux::ThreadId;
    use pinwise_measure::{EventCounts, ThreadMoves};
    use std::collections::HashSet;
    use std::process::{Child, Command};

    const EVENTS: [CounterEvent; 3] =
        [CounterEvent::Cycles, CounterEvent::Instructions, CounterEvent::L2Misses];

    /// Counters of a processor that has none: processes of `hungry` miss the L2 often.
    struct EmulatedSource {
        events: Vec<CounterEvent>,
        hungry: HashSet<Pid>,
    }

    fn counts(misses: f64) -> EventCounts {
        let counts = EVENTS.into_iter().zip([1e6, 8e5, 1e6 * misses]).collect();
        EventCounts { seconds: 0.01, counts, counted: 0.5 }
    }

    impl CountSource for EmulatedSource {
        fn events(&self) -> Vec<CounterEvent> {
            self.events.clone()
        }

        fn uncounted(&self) -> Vec<UncountedEvent> {
            Vec::new()
        }

        fn read(&mut self, threads: &[ThreadId]) -> Vec<ThreadCounts> {
            let misses = |id: &ThreadId| if self.hungry.contains(&id.pid) { 0.05 } else { 0.001 };
            threads.iter().map(|id| Ok(Some(counts(misses(id))))).collect()
        }
    }

    /// Processes that compute until they are dropped.
    struct Busy(Vec<Child>);

    impl Busy {
        fn start(processes: usize) -> Self {
            let start = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
            Self((0..processes).map(|_| start()).collect())
        }

        fn pids(&self) -> Vec<Pid> {
            self.0.iter().map(|child| Pid(child.id() as i32)).collect()
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill().and_then(|()| child.wait());
            }
        }
    }

    /// On this machine, two programs with many L2 misses harm each other.
    fn model(cpu: &str) -> CounterModel {
        let many = |program: usize| program.is_multiple_of(2);
        let programs: Vec<(String, EventCounts)> = (0..10)
            .map(|one| (one.to_string(), counts(if many(one) { 0.05 } else { 0.001 })))
            .collect();
        let keeps = |one, other| if many(one) && many(other) { 0.5 } else { 0.9 };
        let pairs = TrainingPair::all(10, keeps);
        CounterModel::fit(cpu, &[CounterEvent::L2Misses], &programs, &pairs).unwrap()
    }

    fn request(pids: &[Pid], rule: CoscheduleRule, cpus: String) -> CoschedRequest {
        CoschedRequest {
            question: CoschedQuestion {
                objective: CoscheduleObjective::Throughput,
                counted: true,
                rule,
                quantum: Duration::from_millis(10),
                budget: None,
                confidence: 0.95,
                seed: 1,
            },
            subject: Subject::Pids(pids.iter().map(|pid| pid.0).collect()),
            metric: None,
            reading: ReadingOptions::default(),
            level: None,
            cpus: Some(cpus),
        }
    }

    #[test]
    fn each_rule_decides_by_the_counts_and_one_without_its_events_is_refused() {
        let machine = whole_machine().unwrap();
        let contexts: Vec<u32> = machine.allowed.iter().map(|cpu| cpu.0).collect();
        let cores = shared_contexts(&machine, None).map_or_else(|_| Vec::new(), |(_, cores)| cores);
        let Some(siblings) = cores.into_iter().find(|core| core.len() >= 2) else {
            return pinwise_synthetic::lacking("two contexts that share a level");
        };
        let cpus = format!("{},{}", siblings[0], siblings[1]);
        assert!(contexts.contains(&(siblings[0] as u32)));
        let busy = Busy::start(4);
        let pids = busy.pids();
        let open = |rule: CoscheduleRule, events: &[CounterEvent]| {
            let hungry = pids[..2].iter().copied().collect();
            let source = EmulatedSource { events: events.to_vec(), hungry };
            let means = || Ok(ProgressMeans::Counts(Box::new(source)));
            open_running(&request(&pids, rule, cpus.clone()), means, &Interrupt::default())
        };
        let published = || CoscheduleRule::Published(PublishedRule::default());
        let predicted = |cpu: &str| CoscheduleRule::Predicted(Box::new(model(cpu)));
        for rule in [published(), predicted(&machine.name)] {
            let name = rule.name();
            let mut testbed = open(rule, &EVENTS).unwrap();
            let without = testbed.notes().iter().any(
                |note| matches!(note, ProgramNote::WithoutEvents { events } if events.len() == 3),
            );
            assert_eq!(without, name == "published");
            // Dealt at first, the hungry two come to one context, and the others to the other one.
            let mut at = std::collections::HashMap::new();
            let together = (0..300).any(|quantum| {
                let moves = if quantum == 0 { ThreadMoves::Dealt(1) } else { ThreadMoves::Counted };
                for (thread, _, context) in testbed.preview(moves).unwrap() {
                    at.insert(thread.pid, context);
                }
                let context = |pid: &Pid| at.get(pid).copied();
                let all: Vec<Option<usize>> = pids.iter().map(context).collect();
                let [one, other] = [all[0], all[2]];
                one.is_some() && other.is_some() && one != other && all == [one, one, other, other]
            });
            assert!(together, "{name}: {at:?}");
            let quality = testbed.counters().unwrap();
            assert!(quality.counted == 0.5 && quality.quanta >= 4, "{quality:?}");
        }
        let complaint = |rule, events| open(rule, events).err().unwrap().to_string();
        let error = complaint(published(), &EVENTS[..2]);
        assert!(error.contains("--rule seen"), "{error}");
        let error = complaint(predicted(&machine.name), &EVENTS[..2]);
        assert!(error.contains("L2Misses"), "{error}");
        let error = complaint(predicted("another"), &EVENTS);
        assert!(error.contains("the model is of another"), "{error}");
        assert!(open(CoscheduleRule::Seen, &EVENTS[..2]).is_ok());
    }
}

//! Several running programs, whose threads are moved while they run.

use super::live::{allowed_to, take_up};
use super::{OpenSubject, allowed_machine, scope, target_error, whole_machine};
use crate::cosched::CoschedRequest;
use crate::error::JobError;
use pinwise_coscheduling::{CoscheduleRule, Coscheduler, PairSeats};
use pinwise_counters::{CountSource, PerfSource};
use pinwise_linux::{Pid, Streams};
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

/// Opens the counters of this machine.
///
/// # Errors
/// It counts no instructions, or does not permit that. Names the remedy.
pub(crate) fn counters() -> Result<Box<dyn CountSource>, JobError> {
    let other = "or give --metric, which shows the progress of the programs";
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
    let mut found = FoundPrograms::attach(scope, interrupt).map_err(coschedule_error)?;
    let machine = allowed_to(&found.mask(), whole_machine()?);
    let machine = allowed_machine(machine, request.cpus.as_deref())?;
    let (_, cores) = shared_contexts(&machine, request.level.as_deref())?;
    let mut notes = Vec::new();
    let (counts, meter) = match means()? {
        ProgressMeans::Counts(source) => (Some(source), None),
        ProgressMeans::Metric(metric) => {
            let (meter, own_notes) = open_meter(request, &metric, &mut found, interrupt)?;
            notes = own_notes;
            (None, Some(meter))
        }
        ProgressMeans::Nothing => (None, None),
    };
    let question = &request.question;
    let mut coscheduler =
        Coscheduler::new(cores.clone(), CoscheduleRule::default(), question.objective);
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

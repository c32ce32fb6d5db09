//! From a subject to the testbed that measures it.
//!
//! Each file opens some kinds of subject. [`open_with`] chooses the file. Where a request names
//! nodes, `on_nodes` has a worker on each open the same request. Each file has a testbed, opens it,
//! and answers what a job asks of it besides measurements.

mod built_in;
mod coscheduled;
mod live;
mod on_nodes;
mod paired;
mod rerun;
mod simulated;

pub(crate) use coscheduled::{
    ProgressMeans, coschedule_error, counters, open_running, shared_contexts,
};
pub use on_nodes::nodes_cost;
pub(crate) use on_nodes::{OnNodes, WithNodeNews, start as start_on_nodes};
pub(crate) use paired::{PairedRuns, open_commands};
pub(crate) use rerun::not_of_a_run;
pub(crate) use simulated::{open_pairs, open_ready, open_smt_core};

use crate::error::JobError;
use crate::events::{Events, Silent};
use crate::job::Caller;
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use pinwise_campaign::Record;
use pinwise_cluster::NodeNews;
use pinwise_linux::{Launch, Output, Pid, Scope, TargetError, ThreadFilter, share_with_others};
use pinwise_measure::{MeasureError, MemoryUse, NodeScale, ProgramNote, Testbed};
use pinwise_metric::MetricOptions;
use pinwise_topology::{Assignment, CpuSet, Fingerprint, Machine};
use pinwise_workloads::BuiltInWorkload;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A subject that is open: a testbed that knows where its threads come from.
///
/// The default methods are those of a testbed with virtual time.
pub(crate) trait OpenSubject: Testbed {
    /// The CPUs that each thread could use without pinwise's pins, by name. Empty if the threads
    /// are not compared: a program that is started anew inherits ours, or has those of its command.
    fn affinities(&self) -> BTreeMap<String, CpuSet> {
        BTreeMap::new()
    }

    /// Notes on the program and how it is measured.
    fn notes(&self) -> Vec<ProgramNote> {
        Vec::new()
    }

    /// The program's processes on this machine, none between two runs; `None` on a model.
    fn pids(&self) -> Option<Vec<Pid>> {
        None
    }

    /// Whether the metric turned out to be a total, though its name says that it is a rate.
    fn measures_a_total(&self) -> bool {
        false
    }

    /// Whether it is a program that ran before pinwise and has ended. Then its search cannot go on.
    fn is_gone(&self) -> bool {
        false
    }

    /// What happens to the nodes on which it is open; `None`: it is open here. Nodes may be back
    /// when the campaign is resumed.
    fn node_news(&self) -> Option<NodeNews> {
        None
    }

    /// How long a measurement takes, about, settling included. `period` is what was asked for.
    fn each(&self, period: Duration) -> Duration {
        period
    }

    /// The approximate time of an experiment of a profile, in the testbed's own time. `None` if
    /// there can be none.
    fn experiment(&self, _period: Duration) -> Option<Duration> {
        None
    }

    /// Takes in what earlier runs of the campaign measured.
    fn recall(&mut self, _records: &[Record]) {}

    /// About how long this machine takes to simulate one measurement of the whole workload. One is
    /// made to find out, and not stored. `None` for a program on this machine.
    fn simulating(&self) -> Option<Duration> {
        None
    }

    /// The memory under which `best` was measured; `None` if that is not known.
    fn memory(&self, _best: Option<&Assignment>) -> Option<MemoryUse> {
        None
    }

    /// Gives the program's memory back to the node where it lay before the search. The note says if
    /// that does not hold.
    fn give_memory_back(&mut self) -> Option<ProgramNote> {
        None
    }

    /// The conditions that must be the same for its plan to hold.
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.machine())
    }
}

/// Launches or attaches, and finds the threads.
///
/// # Errors
/// The program, its metric or its threads cannot be used; the user asked to stop.
pub(crate) fn open(
    request: &PlacementRequest,
    caller: &Caller,
) -> Result<Box<dyn OpenSubject>, JobError> {
    open_with(request, Opening::default(), caller, &mut Silent)
}

/// What is known when a subject is opened, besides the request.
#[derive(Clone, Default)]
pub(crate) struct Opening {
    /// The names of threads that the subject has. pinwise waits for them, and places them whatever
    /// they do.
    pub(crate) threads: Vec<String>,
    /// The end of the budget. The metric's first number is useless if it comes later. `None`:
    /// pinwise waits as long as usual.
    pub(crate) until: Option<Instant>,
    /// The program whose first thread only starts the others.
    pub(crate) starter: Option<PathBuf>,
    /// The nodes that have measured for the campaign, with the last scale of each.
    pub(crate) node_scales: BTreeMap<String, Option<NodeScale>>,
}

/// Opens a subject about which something is known. Events say what takes long.
pub(crate) fn open_with(
    request: &PlacementRequest,
    opening: Opening,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<Box<dyn OpenSubject>, JobError> {
    if let Some(nodes) = &request.on {
        return Ok(Box::new(on_nodes::open(nodes, request, opening, caller, events)?));
    }
    let interrupt = &caller.interrupt;
    Ok(match &request.subject {
        Subject::Simulated(simulation) => Box::new(simulated::open(simulation, request)?),
        Subject::BuiltIn(workload) => {
            let workload = BuiltInWorkload::parse(workload).map_err(usage)?;
            let (program, interrupt) = (caller.program()?, interrupt.clone());
            Box::new(built_in::open(workload, request.clone(), opening, program, interrupt)?)
        }
        Subject::Rerun(_) => Box::new(rerun::open(request, opening, interrupt, events)?),
        // What failed may have taken precedence, and others go on.
        _ => Box::new(
            live::open(request, opening, interrupt).inspect_err(|_| share_with_others(1.0))?,
        ),
    })
}

/// The scope to attach to; `None` for a program that is started.
pub fn scope(subject: &Subject) -> Option<Scope> {
    match subject {
        Subject::Launched(_) | Subject::Rerun(_) | Subject::BuiltIn(_) | Subject::Simulated(_) => {
            None
        }
        Subject::Pids(pids) => {
            // A process that is named twice is one process.
            let mut seen = HashSet::new();
            let named = pids.iter().map(|&pid| Pid(pid)).filter(|&pid| seen.insert(pid));
            Some(Scope::Processes(named.collect()))
        }
        Subject::Tree(pid) => Some(Scope::Trees(vec![Pid(*pid)])),
        Subject::Cgroup(path) => Some(Scope::Cgroup(path.clone())),
    }
}

/// This machine, as far as pinwise and the request allow.
pub(crate) fn this_machine(request: &PlacementRequest) -> Result<Machine, JobError> {
    allowed_machine(whole_machine()?, request.cpus.as_deref())
}

/// This machine, as far as pinwise may use it.
pub(crate) fn whole_machine() -> Result<Machine, JobError> {
    pinwise_linux::this_machine()
        .map_err(|error| JobError::failed(format!("cannot read this machine's topology: {error}")))
}

/// The CPUs that `--cpus` names, in the syntax of cpuset(7): `0-3,8`.
///
/// # Errors
/// [`JobError::Usage`]: it is no such list, it is empty, or one of them is not in `allowed`.
pub fn named_cpus(list: &str, allowed: &CpuSet) -> Result<CpuSet, JobError> {
    let wanted =
        CpuSet::parse_list(list).map_err(|error| JobError::Usage(format!("--cpus: {error}")))?;
    let missing = wanted.difference(allowed);
    if wanted.is_empty() {
        let message = format!("--cpus names no CPU; allowed are {allowed}");
        return Err(JobError::Usage(message));
    }
    if !missing.is_empty() {
        let message = format!("--cpus {list}: not allowed here: {missing}; allowed are {allowed}");
        return Err(JobError::Usage(message));
    }
    Ok(wanted)
}

/// The machine, as far as `--cpus` allows.
pub(crate) fn allowed_machine(
    mut machine: Machine,
    cpus: Option<&str>,
) -> Result<Machine, JobError> {
    if let Some(list) = cpus {
        let wanted = named_cpus(list, &machine.allowed)?;
        // This comes before all other checks: with one context there is no question.
        if wanted.len() == 1 {
            return Err(JobError::Usage(format!(
                "--cpus {list}: one context leaves nothing to choose; name more"
            )));
        }
        machine.allowed = wanted;
    }
    Ok(machine)
}

/// Which threads are placed: those that the request names, and known ones whatever they do.
fn thread_filter(request: &PlacementRequest, opening: &Opening) -> Result<ThreadFilter, JobError> {
    let filter = ThreadFilter::new(request.include.as_deref(), request.exclude.as_deref())
        .map(|filter| filter.known(opening.threads.clone()))
        .map_err(usage)?;
    Ok(match &opening.starter {
        Some(program) => filter.started_by(program),
        None => filter,
    })
}

/// How the metric is read, and until when its first number is waited for.
fn metric_options(
    request: &PlacementRequest,
    until: Option<Instant>,
) -> Result<MetricOptions, JobError> {
    let usual = request.reading.metric_options()?;
    let patience = within_budget(usual.patience, until);
    Ok(MetricOptions { patience, until, ..usual })
}

/// `patience`, or what is left until the budget ends.
fn within_budget(patience: Duration, until: Option<Instant>) -> Duration {
    let left = until.map(|end| end.saturating_duration_since(Instant::now()));
    left.map_or(patience, |left| patience.min(left))
}

fn launch(command: &[String], request: &PlacementRequest) -> Launch {
    let mut words = command.iter();
    Launch {
        program: words.next().map(Into::into).unwrap_or_default(),
        arguments: words.map(Into::into).collect(),
        environment: request
            .environment
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        stdout: request.output.clone().map_or_else(Output::default, Output::File),
        ..Launch::default()
    }
}

/// Converts an error of the target. Its kind decides the exit code.
fn target_error(error: TargetError) -> JobError {
    match error {
        TargetError::Measure(MeasureError { interrupted: true, .. }) => {
            JobError::nothing_measured(true)
        }
        TargetError::Measure(MeasureError { expired: true, message, .. }) => {
            JobError::budget_spent(message)
        }
        error @ (TargetError::NoProcess(_) | TargetError::NoneChosen { .. }) => usage(error),
        TargetError::Launch { ref cause, .. }
        | TargetError::Unopened { ref cause, .. }
        | TargetError::Cgroup { ref cause, .. }
            if cause.kind() == io::ErrorKind::NotFound =>
        {
            usage(error)
        }
        error => JobError::failed(error),
    }
}

fn usage(error: impl std::fmt::Display) -> JobError {
    JobError::usage(error)
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::OpenSubject;
    use pinwise_measure::{
        Disturbances, Effort, MeasureError, Measurement, OtherLoad, ProgramNote, Setting, Testbed,
        Time, Unit, Workload,
    };
    use pinwise_topology::Machine;
    use std::time::Duration;

    /// A subject with another time. It starts an instance anew for each measurement of it alone,
    /// and was disturbed.
    pub(crate) struct Altered {
        pub(crate) testbed: Box<dyn OpenSubject>,
        pub(crate) restart: Option<Duration>,
        pub(crate) time: Time,
        pub(crate) gone: bool,
    }

    impl Testbed for Altered {
        fn machine(&self) -> &Machine {
            self.testbed.machine()
        }
        fn workload(&self) -> &Workload {
            self.testbed.workload()
        }
        fn unit(&self) -> &Unit {
            self.testbed.unit()
        }
        fn measure(
            &mut self,
            setting: &Setting,
            effort: Effort,
        ) -> Result<Measurement, MeasureError> {
            self.testbed.measure(setting, effort)
        }
        fn profiles(&self) -> bool {
            true
        }
        fn restart(&self) -> Option<Duration> {
            self.restart
        }
        fn disturbances(&self) -> Disturbances {
            let others = Some(OtherLoad::new(1.0, 2.0));
            Disturbances { others, notes: vec![ProgramNote::from("moved".to_owned())] }
        }
        fn time(&self) -> Time {
            self.time
        }
        fn seek(&mut self, number: u64) {
            self.testbed.seek(number);
        }
    }

    impl OpenSubject for Altered {
        fn is_gone(&self) -> bool {
            self.gone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Listening, note};
    use crate::job::with_listener;
    use crate::place::PlaceRequest;

    #[test]
    fn a_process_that_is_named_twice_is_one_process() {
        let named = scope(&Subject::Pids(vec![7, 8, 7]));
        assert!(matches!(named, Some(Scope::Processes(pids)) if pids == [Pid(7), Pid(8)]));
    }

    #[test]
    fn a_listener_who_leaves_before_the_program_is_open_ends_its_start() {
        let hour = ["sleep", "3600"].map(str::to_owned).to_vec();
        let request = PlaceRequest::from(PlacementRequest::command(hour, None));
        let caller = Caller::default();
        let mut left = Listening(|_: Event<'_>| Err(io::ErrorKind::BrokenPipe.into()));
        // If the first run goes on, its limit ends it: that is another error.
        let opened = with_listener(&caller, &mut left, |caller, events| {
            note(events, ProgramNote::MetricStill)?;
            open(&request.request, caller).map(drop)
        });
        assert!(matches!(opened, Err(JobError::Output(_))), "{opened:?}");
        assert!(!caller.interrupt.came(), "the caller's own");
    }
}

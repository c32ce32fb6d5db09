//! From a request to the testbed that measures it.

use crate::error::JobError;
use crate::instances::{Instances, Start};
use crate::interrupt::Interrupt;
use crate::job::Caller;
use crate::request::{Request, SelectRequest, Simulation, Subject};
use pinwise_linux::{
    Launch, Output, Pid, Scope, Streams, Target, TargetError, ThreadFilter, process,
};
use pinwise_measure::{Effort, MeasureError, Setting, Testbed, Unit};
use pinwise_metric::{Interpretation, Metric, MetricError, MetricOptions, MetricSpec, Pattern};
use pinwise_present::figures;
use pinwise_processor::{Processor, SimulatedTestbed, Window};
use pinwise_programs::{LiveOptions, LiveTestbed, RerunOptions, RerunTestbed, RunMetric, Stream};
use pinwise_topology::{CpuSet, Fingerprint, Machine};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// How long after it closed its output a program may take to end.
const ENDING: Duration = Duration::from_millis(300);

/// What a placement can be tried on.
pub enum Bed {
    /// A program that is re-pinned while it runs, and notes on its metric.
    Live(Box<LiveTestbed>, Vec<String>),
    /// A built-in workload, some of whose instances can run alone.
    Instances(Box<Instances>),
    /// A program that is started anew for each measurement.
    Rerun(Box<RerunTestbed>),
    /// Programs on a simulated processor.
    Simulated(Box<SimulatedTestbed>),
}

impl Bed {
    /// The testbed.
    pub fn testbed(&self) -> &dyn Testbed {
        match self {
            Self::Live(bed, _) => bed.as_ref(),
            Self::Instances(bed) => bed.as_ref(),
            Self::Rerun(bed) => bed.as_ref(),
            Self::Simulated(bed) => bed.as_ref(),
        }
    }

    /// The testbed, to measure on.
    pub fn testbed_mut(&mut self) -> &mut dyn Testbed {
        match self {
            Self::Live(bed, _) => bed.as_mut(),
            Self::Instances(bed) => bed.as_mut(),
            Self::Rerun(bed) => bed.as_mut(),
            Self::Simulated(bed) => bed.as_mut(),
        }
    }

    /// On which CPUs the threads may run by themselves, by name; a program that is started anew
    /// inherits ours.
    pub fn affinities(&self) -> BTreeMap<String, CpuSet> {
        match self {
            Self::Live(bed, _) => bed.affinities(),
            Self::Instances(bed) => bed.affinities(),
            Self::Rerun(_) | Self::Simulated(_) => BTreeMap::new(),
        }
    }

    /// What the user should know.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Live(bed, metric) => metric.iter().cloned().chain(bed.notes()).collect(),
            Self::Instances(bed) => bed.notes(),
            Self::Rerun(bed) => bed.notes(),
            // What a model is comes with the answer.
            Self::Simulated(_) => Vec::new(),
        }
    }

    /// The program's processes, where they run on; `None` on a model.
    pub fn pids(&self) -> Option<Vec<Pid>> {
        match self {
            Self::Live(bed, _) => Some(bed.pids()),
            Self::Instances(bed) => Some(bed.pids()),
            Self::Rerun(_) => Some(Vec::new()),
            Self::Simulated(_) => None,
        }
    }

    /// Whether the metric turned out to be a total, though its name says that it is a rate.
    pub(crate) fn measures_a_total(&self) -> bool {
        matches!(self, Self::Live(bed, _) if bed.measures_a_total())
    }

    /// How long an experiment of a profile takes, about, and whether that is time of a model;
    /// `None` where there can be none.
    pub(crate) fn experiment(&self, request: &Request) -> Option<(Duration, bool)> {
        match (self, &request.subject) {
            (Self::Simulated(_), Subject::Simulated(simulation)) => {
                let processor = simulation.model.processor().ok()?;
                Some((virtual_time(simulation, &processor), true))
            }
            (Self::Instances(bed), _) => Some((bed.experiment(request.period), false)),
            _ => None,
        }
    }

    /// How long this machine takes, about, for a measurement of the whole workload on a model: as
    /// long as one that is made for that, of which nothing is kept. `None` for a program on
    /// this machine.
    pub fn simulating(&self) -> Option<Duration> {
        let Self::Simulated(bed) = self else { return None };
        let begin = Instant::now();
        bed.as_ref().clone().measure(&Setting::Unpinned, Effort::default()).ok()?;
        Some(begin.elapsed())
    }

    /// How long an instance alone takes to be measured, about, where it is started for that.
    pub(crate) fn restart(&self, window: Duration) -> Option<Duration> {
        match self {
            Self::Instances(bed) => Some(bed.alone(window)),
            _ => None,
        }
    }

    /// What has to be the same for its plan to hold.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Simulated(bed) => Fingerprint::of(bed.machine()),
            bed => pinwise_linux::fingerprint(bed.testbed().machine()),
        }
    }
}

/// Launches or attaches, and finds the threads.
///
/// # Errors
/// The program, its metric or its threads cannot be used; the user asked to stop.
pub fn open(request: &Request, caller: &Caller) -> Result<Bed, JobError> {
    let interrupt = &caller.interrupt;
    if let Subject::Simulated(simulation) = &request.subject {
        return simulated(simulation, request);
    }
    let program = caller.program()?;
    if let Some(workload) = request.subject.as_built_in(&program) {
        let program = program.to_string_lossy().into_owned();
        let request =
            Request { subject: Subject::built_in(&program, &workload), ..request.clone() };
        let start = start(request, program, interrupt.clone());
        return Ok(Bed::Instances(Box::new(Instances::new(workload, start)?)));
    }
    whole(request, interrupt)
}

/// A program on this machine, as a whole.
fn whole(request: &Request, interrupt: &Interrupt) -> Result<Bed, JobError> {
    let machine = pinwise_linux::machine().map_err(|error| {
        JobError::failed(format!("cannot read this machine's topology: {error}"))
    })?;
    let machine = allowed_machine(machine, request.cpus.as_deref())?;
    let metric: MetricSpec = request.metric.parse().map_err(usage)?;
    let pattern = |text: &String| Pattern::new(text).map_err(usage);
    let counter =
        |counter: bool| if counter { Interpretation::Counter } else { Interpretation::Value };
    let usual = MetricOptions::default();
    let options = MetricOptions {
        patience: request.deadline.map_or(usual.patience, |end| {
            usual.patience.min(end.saturating_duration_since(Instant::now()))
        }),
        until: request.deadline,
        pick: request.reading.pick.as_ref().map(pattern).transpose()?,
        interpretation: request.reading.counter.map(counter),
        lower_is_better: request.reading.lower_is_better,
        unit: request.reading.unit.clone(),
    };
    let filter =
        ThreadFilter::new(request.include.as_deref(), request.exclude.as_deref()).map_err(usage)?;
    let filter = filter.known(request.affinities.keys().cloned());
    if let Subject::Rerun(command) = &request.subject {
        let metric = whole_run(&metric, &options)?;
        let limits = RerunOptions { filter, limit: request.limit, remove: request.remove.clone() };
        let bed =
            RerunTestbed::new(launch(command, request), &machine, metric, limits, interrupt.flag())
                .map_err(told)?;
        return Ok(Bed::Rerun(Box::new(bed)));
    }
    let (mut target, mut streams) = match (&request.subject, scope(&request.subject)) {
        (_, Some(scope)) => {
            let target = Target::attach(scope).map_err(told)?;
            metric.check(&options, Some(&target.pids())).map_err(usage)?;
            (target, Streams::default())
        }
        (Subject::Launched(command) | Subject::Rerun(command), _) => {
            metric.check(&options, None).map_err(usage)?;
            Target::launch(&launch(command, request)).map_err(told)?
        }
        (subject, None) => {
            return Err(JobError::failed(format!("{subject:?} is nothing to attach to")));
        }
    };
    let metric = take_up(&metric, &options, &mut target, &mut streams, interrupt)?;
    let mut notes = metric.notes;
    let mut options = LiveOptions {
        filter,
        period: request.period,
        floor: request.floor,
        ..LiveOptions::default()
    };
    // A fifth settles; the rest has to be as long as the metric needs.
    let least = metric.shortest_window * 5 / 4;
    if least > options.period {
        let [needed, asked] = [least, options.period].map(figures::duration);
        notes.push(format!("--period is {needed}, not {asked}: the metric needs it"));
        options.period = least;
    }
    let bed = LiveTestbed::new(target, &machine, metric.meter, options, interrupt.flag())
        .map_err(told)?;
    Ok(Bed::Live(Box::new(bed), notes))
}

/// Starts other instances than `request` says, as a workload of its own, which `program` runs.
fn start(request: Request, program: String, interrupt: Interrupt) -> Start {
    Box::new(move |workload| {
        let mut request = request.clone();
        let subject = Subject::built_in(&program, workload);
        if request.subject != subject {
            request.subject = subject;
            // These are names of the whole.
            request.affinities.clear();
        }
        match whole(&request, &interrupt)? {
            Bed::Live(bed, notes) => Ok((*bed, notes)),
            _ => Err(JobError::failed("a workload that is not launched has no instances to start")),
        }
    })
}

/// What to attach to; `None` for a program that is started.
pub fn scope(subject: &Subject) -> Option<Scope> {
    match subject {
        Subject::Launched(_) | Subject::Rerun(_) | Subject::Simulated(_) => None,
        Subject::Pids(pids) => Some(Scope::Processes(pids.iter().map(|&pid| Pid(pid)).collect())),
        Subject::Tree(pid) => Some(Scope::Trees(vec![Pid(*pid)])),
        Subject::Cgroup(path) => Some(Scope::Cgroup(path.clone())),
    }
}

/// Takes up the metric. Where the program has ended, that is what the user is told: the silence of
/// the metric follows from it.
fn take_up(
    metric: &MetricSpec,
    options: &MetricOptions,
    target: &mut Target,
    streams: &mut Streams,
    interrupt: &Interrupt,
) -> Result<Metric, JobError> {
    let roots = target.pids();
    let ended = || roots.iter().all(|&pid| process::ended(pid));
    // What it said at last is read before its end is taken for that of the metric.
    let since: Cell<Option<Instant>> = Cell::new(None);
    let silent = || {
        since.set(ended().then(|| since.get().unwrap_or_else(Instant::now)));
        since.get().is_some_and(|end| end.elapsed() > ENDING)
    };
    let watched = roots.clone();
    let pids = Box::new(move || {
        let all = process::all().unwrap_or_default();
        watched.iter().copied().chain(process::descendants(&watched, &all)).collect()
    });
    let error = match metric.open(options, streams, pids, &|| interrupt.came() || silent()) {
        Ok(metric) => return Ok(metric),
        Err(error) => error,
    };
    if interrupt.came() {
        return Err(JobError::nothing_measured(true));
    }
    // Its output is closed a moment before it has ended.
    let closed = matches!(error, MetricError::Closed { .. });
    let soon = Instant::now() + ENDING;
    while closed && !ended() && Instant::now() < soon {
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Err(end) = target.check() {
        let unmatched =
            matches!(error, MetricError::Closed { numbers: 0, .. }) && target.finished();
        let told = told(end);
        return Err(if unmatched {
            told.context(format!("--metric '{metric}' matched no line"))
        } else {
            told
        });
    }
    let over = options.until.is_some_and(|until| Instant::now() >= until);
    let missing = match error {
        MetricError::NeverRead { .. } if over => "was a number",
        MetricError::TooFew { .. } if over => "were enough numbers",
        error if error.is_usage() => return Err(usage(error)),
        error => return Err(JobError::failed(error)),
    };
    Err(JobError::failed(error).context(format!("the budget ended before there {missing}")))
}

/// An error of the target with the exit code it deserves.
fn told(error: TargetError) -> JobError {
    match error {
        TargetError::Measure(MeasureError { interrupted: true, .. }) => {
            JobError::nothing_measured(true)
        }
        error @ (TargetError::NoProcess(_) | TargetError::NoneChosen { .. }) => usage(error),
        TargetError::Launch { ref cause, .. } | TargetError::Cgroup { ref cause, .. }
            if cause.kind() == io::ErrorKind::NotFound =>
        {
            usage(error)
        }
        error => JobError::failed(error),
    }
}

fn launch(command: &[String], request: &Request) -> Launch {
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

/// A program on a simulated processor.
pub fn simulated(simulation: &Simulation, request: &Request) -> Result<Bed, JobError> {
    let processor = simulation.model.processor()?;
    let programs =
        simulation.programs().ok_or_else(|| JobError::failed("the model has no such program"))?;
    let machine = allowed_machine(processor.machine(), request.cpus.as_deref())?;
    let window = Window { cycles: simulation.cycles, starts: simulation.starts };
    let bed = SimulatedTestbed::new(processor, machine, programs, window, request.question.seed);
    Ok(Bed::Simulated(Box::new(bed.map_err(usage)?)))
}

/// The ready programs of a selection.
pub(crate) fn ready(selected: &SelectRequest) -> Result<Bed, JobError> {
    let simulation = selected.simulation()?;
    let processor = simulation.model.processor()?;
    let programs =
        simulation.programs().ok_or_else(|| JobError::failed("the model has no such program"))?;
    let machine = allowed_machine(processor.machine(), selected.cpus.as_deref())?;
    let window = Window { cycles: simulation.cycles, starts: simulation.starts };
    let alone = selected.alone.clone();
    let bed =
        SimulatedTestbed::of_ready(processor, machine, programs, alone, window, selected.mix.seed);
    Ok(Bed::Simulated(Box::new(bed.map_err(usage)?)))
}

/// How long a measurement takes on a simulated processor, by its own clock.
pub fn virtual_time(simulation: &Simulation, processor: &Processor) -> Duration {
    // A quarter passes before packets are counted.
    let cycles = 1.25 * simulation.cycles as f64 * f64::from(simulation.starts);
    Duration::from_secs_f64(cycles / (f64::from(processor.clock_mhz) * 1e6))
}

/// The machine, as far as `--cpus` allows.
pub fn allowed_machine(mut machine: Machine, cpus: Option<&str>) -> Result<Machine, JobError> {
    if let Some(list) = cpus {
        let wanted = CpuSet::parse_list(list).map_err(usage)?;
        let missing = wanted.difference(&machine.allowed);
        if wanted.is_empty() {
            let message = format!("--cpus names no CPU; allowed are {}", machine.allowed);
            return Err(JobError::Usage(message));
        }
        if !missing.is_empty() {
            let message = format!(
                "--cpus {list}: not allowed here: {missing}; allowed are {}",
                machine.allowed
            );
            return Err(JobError::Usage(message));
        }
        // Before anything else is said of the question: there is none.
        if wanted.len() == 1 {
            return Err(JobError::Usage(format!(
                "--cpus {list}: one context leaves nothing to choose; name more"
            )));
        }
        machine.allowed = wanted;
    }
    Ok(machine)
}

/// What a whole run's performance is.
fn whole_run(metric: &MetricSpec, options: &MetricOptions) -> Result<RunMetric, JobError> {
    let (stream, pattern) = match metric {
        MetricSpec::Runtime => return Ok(RunMetric::Runtime),
        MetricSpec::Stdout(pattern) => (Stream::Stdout, pattern),
        MetricSpec::Stderr(pattern) => (Stream::Stderr, pattern),
        other => {
            let message =
                format!("--per-run takes runtime, stdout:REGEX or stderr:REGEX, not {other}");
            return Err(JobError::Usage(message));
        }
    };
    let name = options.unit.clone().unwrap_or_else(|| "value".into());
    let unit = if options.lower_is_better { Unit::cost(name) } else { Unit::rate(name) };
    Ok(RunMetric::Output { stream, pattern: pattern.clone(), unit })
}

fn usage(error: impl std::fmt::Display) -> JobError {
    JobError::usage(error)
}

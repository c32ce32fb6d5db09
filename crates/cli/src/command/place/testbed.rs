//! From a request to the testbed that measures it.

use crate::interrupt::Interrupt;
use crate::output::Usage;
use crate::request::{Request, Subject};
use anyhow::Context;
use pinwise_host::metric::{Interpretation, MetricOptions, MetricSpec, Pattern};
use pinwise_host::{
    Launch, LiveOptions, LiveTestbed, Pid, RerunOptions, RerunTestbed, RunMetric, Scope, Stream, Target, process,
};
use pinwise_testbed::{Testbed, Unit};
use pinwise_topology::{CpuSet, Machine};

/// The testbeds of this machine.
pub(crate) enum Bed {
    Live(Box<LiveTestbed>, Vec<String>),
    Rerun(Box<RerunTestbed>),
}

impl Bed {
    pub(crate) fn testbed(&self) -> &dyn Testbed {
        match self {
            Self::Live(bed, _) => bed.as_ref(),
            Self::Rerun(bed) => bed.as_ref(),
        }
    }

    pub(crate) fn testbed_mut(&mut self) -> &mut dyn Testbed {
        match self {
            Self::Live(bed, _) => bed.as_mut(),
            Self::Rerun(bed) => bed.as_mut(),
        }
    }

    /// What the user should know.
    pub(crate) fn notes(&self) -> Vec<String> {
        match self {
            Self::Live(bed, metric) => metric.iter().cloned().chain(bed.notes()).collect(),
            Self::Rerun(bed) => bed.notes(),
        }
    }
}

/// Launches or attaches, and finds the threads.
pub(crate) fn open(request: &Request, interrupt: &Interrupt) -> anyhow::Result<Bed> {
    let machine = machine(request)?;
    let metric: MetricSpec = request.metric.parse().map_err(usage)?;
    let pattern = |text: &String| Pattern::new(text).map_err(usage);
    let counter = |counter: bool| if counter { Interpretation::Counter } else { Interpretation::Value };
    let options = MetricOptions {
        pick: request.reading.pick.as_ref().map(pattern).transpose()?,
        interpretation: request.reading.counter.map(counter),
        lower_is_better: request.reading.lower_is_better,
        unit: request.reading.unit.clone(),
        ..MetricOptions::default()
    };
    if let Subject::Rerun(command) = &request.subject {
        let metric = whole_run(&metric, &options)?;
        let limits = RerunOptions { limit: request.limit };
        let bed = RerunTestbed::new(launch(command), &machine, metric, limits, interrupt.flag())?;
        return Ok(Bed::Rerun(Box::new(bed)));
    }
    metric.check(&options, matches!(request.subject, Subject::Launched(_))).map_err(usage)?;
    let (target, mut streams) = match &request.subject {
        Subject::Launched(command) | Subject::Rerun(command) => Target::launch(&launch(command))?,
        Subject::Pids(pids) => attach(Scope::Processes(pids.iter().map(|&pid| Pid(pid)).collect()))?,
        Subject::Tree(pid) => attach(Scope::Trees(vec![Pid(*pid)]))?,
        Subject::Cgroup(path) => attach(Scope::Cgroup(path.clone()))?,
    };
    let roots = target.pids();
    let pids = Box::new(move || {
        let all = process::all().unwrap_or_default();
        process::descendants(&roots, &all)
    });
    let metric = metric.open(&options, &mut streams, pids, &|| interrupt.came())?;
    let options = LiveOptions { period: request.period, floor: request.floor, ..LiveOptions::default() };
    let bed = LiveTestbed::new(target, &machine, metric.meter, options, interrupt.flag())?;
    Ok(Bed::Live(Box::new(bed), metric.notes))
}

fn attach(scope: Scope) -> anyhow::Result<(Target, pinwise_host::Streams)> {
    Ok((Target::attach(scope)?, pinwise_host::Streams::default()))
}

fn launch(command: &[String]) -> Launch {
    let mut words = command.iter();
    Launch {
        program: words.next().map(Into::into).unwrap_or_default(),
        arguments: words.map(Into::into).collect(),
        ..Launch::default()
    }
}

/// The live machine, as far as `--cpus` allows.
fn machine(request: &Request) -> anyhow::Result<Machine> {
    let mut machine = pinwise_host::machine().context("cannot read this machine's topology")?;
    if let Some(list) = &request.cpus {
        let wanted = CpuSet::parse_list(list).map_err(usage)?;
        let allowed = machine.allowed.intersection(&wanted);
        if allowed.is_empty() {
            let message = format!("--cpus {list}: none of these is allowed here; allowed are {}", machine.allowed);
            return Err(Usage(message).into());
        }
        machine.allowed = allowed;
    }
    Ok(machine)
}

/// What a whole run's performance is.
fn whole_run(metric: &MetricSpec, options: &MetricOptions) -> anyhow::Result<RunMetric> {
    let (stream, pattern) = match metric {
        MetricSpec::Runtime => return Ok(RunMetric::Runtime),
        MetricSpec::Stdout(pattern) => (Stream::Stdout, pattern),
        MetricSpec::Stderr(pattern) => (Stream::Stderr, pattern),
        other => {
            let message = format!("--per-run takes runtime, stdout:REGEX or stderr:REGEX, not {other}");
            return Err(Usage(message).into());
        }
    };
    let name = options.unit.clone().unwrap_or_else(|| "value".into());
    let unit = if options.lower_is_better { Unit::cost(name) } else { Unit::rate(name) };
    Ok(RunMetric::Output { stream, pattern: pattern.clone(), unit })
}

fn usage(error: impl std::fmt::Display) -> Usage {
    Usage(error.to_string())
}

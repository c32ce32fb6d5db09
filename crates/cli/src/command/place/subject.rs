//! The arguments that name the program to place and its performance.

use super::search::{SearchArguments, fraction, short, time};
use super::simulation::{SimulationArguments, built_in};
use crate::number_argument;
use crate::output::{self, Usage};
use crate::reading_arguments::ReadingArguments;
use clap::{ArgGroup, Args};
use pinwise_jobs::{
    DEFAULT_WORKLOAD, PlacementRequest, RUNTIME_METRIC, SimulatedProcessor, Subject,
};
use pinwise_linux::{Pid, TargetError, process};
use pinwise_placement::{Budget, PlannedNumber};
use std::path::PathBuf;
use std::time::Duration;

/// The program, its metric, and what is done to it.
#[derive(Args)]
#[command(
    group = ArgGroup::new("subject")
        .args(["command", "workload", "pid", "tree", "cgroup"])
        .multiple(false)
)]
pub(crate) struct SubjectArguments {
    /// The program and its arguments. Its standard input is /dev/null
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    /// Use built-in programs, such as intadd:4+intmul
    #[arg(long, value_name = "NAME[:N]")]
    workload: Option<String>,
    /// Use a running process. Repeat --pid for several
    #[arg(long, value_name = "PID", value_parser = number_argument::pid)]
    pid: Vec<Pid>,
    /// Use a running process and all its descendants
    #[arg(long, value_name = "PID", value_parser = number_argument::pid)]
    tree: Option<Pid>,
    /// Use all processes of the cgroup in this directory
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,

    /// Choose the metric; place --help lists them
    #[arg(long, value_name = "METRIC", help_heading = "Metric")]
    metric: Option<String>,
    #[command(flatten, next_help_heading = "Metric")]
    reading: ReadingArguments,
    /// Restart the program for each measurement
    #[arg(long, requires = "command", help_heading = "Metric", hide_short_help = true)]
    per_run: bool,

    /// Place only threads whose names match
    #[arg(long, value_name = "REGEX", help_heading = "Target")]
    include: Option<String>,
    /// Leave out threads whose names match
    #[arg(long, value_name = "REGEX", help_heading = "Target")]
    exclude: Option<String>,
    /// Measure live programs this long
    #[arg(
        long,
        alias = "period",
        value_name = "TIME",
        default_value = short(PlacementRequest::PERIOD),
        value_parser = time,
        hide_short_help = true,
        help_heading = "Target"
    )]
    window: Duration,
    /// Abandon assignments below this share of unpinned
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = fraction,
        help_heading = "Target",
        hide_short_help = true
    )]
    floor: Option<f64>,
    /// Fail if a restarted run takes longer
    #[arg(
        long,
        value_name = "TIME",
        default_value = short(PlacementRequest::LIMIT),
        value_parser = time,
        help_heading = "Target",
        hide_short_help = true
    )]
    limit: Duration,
    #[command(flatten, next_help_heading = "Simulation")]
    pub(super) simulation: SimulationArguments,
}

impl SubjectArguments {
    /// The request with every default decided. `command` is what was typed.
    pub(crate) fn request(
        &self,
        command: &str,
        search: &SearchArguments,
    ) -> Result<PlacementRequest, Usage> {
        if let Some(model) = self.simulation.model(command)? {
            return self.simulated(&model, search);
        }
        let ReadingArguments { pick, counter, gauge, .. } = &self.reading;
        let of_a_metric =
            [(pick.is_some(), "--pick"), (*counter, "--counter"), (*gauge, "--gauge")];
        if let Some((_, what)) = of_a_metric.iter().find(|(given, _)| *given)
            && self.metric.is_none()
        {
            return Err(Usage(format!(
                "{what} needs a metric: add --metric, as in --metric 'cmd:…'"
            )));
        }
        if let Some(note) = unfilled_number(&self.command) {
            output::aside(&format!("note: {note}"));
        }
        let usual = if !self.command.is_empty() {
            match &self.metric {
                Some(metric) if self.per_run => {
                    PlacementRequest::new(Subject::Rerun(self.command.clone()), metric)
                }
                metric => PlacementRequest::command(self.command.clone(), metric.clone()),
            }
        } else if let Some(subject) = self.attached() {
            let Some(metric) = self.metric.clone().filter(|metric| metric != RUNTIME_METRIC) else {
                if let Some(pid) =
                    self.pid.iter().chain(&self.tree).find(|pid| process::ended(**pid))
                {
                    return Err(Usage(TargetError::NoProcess(*pid).to_string()));
                }
                return Err(Usage(
                    "a running program needs a metric that pinwise can read from outside: \
                     --metric 'cmd:…' with --pick, prom:URL#SERIES, netdev:IFACE:FIELD, \
                     io:rchar, dpdk:PREFIX or file:PATH:REGEX"
                        .into(),
                ));
            };
            PlacementRequest::new(subject, metric)
        } else {
            if let Some(metric) = &self.metric {
                return Err(Usage(format!(
                    "--metric {metric} has no program to measure: add -- CMD, --pid PID, --tree \
                     PID or --cgroup DIR"
                )));
            }
            PlacementRequest::built_in(&built_in(self.built_in().unwrap_or(DEFAULT_WORKLOAD))?)
        };
        Ok(PlacementRequest {
            question: search.question(usual.question),
            name: self.built_in().map(str::to_owned).or(usual.name),
            reading: self.reading.reading(usual.reading),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            cpus: search.cpus.clone(),
            shown_cap: search.cap,
            period: self.window,
            floor: self.floor,
            limit: self.limit,
            ..usual
        })
    }

    /// The request for a program on a simulated processor. Refuses options that need a real
    /// program.
    fn simulated(
        &self,
        simulated: &SimulatedProcessor,
        search: &SearchArguments,
    ) -> Result<PlacementRequest, Usage> {
        let model = &simulated.name;
        let unusable = [
            (!self.command.is_empty(), "-- CMD"),
            (self.attached().is_some(), "a running program"),
            (self.metric.is_some() || self.reading.pick.is_some(), "--metric"),
            (self.floor.is_some(), "--floor"),
            (self.include.is_some() || self.exclude.is_some(), "--include or --exclude"),
        ];
        if let Some((_, what)) = unusable.iter().find(|(given, _)| *given) {
            return Err(Usage(format!(
                "{what} needs a program on this machine; the model {model} runs only built-in \
                 programs: --workload NAME:INSTANCES"
            )));
        }
        if let Some(Budget::Time(_)) = search.budget {
            return Err(Usage(format!(
                "time is virtual on the model {model}: use a number of measurements, such as \
                 --budget 4000"
            )));
        }
        if search.per_context.is_some_and(|most| most != 1) {
            return Err(Usage(format!(
                "on the model {model} a context runs one thread: leave --per-context out"
            )));
        }
        let workload = self.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD);
        let simulation = self.simulation.windows().of(simulated, workload)?;
        let usual = PlacementRequest::simulated(simulation);
        Ok(PlacementRequest {
            question: search.question(usual.question),
            name: Some(workload.to_owned()),
            cpus: search.cpus.clone(),
            shown_cap: search.cap,
            period: self.window,
            limit: self.limit,
            ..usual
        })
    }

    /// The built-in workload. `None`: the user named a program of their own.
    pub(crate) fn built_in(&self) -> Option<&str> {
        let own = !self.command.is_empty() || self.attached().is_some();
        (!own).then(|| self.workload.as_deref().unwrap_or(DEFAULT_WORKLOAD))
    }

    /// The running program that the user named.
    pub(crate) fn attached(&self) -> Option<Subject> {
        if !self.pid.is_empty() {
            return Some(Subject::Pids(self.pid.iter().map(|pid| pid.0).collect()));
        }
        self.tree
            .map(|pid| Subject::Tree(pid.0))
            .or_else(|| self.cgroup.clone().map(Subject::Cgroup))
    }
}

/// A note if a word of the command has a place for the number of threads. This command puts no
/// number there. Words of awk and xargs may have the same text with another meaning.
fn unfilled_number(command: &[String]) -> Option<String> {
    let asks = |word: &&String| {
        word.ends_with(PlannedNumber::PLACE) && !word.contains([' ', '\n', '(', '"', '\''])
    };
    command.iter().find(asks).map(|word| {
        format!("the program gets '{word}' as it is: only threads and tune put a number there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_for_a_number_reaches_the_program_with_a_note() {
        let of =
            |line: &str| unfilled_number(&line.split('+').map(str::to_owned).collect::<Vec<_>>());
        let note = of("pigz+-p{n}+file").unwrap();
        assert!(note.starts_with("the program gets '-p{n}' as it is"), "{note}");
        assert_eq!(of("awk+{ print n }+file"), None);
        assert_eq!(of("sh+-c+for i in $(seq {n})"), None);
    }
}

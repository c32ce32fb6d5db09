//! The arguments of `pinwise threads`.

use super::calibrate::Calibrate;
use crate::command::place::{fraction, percent, short, time};
use crate::machine::MachineArgument;
use crate::node_arguments::OutlookArguments;
use crate::number_argument::whole;
use crate::output::{Usage, read_input};
use crate::reading_arguments::ReadingArguments;
use crate::store::StoreArguments;
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use pinwise_jobs::{
    HostProgram, ModelledProgram, RUNTIME_METRIC, ReadingOptions, ThreadsMethod, ThreadsProgram,
    ThreadsRequest,
};
use pinwise_present::did_you_mean;
use pinwise_programs::NumberSetter;
use pinwise_scheduler::ModelProgram;
use pinwise_threads::{Objective, ThreadsPerN, Thresholds};
use regex_lite::Regex;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MACHINE: &str = "Use a model, shape or file; see topo";

/// Find how many threads a program should run
///
/// pinwise starts the program briefly with different numbers of threads. The number replaces {n} in
/// its arguments. A probe begins when the worker threads exist and work. At its end pinwise ends
/// everything that it started. It measures speed and how threads spend their time. LOCK is time
/// spent waiting for each other, VCX_RATE voluntary context switches, MIGR_RATE migrations.
/// CPU_UTIL is the program's share of all contexts' time. Then fresh windows compare the number
/// found with --default: they decide.
#[derive(Args)]
#[command(
    mut_arg("machine", |argument| argument.hide_short_help(true).help(MACHINE)),
    after_help = "Examples:
  pinwise threads -- pigz -p {n} -k -c big.file
  pinwise threads --metric 'stdout:fps=([0-9.]+)' -- ./encoder -t {n} movie",
    after_long_help = "Examples:
  pinwise threads -- pigz -p {n} -k -c big.file
  pinwise threads --env OMP_NUM_THREADS -- ./solver input
  pinwise threads --metric 'stdout:fps=([0-9.]+)' -- ./encoder -t {n} movie
  pinwise threads --remove out.xz -- xz -T{n} -k -c -f movie --suffix .xz
  pinwise threads --machine opteron-24 --workload ferret --min 8 --max 72"
)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Threads {
    #[command(subcommand)]
    pub(super) action: Option<ThreadsSubcommand>,
    #[command(flatten)]
    pub(super) asked: NumberArguments,
    #[command(flatten)]
    pub(super) edges: Edges,
    #[command(flatten, next_help_heading = "Target")]
    pub(super) nodes: OutlookArguments,

    #[command(flatten, next_help_heading = "Output")]
    pub(super) store: StoreArguments,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Also print how the threads were watched
    #[arg(long, short, conflicts_with = "json", hide_short_help = true, help_heading = "Output")]
    pub(super) verbose: bool,
}

/// The program, and how its number of threads is searched for.
#[derive(Args, Clone)]
pub(crate) struct NumberArguments {
    /// The program, with {n} for its number. Its input is /dev/null
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
    /// Set n by a variable, such as OMP_NUM_THREADS
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(super) env: Vec<String>,
    /// Change n live by cmd:COMMAND, cpuset: or quota:
    #[arg(long, value_name = "HOW")]
    pub(crate) set: Option<NumberSetter>,
    /// Use a running process, with --set
    #[arg(long, value_name = "PID", requires = "set", conflicts_with_all = ["command", "env"])]
    pub(super) pid: Option<i32>,
    /// Give up numbers below this share of the speed before
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = fraction,
        requires = "set",
        requires = "metric",
        hide_short_help = true
    )]
    pub(super) floor: Option<f64>,
    /// Count threads by a formula, such as 1+4n
    #[arg(long, value_name = "FORMULA", hide_short_help = true)]
    pub(super) threads_per_n: Option<ThreadsPerN>,

    /// Choose how to search
    #[arg(
        long,
        value_enum,
        default_value = "survey",
        help_heading = "Search",
        hide_short_help = true
    )]
    pub(super) method: MethodArgument,
    /// Try at least N threads [default: 1]
    #[arg(long, value_name = "N", help_heading = "Search", hide_short_help = true)]
    pub(super) min: Option<u32>,
    /// Try at most N threads [default: 2 x contexts]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(super) max: Option<u32>,
    /// Try every Nth number [default: 1]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Search")]
    pub(super) step: Option<u32>,
    /// Spend this time [default: 2m, less on a model]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Search")]
    pub(super) budget: Option<Duration>,
    /// Try each number N times in a sweep [default: 3]
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(1..=1000),
        hide_short_help = true,
        help_heading = "Search"
    )]
    pub(super) rounds: Option<u32>,
    /// Accept this loss to use fewer threads
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = percent(ThreadsRequest::WITHIN),
        value_parser = fraction,
        allow_hyphen_values = true,
        help_heading = "Search",
        hide_short_help = true,
    )]
    pub(super) within: f64,
    /// Compare with n = N [default: the CPUs it may use]
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(1..=u64::from(u32::MAX)),
        help_heading = "Search"
    )]
    pub(super) default: Option<u32>,
    /// Minimize time, energy or edp
    #[arg(
        long,
        value_enum,
        default_value = "time",
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Search"
    )]
    pub(crate) objective: ObjectiveArgument,
    /// Measure this long in a probe
    #[arg(
        long,
        alias = "probe",
        value_name = "TIME",
        default_value = short(ThreadsRequest::PROBE),
        value_parser = time,
        help_heading = "Search",
        hide_short_help = true,
    )]
    pub(super) window: Duration,
    /// Read the reinforcer's thresholds from FILE
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Search")]
    pub(super) thresholds: Option<PathBuf>,

    /// Choose the metric; place --help lists them
    #[arg(long, value_name = "METRIC", help_heading = "Progress")]
    pub(crate) metric: Option<String>,
    #[command(flatten, next_help_heading = "Progress")]
    reading: ReadingArguments,
    /// Measure whole runs: their time, or their last value
    #[arg(long, alias = "whole-run", help_heading = "Progress", hide_short_help = true)]
    pub(crate) per_run: bool,
    /// Say how many equal pieces of work a run has
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(1..=1_000_000),
        hide_short_help = true,
        help_heading = "Progress"
    )]
    pub(super) pieces: Option<u32>,

    /// Fail if a start or run takes longer
    #[arg(
        long,
        value_name = "TIME",
        default_value = short(ThreadsRequest::LIMIT),
        value_parser = time,
        hide_short_help = true,
        help_heading = "Target"
    )]
    pub(super) limit: Duration,
    /// End if a probe writes more than this
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1G",
        value_parser = size,
        hide_short_help = true,
        help_heading = "Target"
    )]
    pub(super) most_written: u64,

    #[command(flatten, next_help_heading = "Model")]
    pub(crate) machine: MachineArgument,
    /// Run a program of the paper on it, such as ferret
    #[arg(long, value_name = "NAME", hide_short_help = true, help_heading = "Model")]
    pub(super) workload: Option<String>,
    /// Set the seed of a model
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Model")]
    pub(super) seed: Option<u64>,
}

/// Where a probe begins, and what to do after it.
#[derive(Args, Clone, Default)]
pub(crate) struct Edges {
    /// Begin probes after an output line that matches
    #[arg(
        long,
        value_name = "REGEX",
        value_parser = Regex::new,
        conflicts_with = "pid",
        hide_short_help = true,
        help_heading = "Target"
    )]
    pub(crate) after: Option<Regex>,
    #[command(flatten)]
    pub(crate) files: RunFiles,
}

/// What a run of the program writes.
#[derive(Args, Clone, Default)]
pub(crate) struct RunFiles {
    /// Remove PATH after each run. {n} is the number
    #[arg(long, value_name = "PATH", hide_short_help = true, help_heading = "Target")]
    pub(crate) remove: Vec<PathBuf>,
    /// Write each run's output to FILE. {n} is the number
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "pid",
        hide_short_help = true,
        help_heading = "Target"
    )]
    pub(crate) output: Option<PathBuf>,
}

/// What the command does besides a search.
#[derive(Subcommand)]
pub(super) enum ThreadsSubcommand {
    Calibrate(Calibrate),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveArgument {
    Time,
    Energy,
    Edp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MethodArgument {
    /// fits scalability laws to few probes
    Survey,
    /// raises n by profiles, as published
    Reinforcer,
    /// tries every number several times
    Sweep,
}

impl NumberArguments {
    /// What is asked.
    pub(crate) fn threads_request(&self, edges: &Edges) -> anyhow::Result<ThreadsRequest> {
        let program = match self.machine.machine.as_str() {
            "host" => {
                if self.workload.is_some() || self.seed.is_some() {
                    return Err(Usage(
                        "--workload and --seed need a model: add --machine opteron-24, or name a \
                         program with -- CMD"
                            .into(),
                    )
                    .into());
                }
                ThreadsProgram::Here(self.here(edges))
            }
            machine => ThreadsProgram::Modelled(self.modelled(machine, edges)?),
        };
        let thresholds = self
            .thresholds
            .as_ref()
            .map(|path| {
                read_thresholds(path)
                    .with_context(|| format!("cannot read thresholds from {}", path.display()))
            })
            .transpose()?;
        Ok(ThreadsRequest {
            program,
            method: self.method.into(),
            min: self.min,
            max: self.max,
            step: self.step,
            budget: self.budget,
            rounds: self.rounds,
            within: self.within,
            objective: match self.objective {
                ObjectiveArgument::Time => Objective::Time,
                ObjectiveArgument::Energy => Objective::Energy,
                ObjectiveArgument::Edp => Objective::Edp,
            },
            probe: self.window,
            thresholds,
            pieces: self.pieces,
            per_run: self.per_run || self.times_runs(),
            limit: self.limit,
            most_written: self.most_written,
            default: self.default,
            confirm: true,
            deadline: None,
            on: None,
        })
    }

    /// As `place` names it.
    fn times_runs(&self) -> bool {
        self.metric.as_deref() == Some(RUNTIME_METRIC)
    }

    fn here(&self, edges: &Edges) -> HostProgram {
        HostProgram {
            command: self.command.clone(),
            env: self.env.clone(),
            set: self.set.clone(),
            pid: self.pid,
            floor: self.floor,
            threads_per_n: self.threads_per_n.clone(),
            metric: self.metric.clone().filter(|_| !self.times_runs()),
            reading: self.reading.reading(ReadingOptions::default()),
            after: edges.after.as_ref().map(|regex| regex.as_str().to_owned()),
            remove: edges.files.remove.clone(),
            output: edges.files.output.clone(),
        }
    }

    fn modelled(&self, machine: &str, edges: &Edges) -> anyhow::Result<ModelledProgram> {
        let metric = self.here(edges).named_metric().map_err(usage)?;
        let unusable = [
            (!self.command.is_empty(), "-- CMD"),
            (!self.env.is_empty(), "--env"),
            (self.threads_per_n.is_some(), "--threads-per-n"),
            (metric.is_some(), "--metric"),
            (self.per_run, "--per-run"),
            (self.pieces.is_some(), "--pieces"),
            (self.set.is_some(), "--set"),
            (self.objective != ObjectiveArgument::Time, "--objective"),
            (edges.after.is_some(), "--after"),
            (!edges.files.remove.is_empty(), "--remove"),
            (edges.files.output.is_some(), "--output"),
        ];
        if let Some((_, what)) = unusable.iter().find(|(given, _)| *given) {
            return Err(Usage(format!(
                "{what} needs a program on this machine; the model {machine} has described \
                 programs: --workload NAME"
            ))
            .into());
        }
        let Some(program) = self.workload.clone() else {
            let known: Vec<&str> = ModelProgram::names().collect();
            return Err(Usage(format!(
                "the model {machine} needs a program: add --workload {}",
                known.join("|")
            ))
            .into());
        };
        ModelProgram::built_in(&program).map_err(|error| {
            Usage(format!("{error}{}", did_you_mean(&program, ModelProgram::names())))
        })?;
        let (model, seed) = (self.machine.load()?, self.seed.unwrap_or(1));
        let (machine, description, others) = (machine.to_owned(), None, Vec::new());
        Ok(ModelledProgram { machine, model, program, seed, description, others })
    }
}

impl From<MethodArgument> for ThreadsMethod {
    fn from(method: MethodArgument) -> Self {
        match method {
            MethodArgument::Survey => Self::Survey,
            MethodArgument::Reinforcer => Self::Reinforcer,
            MethodArgument::Sweep => Self::Sweep,
        }
    }
}

fn usage(error: impl std::fmt::Display) -> Usage {
    Usage(error.to_string())
}

/// What counts as high, from a file as `calibrate` writes it.
fn read_thresholds(path: &Path) -> anyhow::Result<Thresholds> {
    let text =
        String::from_utf8(read_input(path)?).map_err(|_| Usage("it is not a text file".into()))?;
    let needed = |error: toml::de::Error| {
        let names = Thresholds::NAMES.join(", ");
        Usage(format!(
            "{}; it needs {names}, each a number above 0: pinwise threads calibrate prints such \
             a file",
            error.message()
        ))
    };
    let thresholds: Thresholds = toml::from_str(&text).map_err(needed)?;
    Ok(thresholds.check().map_err(usage)?)
}

/// `64M`, `1G`, `5000`: bytes, prefixes by powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        _ => return Err("expected a size such as 64M, 1G or 5000".into()),
    };
    let bytes = digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| "expected a size such as 64M, 1G or 5000".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        threads: Threads,
    }

    #[test]
    fn a_request_that_the_library_makes_alone_is_what_the_command_asks() {
        let line = Line::try_parse_from(["threads", "--", "pigz", "-p", "{n}"]).ok().unwrap();
        let command = ["pigz", "-p", "{n}"].map(str::to_owned).to_vec();
        let program = ThreadsProgram::Here(HostProgram { command, ..HostProgram::default() });
        let asked = line.threads.asked.threads_request(&line.threads.edges).unwrap();
        assert_eq!(asked, ThreadsRequest::new(program));
        let window = |name| {
            let line = Line::try_parse_from(["threads", name, "70ms", "--", "pigz"]).ok().unwrap();
            line.threads.asked.window
        };
        assert_eq!(window("--probe"), window("--window"), "the name of the version before");
    }

    #[test]
    fn sizes_have_prefixes() {
        assert_eq!(
            (size("5000"), size("1G"), size("64MiB")),
            (Ok(5000), Ok(1 << 30), Ok(64 << 20))
        );
        for text in ["", "G", "1.5G", "-1", "1X", "0", "99999999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn thresholds_are_all_there_and_above_0() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("thresholds.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_thresholds(&path).map_err(|error| error.to_string())
        };
        let sound = toml::to_string(&Thresholds::OPTERON_24).unwrap();
        assert_eq!(read(&sound), Ok(Thresholds::OPTERON_24));
        let refused = read(&sound.replace("delta_lock = 8.26", "delta_lock = nan")).unwrap_err();
        assert!(refused.starts_with("delta_lock = NaN is not a threshold"), "{refused}");
        let refused = read(&sound.replace("lock = 41.3\n", "")).unwrap_err();
        assert!(
            refused.contains("missing field `lock`; it needs lock, delta_lock, delta_vcx_rate"),
            "{refused}"
        );
    }
}

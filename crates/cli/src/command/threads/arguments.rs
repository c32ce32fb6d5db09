//! What is typed after `pinwise threads`.

use super::calibrate::Calibrate;
use super::usage;
use crate::command::place::{fraction, time};
use crate::machine::MachineArgument;
use crate::number::whole;
use crate::output::Usage;
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use pinwise_linux::Pid;
use pinwise_metric::{Interpretation, MetricOptions, MetricSpec, Pattern};
use pinwise_monitor::{POWERCAP, Power};
use pinwise_programs::Setter;
use pinwise_threads::Formula;
use regex::Regex;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find how many threads a program should run
///
/// The program is started for a moment with one number of threads after another, which takes its
/// place in the arguments. Each probe begins when the worker threads exist and work, and tells how
/// they spend their time: waiting for each other (LOCK), voluntary context switches (VCX_RATE),
/// migrations (MIGR_RATE), and how much of the machine is busy (CPU_UTIL). Every probe is ended
/// with all it has started. docs/method/threads.md explains the search.
#[derive(Args)]
// The parser takes the place of n for the end of a line; an escape sequence without effect, which
// goes where no colours go, keeps it.
#[command(after_help = "Examples:
  pinwise threads -- pigz -p {\x1b[0mn} -k -c big.file
  pinwise threads --env OMP_NUM_THREADS -- ./solver input
  pinwise threads --threads-per-n '2+4n' -- ./pipeline --per-stage {\x1b[0mn}
  pinwise threads --metric 'stdout:fps=([0-9.]+)' -- ./encoder --threads {\x1b[0mn} movie
  pinwise threads --remove out.xz -- xz -T{\x1b[0mn} -k -c -f movie --suffix .xz
  pinwise threads --machine opteron-24 --workload ferret --min 8 --max 72")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Threads {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    #[command(flatten)]
    pub(super) asked: Asked,
    #[command(flatten)]
    pub(super) edges: Edges,

    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

/// Of which program the number is asked, and how it is searched for.
#[derive(Args, Clone)]
pub(crate) struct Asked {
    #[arg(
        last = true,
        value_name = "CMD",
        help = "The program and its arguments, with {\x1b[0mn} where it takes its number of threads; its standard input is empty (/dev/null)"
    )]
    pub(super) command: Vec<String>,
    #[arg(
        long,
        value_name = "NAME[=VALUE]",
        help = "An environment variable that takes the number (OMP_NUM_THREADS), or NAME=VALUE with {\x1b[0mn} in it; may be repeated"
    )]
    pub(super) env: Vec<String>,
    #[arg(
        long,
        value_name = "HOW",
        help = "Change the number while the program runs, instead of starting it anew: cpuset: (the CPUs it may run on), cpuset:DIR or quota:DIR \
                (CPUs or CPU time of a control group), or cmd:COMMAND with {\x1b[0mn} in it"
    )]
    pub(super) set: Option<Setter>,
    /// With --set: a process that runs already; in the end the number that a command has set
    /// stays, limits are as they were
    #[arg(long, value_name = "PID", requires = "set", conflicts_with_all = ["command", "env"])]
    pub(super) pid: Option<i32>,
    /// How many threads it makes for n, where that is not n or a few more: 1+4n, 1+(n-1)
    #[arg(long, value_name = "FORMULA")]
    pub(super) threads_per_n: Option<Formula>,

    /// How the number is found
    #[arg(long, value_enum, default_value = "survey", help_heading = "Search")]
    pub(super) method: Method,
    /// The fewest threads; as --max and --step it counts n itself where each n makes one thread
    /// [default: 1; for the published search --step]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(super) min: Option<u32>,
    /// The most threads [default: twice the contexts the program may use, or what its CPU quota is
    /// worth (for the published search three times that); those of n = 2 at least]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(super) max: Option<u32>,
    /// So many more each time [default: 1; for the published search a third of the contexts, at
    /// least 2]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(super) step: Option<u32>,
    /// All probes of a survey take no longer; of tune, everything together [default: 2m; of a
    /// survey on a model about 4.2 % of the program's run]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Search")]
    pub(super) budget: Option<Duration>,
    /// How often a sweep tries each number [default: 3]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1000), help_heading = "Search")]
    pub(super) rounds: Option<u32>,
    /// Share of the best speed that fewer threads may cost
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = fraction, help_heading = "Search")]
    pub(super) within: f64,
    /// What is to be least; energy and edp (energy times time) take the processor's counters of
    /// energy (RAPL)
    #[arg(long, value_enum, default_value = "time", help_heading = "Search")]
    pub(super) objective: Least,
    /// How long the threads are watched in a probe
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time, help_heading = "Search")]
    pub(super) probe: Duration,
    /// What counts as high for the published search, a file as in docs/method/threads.md [default:
    /// in proportion to the model of the paper's machine]
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub(super) thresholds: Option<PathBuf>,

    /// What its progress is; without one: whole runs where these are short, instructions, or the
    /// time its threads have a CPU
    #[arg(long, value_name = "METRIC", help_heading = "Progress")]
    pub(super) metric: Option<String>,
    /// The number in what the metric delivers: a regular expression with one group
    #[arg(long, value_name = "REGEX", help_heading = "Progress")]
    pub(super) pick: Option<String>,
    /// The number is a growing counter: progress is its rate (otherwise found out)
    #[arg(long, conflicts_with = "gauge", help_heading = "Progress")]
    pub(super) counter: bool,
    /// The number is a plain value: progress is its mean (otherwise found out)
    #[arg(long, help_heading = "Progress")]
    pub(super) gauge: bool,
    /// Lower is better (latency, seconds)
    #[arg(long, help_heading = "Progress")]
    pub(super) lower_is_better: bool,
    /// What to call the unit; of a counter what it counts (chunks is shown as chunks/s)
    #[arg(long, help_heading = "Progress")]
    pub(super) unit: Option<String>,
    /// Let each probe run to its end and take the time (a program that ends within a probe is
    /// measured so anyway)
    #[arg(long, conflicts_with = "metric", help_heading = "Progress")]
    pub(super) whole_run: bool,
    /// Its work comes in so many equal pieces (files, frames, blocks), dealt out to the threads: a
    /// survey then counts how they divide at the end of a run, which no probe of a moment sees
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000_000), help_heading = "Progress")]
    pub(super) pieces: Option<u32>,

    /// How long the initialization may take, and a whole run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, help_heading = "Target")]
    pub(super) limit: Duration,
    /// A probe that writes more to storage is ended and the search with it (64M, 20G)
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size, help_heading = "Target")]
    pub(super) most_written: u64,

    #[command(flatten, next_help_heading = "Model")]
    pub(super) machine: MachineArgument,
    /// On a model: the program, one of those of the Thread Reinforcer paper (ferret, canneal,
    /// ammp, …)
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(super) workload: Option<String>,
    /// On a model: the seed; the same one gives the same search
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(super) seed: Option<u64>,
}

/// Where a probe begins, and what is to be done after it.
#[derive(Args, Clone, Default)]
pub(crate) struct Edges {
    /// A line of the program's output that ends its initialization [default: its threads exist and
    /// work]
    #[arg(long, value_name = "REGEX", value_parser = regex, conflicts_with = "pid", help_heading = "Target")]
    pub(crate) after: Option<Regex>,
    #[command(flatten)]
    pub(crate) files: Files,
}

/// What a run of the program writes.
#[derive(Args, Clone, Default)]
pub(crate) struct Files {
    #[arg(
        long,
        value_name = "PATH",
        help_heading = "Target",
        help = "Remove this file ({\x1b[0mn} in it is the number) after each run that is one measurement; may be repeated"
    )]
    pub(crate) remove: Vec<PathBuf>,
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "pid",
        help_heading = "Target",
        help = "Where the program's standard output goes ({\x1b[0mn} in it is the number), emptied at each run [default: nowhere]"
    )]
    pub(crate) output: Option<PathBuf>,
}

/// What else there is to do than a search.
#[derive(Subcommand)]
pub(super) enum Action {
    Calibrate(Calibrate),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Least {
    Time,
    Energy,
    Edp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Method {
    /// By how fast the program gets on: scalability laws weighed by what was seen, probes where
    /// they tell most
    Survey,
    /// The published one (Thread Reinforcer): rising numbers, by profiles alone
    Reinforcer,
    /// Every number, several times: what searches are judged by
    Sweep,
}

impl Method {
    /// As typed.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Survey => "survey",
            Self::Reinforcer => "reinforcer",
            Self::Sweep => "sweep",
        }
    }
}

impl Asked {
    /// The counters of energy, where the objective takes them.
    pub(super) fn power(&self) -> anyhow::Result<Option<Power>> {
        if self.objective == Least::Time {
            return Ok(None);
        }
        if self.method == Method::Reinforcer {
            return Err(Usage(
                "the published search looks at neither speed nor energy: leave --objective or --method out".into(),
            )
            .into());
        }
        Ok(Some(
            Power::open(Path::new(POWERCAP))
                .context("--objective takes the power of the processor")?,
        ))
    }

    /// The metric, where one is given, and there.
    pub(super) fn metric(&self) -> Result<Option<(MetricSpec, MetricOptions)>, Usage> {
        let metric = self.named_metric()?;
        if let Some((metric, options)) = &metric {
            let running = self.pid.map(|pid| [Pid(pid)]);
            metric.check(options, running.as_ref().map(|pids| &pids[..])).map_err(usage)?;
        }
        Ok(metric)
    }

    /// The metric, where one is given, there or not.
    pub(super) fn named_metric(&self) -> Result<Option<(MetricSpec, MetricOptions)>, Usage> {
        let Some(metric) = &self.metric else {
            let given = [
                (self.pick.is_some(), "--pick"),
                (self.counter || self.gauge, "--counter and --gauge"),
                (self.lower_is_better, "--lower-is-better"),
                (self.unit.is_some(), "--unit"),
            ];
            return match given.iter().find(|(given, _)| *given) {
                Some((_, what)) => {
                    Err(Usage(format!("{what} without a metric to read: add --metric")))
                }
                None => Ok(None),
            };
        };
        let metric: MetricSpec = metric.parse().map_err(usage)?;
        let interpretation = match (self.counter, self.gauge) {
            (true, _) => Some(Interpretation::Counter),
            (_, true) => Some(Interpretation::Value),
            _ => None,
        };
        let options = MetricOptions {
            pick: self.pick.as_ref().map(|text| Pattern::new(text)).transpose().map_err(usage)?,
            interpretation,
            lower_is_better: self.lower_is_better,
            unit: self.unit.clone(),
            ..MetricOptions::default()
        };
        Ok(Some((metric, options)))
    }
}

/// A regular expression, or why it is none in one line: the crate draws the place over several.
fn regex(text: &str) -> Result<Regex, String> {
    let reason = |error: regex::Error| {
        error
            .to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned()
    };
    Regex::new(text).map_err(reason)
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
}

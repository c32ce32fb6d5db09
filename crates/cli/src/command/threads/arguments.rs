//! What is typed after `pinwise threads`.

use super::calibrate::Calibrate;
use super::usage;
use crate::command::place::{fraction, time};
use crate::machine::MachineArgument;
use crate::number::whole;
use crate::output::{Usage, read_input};
use crate::store::StoreArguments;
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use pinwise_jobs::{
    HereProgram, ModelledProgram, Reading, ThreadsMethod, ThreadsProgram, ThreadsRequest,
};
use pinwise_present::did_you_mean;
use pinwise_programs::Setter;
use pinwise_scheduler::Program;
use pinwise_threads::{Formula, Objective, Thresholds};
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

    #[command(flatten, next_help_heading = "Output")]
    pub(super) store: StoreArguments,
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

impl Asked {
    /// What is asked.
    pub(crate) fn threads_request(&self, edges: &Edges) -> anyhow::Result<ThreadsRequest> {
        let program = match self.machine.machine.as_str() {
            "host" => {
                if self.workload.is_some() || self.seed.is_some() {
                    return Err(Usage(
                        "--workload and --seed are for a model: add --machine opteron-24, or give \
                         a program with -- CMD"
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
                Least::Time => Objective::Time,
                Least::Energy => Objective::Energy,
                Least::Edp => Objective::Edp,
            },
            probe: self.probe,
            thresholds,
            pieces: self.pieces,
            whole_run: self.whole_run,
            limit: self.limit,
            most_written: self.most_written,
        })
    }

    fn here(&self, edges: &Edges) -> HereProgram {
        HereProgram {
            command: self.command.clone(),
            env: self.env.clone(),
            set: self.set.clone(),
            pid: self.pid,
            threads_per_n: self.threads_per_n.clone(),
            metric: self.metric.clone(),
            reading: Reading {
                pick: self.pick.clone(),
                counter: if self.counter { Some(true) } else { self.gauge.then_some(false) },
                lower_is_better: self.lower_is_better,
                unit: self.unit.clone(),
            },
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
            (self.whole_run, "--whole-run"),
            (self.pieces.is_some(), "--pieces"),
            (self.set.is_some(), "--set"),
            (self.objective != Least::Time, "--objective"),
            (edges.after.is_some(), "--after"),
            (!edges.files.remove.is_empty(), "--remove"),
            (edges.files.output.is_some(), "--output"),
        ];
        if let Some((_, what)) = unusable.iter().find(|(given, _)| *given) {
            return Err(Usage(format!(
                "{what} is for a program on this machine; on the model {machine} programs are \
                 described: --workload NAME"
            ))
            .into());
        }
        let Some(program) = self.workload.clone() else {
            let known: Vec<&str> = Program::names().collect();
            return Err(Usage(format!(
                "on the model {machine} there is no program yet: add --workload {}",
                known.join("|")
            ))
            .into());
        };
        Program::built_in(&program).map_err(|error| {
            Usage(format!("{error}{}", did_you_mean(&program, Program::names())))
        })?;
        let (model, seed) = (self.machine.load()?, self.seed.unwrap_or(1));
        Ok(ModelledProgram { machine: machine.to_owned(), model, program, seed })
    }
}

impl From<Method> for ThreadsMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::Survey => Self::Survey,
            Method::Reinforcer => Self::Reinforcer,
            Method::Sweep => Self::Sweep,
        }
    }
}

/// What counts as high, from a file as `calibrate` writes it.
fn read_thresholds(path: &Path) -> anyhow::Result<Thresholds> {
    let text = String::from_utf8(read_input(path)?).map_err(|_| Usage("it is no text".into()))?;
    let needed = |error: toml::de::Error| {
        let names = Thresholds::NAMES.join(", ");
        Usage(format!(
            "{}; it needs {names}, each a number above 0: pinwise threads calibrate writes such a \
             file",
            error.message()
        ))
    };
    let thresholds: Thresholds = toml::from_str(&text).map_err(needed)?;
    Ok(thresholds.check().map_err(usage)?)
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
        assert!(refused.starts_with("delta_lock = NaN is no threshold"), "{refused}");
        let refused = read(&sound.replace("lock = 41.3\n", "")).unwrap_err();
        assert!(
            refused.contains("missing field `lock`; it needs lock, delta_lock, delta_vcx_rate"),
            "{refused}"
        );
    }
}

//! [`ProbeOptions`]: which program a prober probes, and how.

use super::{CommandTemplate, NumberSetter};
use crate::run_metric::RunMetric;
use pinwise_linux::thread::Pid;
use pinwise_metric::{MetricOptions, MetricSpec};
use pinwise_monitor::Power;
use regex_lite::Regex;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The program that is probed, and how it gets its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbedProgram {
    /// A program that is restarted with each.
    Anew(CommandTemplate),
    /// A program that is started once, and what changes its parameter while it runs.
    Launched(CommandTemplate, NumberSetter),
    /// A process that already runs. It is left running, with the last parameter that a command set,
    /// or the limits it had.
    Running(Pid, NumberSetter),
}

/// The source of a program's progress.
#[derive(Clone, Debug, Default)]
pub enum ProgressSource {
    /// Instructions if they can be counted, else CPU time.
    #[default]
    Counters,
    /// A metric of the running program.
    Metric(MetricSpec, MetricOptions),
    /// Whole runs: their time, or a number that they print. If several make a probe its profile
    /// is that of the first.
    Runs(RunMetric),
}

impl ProgressSource {
    /// Whether it says what the program is for, not only how much it works.
    pub(super) fn shows_work_done(&self) -> bool {
        matches!(self, Self::Metric(..) | Self::Runs(_))
    }
}

/// How many threads a program makes for its parameter.
pub type ThreadsForN = Box<dyn Fn(u32) -> u32 + Send>;

/// How to probe.
#[derive(Default)]
pub struct ProbeOptions {
    /// The contexts that count as all: those the program may use.
    pub contexts: u32,
    /// The ordinary length of a probe: one window of an [`Effort`](pinwise_measure::Effort).
    pub window: Duration,
    /// Threads it makes for its parameter, if that is known; a constant if the parameter
    /// changes something else.
    pub threads: Option<ThreadsForN>,
    /// A line of its output that ends the initialization.
    pub after: Option<Regex>,
    /// How long the initialization may take, and a whole run.
    pub limit: Duration,
    /// The source of its progress.
    pub progress: ProgressSource,
    /// Files that are removed after each probe.
    pub remove: Vec<PathBuf>,
    /// Bytes that one probe may write to storage, and to one file.
    pub most_written: Option<u64>,
    /// When all probes have to be over: one that is not is broken off.
    pub until: Option<Instant>,
    /// The least speed that a number may have, as a share of the speed before (0.5 for 50 %). A
    /// slower number is given up at once. For a process that runs already, with a metric.
    pub floor: Option<f64>,
    /// The counters of energy to read, if power is asked for.
    pub power: Option<Power>,
}

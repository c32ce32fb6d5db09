//! What a program can be probed with when the number of its threads is the question.

use crate::{MeasureError, Part};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How a program with one number of threads fares within a short window, as the operating system's
/// tools tell it (K. K. Pusukuri et al., "Thread Reinforcer", IISWC 2011, section III).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// LOCK: share of its threads' time spent waiting for locks, condition variables and the like,
    /// in percent.
    pub lock: f64,
    /// VCX_RATE: voluntary context switches of all its threads, per second.
    pub vcx_rate: f64,
    /// MIGR_RATE: how often its threads went on at another context than they ran on last, per
    /// second.
    pub migr_rate: f64,
    /// CPU_UTIL: share of the machine's contexts that were busy, in percent.
    pub cpu_util: f64,
}

/// What a program's progress is told by, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A quantity that says what the program is for: packets, frames, bytes; on a model, work that
    /// is done.
    Metric,
    /// Whole runs: the reciprocal of the time from start to end.
    Runs,
    /// Instructions in user mode. Spinning counts, and so does work that one thread more makes
    /// necessary.
    Instructions,
    /// Seconds on a CPU per second: what is left where nothing else can be read. Spinning and
    /// waiting for memory count as work, so it tells how many contexts are kept busy and never
    /// that more threads make a program slower.
    CpuTime,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metric => "the metric",
            Self::Runs => "whole runs",
            Self::Instructions => "instructions",
            Self::CpuTime => "CPU time",
        })
    }
}

/// How fast a program gets on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Work per second of wall time: higher is better, finite, in a unit that is the same for all
    /// probes of a search.
    pub rate: f64,
    /// Standard error of `rate`, where the probe consists of parts that tell it.
    pub error: Option<f64>,
    /// What was counted.
    pub measure: Measure,
}

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The parameter it was started with.
    pub parameter: u32,
    /// The threads that made.
    pub threads: u32,
    /// What was seen.
    pub profile: Profile,
    /// How fast it got on; `None` where that cannot be told.
    pub progress: Option<Progress>,
    /// Time the probe took, with the program's initialization.
    pub cost: Duration,
}

/// Something that can run a program with any number of threads for a moment and say how it fares.
pub trait Prober {
    /// The contexts it runs on (NumCores).
    fn contexts(&self) -> u32;

    /// Starts the program with `parameter`, lets it initialize, watches it for `window`, ends it.
    fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError>;

    /// Mean power of the machine during the last probe, in watts; `None` where it is not known.
    fn watts(&self) -> Option<f64> {
        None
    }

    /// How the threads of each role spent the last probe's window; empty before the first.
    fn parts(&self) -> Vec<Part>;
}

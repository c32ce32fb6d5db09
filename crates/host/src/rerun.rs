//! A program that runs to its end, started anew for each measurement.

use crate::launch::Launch;
use crate::target::TargetError;
use pinwise_testbed::{Effort, MeasureError, Measurement, Retry, Setting, Testbed, Unit, Workload};
use pinwise_topology::Machine;
use regex::Regex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Which output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What the performance of a whole run is.
#[derive(Clone, Debug)]
pub enum RunMetric {
    /// Wall time from exec to exit, in seconds; less is better.
    Runtime,
    /// The first group of the last match in the output.
    Output {
        /// Where it is printed.
        stream: Stream,
        /// What to look for; has at least one group.
        pattern: Regex,
        /// What the number is.
        unit: Unit,
    },
}

/// How to measure whole runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RerunOptions {
    /// A run that takes longer is ended and fails.
    pub limit: Duration,
}

impl Default for RerunOptions {
    fn default() -> Self {
        Self { limit: Duration::from_secs(600) }
    }
}

/// A program started anew for each measurement, as a testbed.
pub struct RerunTestbed {
    machine: Machine,
    workload: Workload,
    unit: Unit,
}

impl RerunTestbed {
    /// Makes one run to learn the program's threads. Raising `cancelled` ends any run within 20 ms.
    pub fn new(
        _launch: Launch,
        _machine: &Machine,
        _metric: RunMetric,
        _options: RerunOptions,
        _cancelled: Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        Err(MeasureError::new(Retry::Never, "measuring whole runs is not built yet").into())
    }

    /// What the user should know, one line each.
    pub fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Testbed for RerunTestbed {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(&mut self, _setting: &Setting, _effort: Effort) -> Result<Measurement, MeasureError> {
        Err(MeasureError::new(Retry::Never, "measuring whole runs is not built yet"))
    }
}

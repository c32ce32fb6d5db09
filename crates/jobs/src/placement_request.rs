//! [`PlacementRequest`]: the program to place and the question, with every default decided.
//!
//! `place` and `compare` wrap it. It is stored, so that a killed campaign can be resumed.
//!
//! It contains the question of its search, [`PlacementQuestion`]. `threads` has the same as
//! [`crate::ThreadsQuestion::search`]. There a question contains the request: its search can be
//! decided only once the contexts of the program are known.

use crate::error::JobError;
use crate::simulation::SimulationRequest;
use crate::subject::{RUNTIME_METRIC, Subject};
use pinwise_cluster::Nodes;
use pinwise_measure::MemoryPolicy;
use pinwise_metric::{Interpretation, MetricOptions, Pattern};
use pinwise_placement::{PlacementQuestion, StrategyName};
use pinwise_programs::{LiveOptions, RerunOptions};
use pinwise_topology::{Alike, CpuSet};
use pinwise_workloads::BuiltInWorkload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A placement request. Stored with its campaign, read back by `campaign resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementRequest {
    /// The question proper. It is flat, so that a reader can read only the question from the same
    /// document.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub question: PlacementQuestion,
    /// The program.
    pub subject: Subject,
    /// The name of the workload, if that is not the program's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Environment variables it is started with, on top of ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The file for its standard output; `None`: no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// Files that are removed after each run of a program that is restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<PathBuf>,
    /// The metric, as typed after `--metric`.
    pub metric: String,
    /// How the metric is read.
    pub reading: ReadingOptions,
    /// Only threads whose names this regular expression matches.
    #[serde(default)]
    pub include: Option<String>,
    /// No threads whose names this regular expression matches.
    #[serde(default)]
    pub exclude: Option<String>,
    /// The CPUs on which each thread could run when the campaign began, by name. With others, a
    /// resumed campaign could not compare its measurements. Empty for a program that is started
    /// again.
    #[serde(default)]
    pub affinities: BTreeMap<String, CpuSet>,
    /// Only these contexts, as a CPU list.
    pub cpus: Option<String>,
    /// The time of one measurement of a running program, with settling.
    pub period: Duration,
    /// A known limit, in the unit shown. The search gets it as [`PlacementQuestion::cap`], and a
    /// stored request has it there only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_cap: Option<f64>,
    /// Abandon assignments below this fraction of the baseline.
    pub floor: Option<f64>,
    /// A program that is restarted may run this long.
    pub limit: Duration,
    /// Where memory lies while an assignment is measured.
    #[serde(default, skip_serializing_if = "MemoryPolicy::is_leave")]
    pub memory: MemoryPolicy,
    /// The nodes that measure. `None`: this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Nodes>,
    /// A node that differs is put on the common scale. Otherwise it is set aside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scale_nodes: bool,
}

/// The built-in workload if nothing is said.
pub const DEFAULT_WORKLOAD: &str = "hash1_L1:2";

/// The metric of the built-in workloads, read with the program's own clock.
const WORKLOAD_METRIC: &str = r"stdout:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)";

/// The metric of a program on a simulated processor. The model counts it, so nothing reads this
/// name.
const MODEL_METRIC: &str = "packets of the model";

impl PlacementRequest {
    /// The usual [`Self::period`].
    pub const PERIOD: Duration = LiveOptions::WINDOW;
    /// The usual [`Self::limit`].
    pub const LIMIT: Duration = RerunOptions::LIMIT;

    /// The request to place `subject`, whose performance is `metric` (as typed after `--metric`).
    /// Everything else has the defaults of `pinwise place`, the budget included.
    pub fn new(subject: Subject, metric: impl Into<String>) -> Self {
        let mut question =
            PlacementQuestion::new(StrategyName::Auto, subject.usual_budget(StrategyName::Auto));
        let (mut name, mut reading) = (None, ReadingOptions::default());
        match &subject {
            // A context of a model runs one thread. No memory has a place on it before it runs.
            Subject::Simulated(simulation) => {
                name = Some(simulation.workload());
                question.per_context = Some(1);
                question.alike = Alike::ByStructure;
            }
            Subject::BuiltIn(workload) => {
                name = Some(workload.clone());
                reading.counter = Some(true);
                reading.unit = Some("packets/s".into());
            }
            _ => (),
        }
        Self {
            question,
            subject,
            name,
            environment: BTreeMap::new(),
            output: None,
            remove: Vec::new(),
            metric: metric.into(),
            reading,
            include: None,
            exclude: None,
            affinities: BTreeMap::new(),
            cpus: None,
            period: Self::PERIOD,
            shown_cap: None,
            floor: None,
            limit: Self::LIMIT,
            memory: MemoryPolicy::default(),
            on: None,
            scale_nodes: false,
        }
    }

    /// The request to place a command, by `metric` if one is given. Otherwise the run time is the
    /// metric.
    pub fn command(command: Vec<String>, metric: Option<String>) -> Self {
        let metric = metric.unwrap_or_else(|| RUNTIME_METRIC.into());
        Self::new(Subject::command(command, &metric), metric)
    }

    /// The request to place a built-in workload on this machine.
    pub fn built_in(workload: &BuiltInWorkload) -> Self {
        Self::new(Subject::BuiltIn(workload.to_string()), WORKLOAD_METRIC)
    }

    /// The request to place a program on a simulated processor.
    pub fn simulated(simulation: SimulationRequest) -> Self {
        Self::new(Subject::Simulated(simulation), MODEL_METRIC)
    }

    /// The same, with a strategy and the budget that is usual for it.
    pub fn with_strategy(mut self, strategy: StrategyName) -> Self {
        self.question.strategy = strategy;
        self.question.budget = self.subject.usual_budget(strategy);
        self
    }
}

/// A request that takes no time, on a simulated processor.
#[cfg(test)]
pub(crate) fn simulated(
    model: crate::SimulatedProcessor,
    budget: pinwise_placement::Budget,
) -> PlacementRequest {
    let program = "intadd".into();
    let (instances, cycles, starts, others) = (1, 50_000, 1, Vec::new());
    let simulation = SimulationRequest { model, program, instances, cycles, starts, others };
    let mut request = PlacementRequest::simulated(simulation);
    request.question.budget = budget;
    request
}

/// How a metric is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingOptions {
    /// Picks the number from the metric's output.
    pub pick: Option<String>,
    /// The number is a growing counter (true) or a plain value (false); `None` finds out.
    pub counter: Option<bool>,
    /// Lower is better.
    pub lower_is_better: bool,
    /// The name of the unit.
    pub unit: Option<String>,
    /// A prefix behind a number is ignored. Questions from before this field were read so.
    #[serde(default = "before_prefixes")]
    pub as_printed: bool,
}

impl ReadingOptions {
    /// The options of a metric that is read so, and waited for as long as usual.
    pub(crate) fn metric_options(&self) -> Result<MetricOptions, JobError> {
        let pick = self.pick.as_ref().map(|text| Pattern::new(text)).transpose();
        Ok(MetricOptions {
            pick: pick.map_err(JobError::usage)?,
            interpretation: self.counter.map(|counter| {
                if counter { Interpretation::Counter } else { Interpretation::Value }
            }),
            lower_is_better: self.lower_is_better,
            unit: self.unit.clone(),
            as_printed: self.as_printed,
            ..MetricOptions::default()
        })
    }
}

/// The value for a stored question that has none.
fn before_prefixes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_question_that_knows_no_prefixes_reads_numbers_as_they_stand() {
        let now = ReadingOptions::default();
        let mut stored = serde_json::to_value(&now).unwrap();
        assert_eq!(serde_json::from_value::<ReadingOptions>(stored.clone()).unwrap(), now);
        stored.as_object_mut().unwrap().remove("as_printed");
        assert!(serde_json::from_value::<ReadingOptions>(stored).unwrap().as_printed);
    }
}

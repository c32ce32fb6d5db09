//! The program to place and the question about it, with every default decided. `place` and
//! `compare` wrap [`Request`]. It is stored, so that a killed campaign can be resumed.

use crate::error::JobError;
use crate::model::Model;
use pinwise_placement::{Budget, Question, SelectionQuestion, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_topology::CpuSet;
use pinwise_workloads::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A placement request. Stored with its campaign, read back by `campaign resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The question proper; flat, so that whoever wants only the question can read it from the
    /// same document.
    #[serde(flatten)]
    pub question: Question,
    /// The program.
    pub subject: Subject,
    /// What to call the workload, where that is not the program's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Environment variables it is started with, on top of ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Where its standard output goes; `None`: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// Files that are removed after each run of a program that is started anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<PathBuf>,
    /// What performance is, as typed after `--metric`.
    pub metric: String,
    /// How the metric is read.
    pub reading: Reading,
    /// Only threads whose names this regular expression matches.
    #[serde(default)]
    pub include: Option<String>,
    /// No threads whose names this regular expression matches.
    #[serde(default)]
    pub exclude: Option<String>,
    /// On which CPUs the threads could run when the campaign was begun, by name: resumed with
    /// others its measurements would not compare. Empty for a program that is started anew.
    #[serde(default)]
    pub affinities: BTreeMap<String, CpuSet>,
    /// Only these contexts, as a CPU list.
    pub cpus: Option<String>,
    /// One live measurement: settling and window together.
    pub period: Duration,
    /// Abandon assignments below this fraction of the baseline.
    pub floor: Option<f64>,
    /// A program that is started anew may run this long.
    pub limit: Duration,
}

/// Which of the ready programs run together: the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectRequest {
    /// What is chosen.
    #[serde(flatten)]
    pub question: SelectionQuestion,
    /// The ready programs, on a simulated processor.
    pub subject: Subject,
    /// What each instance does alone, in packets/s. Empty in a question: it is measured first, in
    /// parts of the campaign.
    pub alone: Vec<f64>,
    /// Only these contexts, as a CPU list.
    pub cpus: Option<String>,
    /// What to call the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl SelectRequest {
    pub(crate) fn simulation(&self) -> Result<&Simulation, JobError> {
        match &self.subject {
            Subject::Simulated(simulation) => Ok(simulation),
            _ => Err(JobError::Usage(
                "select needs a simulated processor: add --machine ultrasparc-t2".into(),
            )),
        }
    }

    /// The program of every ready instance.
    pub fn names(&self) -> Vec<String> {
        let Subject::Simulated(simulation) = &self.subject else { return Vec::new() };
        let programs = simulation.programs().unwrap_or_default();
        programs.iter().map(|program| program.name().to_owned()).collect()
    }
}

/// The built-in workload where nothing is said.
pub const DEFAULT_WORKLOAD: &str = "hash1_L1:2";

/// What the built-in workloads print, read with the program's own clock.
pub const WORKLOAD_METRIC: &str = r"stdout:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)";

impl Request {
    /// The request to place `subject`, whose performance is `metric` (as typed after `--metric`),
    /// within `budget`. Everything else has its usual value.
    pub fn new(subject: Subject, metric: impl Into<String>, budget: Budget) -> Self {
        Self {
            question: Question::new(StrategyName::Auto, budget),
            subject,
            name: None,
            environment: BTreeMap::new(),
            output: None,
            remove: Vec::new(),
            metric: metric.into(),
            reading: Reading::default(),
            include: None,
            exclude: None,
            affinities: BTreeMap::new(),
            cpus: None,
            period: PERIOD,
            floor: None,
            limit: LIMIT,
        }
    }
}

/// One live measurement, settling included, where nothing is said.
const PERIOD: Duration = Duration::from_millis(50);
/// How long a program that is started anew may run, where nothing is said.
const LIMIT: Duration = Duration::from_secs(60);

/// Where the threads come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A program that is started once and re-pinned while it runs.
    Launched(Vec<String>),
    /// A program that is started anew for each measurement.
    Rerun(Vec<String>),
    /// A built-in workload on this machine, as [`Workload::parse`] reads it: `hash1_L1:2`.
    BuiltIn(String),
    /// Running processes.
    Pids(Vec<i32>),
    /// A running process and all its descendants.
    Tree(i32),
    /// All processes of a cgroup.
    Cgroup(PathBuf),
    /// A program on a simulated processor.
    Simulated(Simulation),
}

impl Subject {
    /// The subject of a stored request. Versions before this one stored the command that launches a
    /// built-in workload, with `program` or another file of its name: a campaign may have been
    /// begun from another folder. Before workloads of several programs there were other words.
    pub(crate) fn of_any_version(self, program: &Path) -> Self {
        let Self::Launched(command) = &self else { return self };
        let Some((own, words)) = command.split_first() else { return self };
        if Path::new(own).file_name() != program.file_name() {
            return self;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let named = match words[..] {
            ["workload", named, "--interval", _] => named.to_owned(),
            ["workload", name, "--instances", count, "--interval", _] => format!("{name}:{count}"),
            _ => return self,
        };
        if Workload::parse(&named).is_ok() { Self::BuiltIn(named) } else { self }
    }
}

/// What is simulated, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulation {
    /// The processor.
    #[serde(flatten)]
    pub model: Model,
    /// The packet program.
    pub program: String,
    /// Its instances, three threads each.
    pub instances: usize,
    /// Cycles of a measurement in which packets are counted.
    pub cycles: u64,
    /// Start offsets that a measurement averages over.
    pub starts: u32,
    /// Programs that run beside, with their instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(String, usize)>,
}

impl Simulation {
    /// The program of every instance; `None` if there is no such program.
    pub fn programs(&self) -> Option<Vec<PacketProgram>> {
        let first = (self.program.clone(), self.instances);
        let instances = |(name, instances): &(String, usize)| {
            Some(vec![PacketProgram::named(name)?; *instances])
        };
        let all =
            std::iter::once(&first).chain(&self.others).map(instances).collect::<Option<Vec<_>>>();
        all.map(|programs| programs.concat())
    }
}

/// A request that takes no time, on a simulated processor.
#[cfg(test)]
pub(crate) fn simulated(model: Model, budget: Budget) -> Request {
    let program = "intadd".into();
    let (instances, cycles, starts, others) = (1, 50_000, 1, Vec::new());
    let simulation = Simulation { model, program, instances, cycles, starts, others };
    Request::new(Subject::Simulated(simulation), "packets", budget)
}

/// How a metric is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Picks the number from the metric's output.
    pub pick: Option<String>,
    /// The number is a growing counter (true) or a plain value (false); `None` finds out.
    pub counter: Option<bool>,
    /// Lower is better.
    pub lower_is_better: bool,
    /// What to call the unit.
    pub unit: Option<String>,
    /// Numbers count as they stand: so they were read when questions did not say it.
    #[serde(default = "before_prefixes")]
    pub as_printed: bool,
}

/// What a stored question that does not say it means.
fn before_prefixes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_question_that_knows_no_prefixes_reads_numbers_as_they_stand() {
        let now = Reading::default();
        let mut stored = serde_json::to_value(&now).unwrap();
        assert_eq!(serde_json::from_value::<Reading>(stored.clone()).unwrap(), now);
        stored.as_object_mut().unwrap().remove("as_printed");
        assert!(serde_json::from_value::<Reading>(stored).unwrap().as_printed);
    }

    #[test]
    fn a_built_in_workload_is_known_by_the_words_that_were_stored_before() {
        let known = |words: &str| {
            let command = Subject::Launched(words.split(' ').map(String::from).collect());
            match command.of_any_version(Path::new("/usr/bin/pinwise")) {
                Subject::BuiltIn(workload) => Some(workload),
                _ => None,
            }
        };
        assert_eq!(
            known("/usr/bin/pinwise workload intadd:2+intmul:1 --interval 10ms"),
            Some("intadd:2+intmul:1".into())
        );
        assert_eq!(
            known("target/pinwise workload hash1_L1 --instances 2 --interval 10ms"),
            Some("hash1_L1:2".into())
        );
        for own in [
            "pinwise workload hash1_L1:2",
            "pinwise workload no:2 --interval 1s",
            "nginx workload hash1_L1:2 --interval 1s",
        ] {
            assert_eq!(known(own), None, "{own}");
        }
    }
}

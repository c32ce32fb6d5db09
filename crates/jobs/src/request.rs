//! The program to place and the question about it, with every default decided. `place` and
//! `compare` wrap [`Request`]. It is stored, so that a killed campaign can be resumed.

use crate::error::JobError;
use crate::model::Model;
use pinwise_placement::{Budget, Question, SelectionQuestion, StrategyName};
use pinwise_processor::Window;
use pinwise_processor::program::PacketProgram;
use pinwise_topology::{Alike, CpuSet};
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

/// How long a run takes, as a metric: the usual one of a command.
pub const RUNTIME: &str = "runtime";

/// What a program on a simulated processor is measured by. The model counts it, so nothing reads
/// this name.
const MODEL_METRIC: &str = "packets of the model";

impl Request {
    /// The usual [`Self::period`].
    pub const PERIOD: Duration = Duration::from_millis(50);
    /// The usual [`Self::limit`].
    pub const LIMIT: Duration = Duration::from_secs(60);

    /// The request to place `subject`, whose performance is `metric` (as typed after `--metric`).
    /// Everything else is as `pinwise place` asks it where nothing else is said, the budget
    /// included.
    pub fn new(subject: Subject, metric: impl Into<String>) -> Self {
        let mut question =
            Question::new(StrategyName::Auto, subject.usual_budget(StrategyName::Auto));
        let (mut name, mut reading) = (None, Reading::default());
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
            floor: None,
            limit: Self::LIMIT,
        }
    }

    /// The request to place a command: by how long it takes, or by `metric` where one is given.
    pub fn command(command: Vec<String>, metric: Option<String>) -> Self {
        let metric = metric.unwrap_or_else(|| RUNTIME.into());
        Self::new(Subject::command(command, &metric), metric)
    }

    /// The request to place a built-in workload on this machine.
    pub fn built_in(workload: &Workload) -> Self {
        Self::new(Subject::BuiltIn(workload.to_string()), WORKLOAD_METRIC)
    }

    /// The request to place a program on a simulated processor.
    pub fn simulated(simulation: Simulation) -> Self {
        Self::new(Subject::Simulated(simulation), MODEL_METRIC)
    }

    /// The same, with a strategy and the budget that is usual for it.
    pub fn with_strategy(mut self, strategy: StrategyName) -> Self {
        self.question.strategy = strategy;
        self.question.budget = self.subject.usual_budget(strategy);
        self
    }
}

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
    /// A command: started anew for each measurement where its run time is measured, else started
    /// once.
    pub fn command(command: Vec<String>, metric: &str) -> Self {
        if metric == RUNTIME { Self::Rerun(command) } else { Self::Launched(command) }
    }

    /// What a search may spend where nothing is said.
    pub fn usual_budget(&self, strategy: StrategyName) -> Budget {
        let seconds = match self {
            Self::Simulated(_) => return Budget::Measurements(4000),
            // An experiment of a profile takes seconds.
            Self::Launched(_) | Self::BuiltIn(_) if strategy == StrategyName::Blackbox => 300,
            Self::BuiltIn(_) => 30,
            Self::Rerun(_) => 300,
            Self::Launched(_) | Self::Pids(_) | Self::Tree(_) | Self::Cgroup(_) => 60,
        };
        Budget::Time(Duration::from_secs(seconds))
    }

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
    /// The programs of a workload on `model`, measured for as long as is usual for them.
    pub fn new(model: Model, workload: &Workload) -> Self {
        let parts = workload.parts().into_iter();
        let mut programs: Vec<(String, usize)> =
            parts.map(|(program, count)| (program.name().to_owned(), count)).collect();
        let (program, instances) = programs.remove(0);
        let usual = Self { model, program, instances, cycles: 0, starts: 0, others: programs };
        // A name that the model does not know is refused when the model is opened.
        let Window { cycles, starts } = Window::of(&usual.known_programs());
        Self { cycles, starts, ..usual }
    }

    /// The programs with their instances, as typed: `hash1_Mem:8`.
    fn workload(&self) -> String {
        let counted = |(name, count): (&String, usize)| format!("{name}:{count}");
        self.counts().map(counted).collect::<Vec<_>>().join("+")
    }

    /// The program of every instance; `None` if there is no such program.
    pub fn programs(&self) -> Option<Vec<PacketProgram>> {
        let all = self.instances().collect::<Option<Vec<_>>>();
        all.map(|programs| programs.concat())
    }

    /// The programs of all instances that the model knows.
    fn known_programs(&self) -> Vec<PacketProgram> {
        self.instances().flatten().flatten().collect()
    }

    fn instances(&self) -> impl Iterator<Item = Option<Vec<PacketProgram>>> {
        self.counts().map(|(name, count)| Some(vec![PacketProgram::named(name)?; count]))
    }

    fn counts(&self) -> impl Iterator<Item = (&String, usize)> {
        let others = self.others.iter().map(|(name, instances)| (name, *instances));
        std::iter::once((&self.program, self.instances)).chain(others)
    }
}

/// A request that takes no time, on a simulated processor.
#[cfg(test)]
pub(crate) fn simulated(model: Model, budget: Budget) -> Request {
    let program = "intadd".into();
    let (instances, cycles, starts, others) = (1, 50_000, 1, Vec::new());
    let simulation = Simulation { model, program, instances, cycles, starts, others };
    let mut request = Request::simulated(simulation);
    request.question.budget = budget;
    request
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

//! The subject of a request: where its threads come from.

use crate::simulated_processor::SimulatedProcessor;
use pinwise_placement::{Budget, StrategyName};
use pinwise_processor::Window;
use pinwise_processor::program::PacketProgram;
use pinwise_workloads::BuiltInWorkload;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a run takes, as a metric: the usual one of a command.
pub const RUNTIME_METRIC: &str = "runtime";

/// The subject: the source of the threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A program that is started once and re-pinned while it runs.
    Launched(Vec<String>),
    /// A program that is started anew for each measurement.
    Rerun(Vec<String>),
    /// A built-in workload on this machine, as [`BuiltInWorkload::parse`] reads it: `hash1_L1:2`.
    BuiltIn(String),
    /// Running processes.
    Pids(Vec<i32>),
    /// A running process and all its descendants.
    Tree(i32),
    /// All processes of a cgroup.
    Cgroup(PathBuf),
    /// A program on a simulated processor.
    Simulated(SimulationRequest),
}

impl Subject {
    /// A command: started anew for each measurement if its run time is measured, else started
    /// once.
    pub fn command(command: Vec<String>, metric: &str) -> Self {
        if metric == RUNTIME_METRIC { Self::Rerun(command) } else { Self::Launched(command) }
    }

    /// The default budget of a search.
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

    /// The subject of a stored request. Earlier versions stored the command that launches a
    /// built-in workload, with `program` or another file of its name, since a campaign may have
    /// begun in another folder. Before workloads of several programs there were other words.
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
        if BuiltInWorkload::parse(&named).is_ok() { Self::BuiltIn(named) } else { self }
    }
}

/// A request for a simulation: the programs, and how long they run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulationRequest {
    /// The processor.
    #[serde(flatten)]
    pub model: SimulatedProcessor,
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

impl SimulationRequest {
    /// The programs of a workload on `model`, measured for as long as is usual for them.
    pub fn new(model: SimulatedProcessor, workload: &BuiltInWorkload) -> Self {
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
    pub(crate) fn workload(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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

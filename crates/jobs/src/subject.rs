//! [`Subject`]: a command, processes, a cgroup, a built-in workload or a simulated program.

use crate::simulation::SimulationRequest;
use pinwise_placement::{Budget, StrategyName};
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
    /// A program that is restarted for each measurement.
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
    /// A command: restarted for each measurement if its run time is measured, else started
    /// once.
    pub fn command(command: Vec<String>, metric: &str) -> Self {
        if metric == RUNTIME_METRIC { Self::Rerun(command) } else { Self::Launched(command) }
    }

    /// Whether the program ran before pinwise did.
    pub(crate) fn runs(&self) -> bool {
        matches!(self, Self::Pids(_) | Self::Tree(_) | Self::Cgroup(_))
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
    /// built-in workload. It begins with `program`, or another file of that name if the campaign
    /// began in another folder. Commands with `--instances` are from before a workload could have
    /// several programs.
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

//! A cluster as its user sees it.

use crate::daemons::Daemons;
use crate::support::{PATIENCE, wait_until};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

pub(crate) const NODES: usize = 4;

pub(crate) struct Cluster {
    pub(crate) daemons: Daemons,
    /// What leads a program to this cluster.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The options that make pinwise use some of its nodes.
    pub(crate) on: fn(usize) -> Vec<String>,
    /// Whether it runs jobs, which `squeue` lists.
    pub(crate) has_jobs: bool,
}

impl Cluster {
    /// A program that finds the cluster.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// What a program says that must succeed.
    pub(crate) fn says(&self, words: &[&str]) -> String {
        let output = self.command(words[0]).args(&words[1..]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {}: {stderr}", output.status);
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// One line for each job: its number, its state and its nodes.
    pub(crate) fn jobs(&self) -> String {
        if self.has_jobs { self.says(&["squeue", "-h", "-o", "%i %t [%N]"]) } else { String::new() }
    }

    /// Waits until nobody uses the cluster: no process is left, and no job.
    pub(crate) fn is_left(&self) {
        wait_until(PATIENCE, "every process and job to end", || {
            self.daemons.in_use().is_empty() && self.jobs().is_empty()
        });
    }
}

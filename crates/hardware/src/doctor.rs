//! What this machine permits and what it lacks, for measuring and moving threads, each with a
//! remedy.
//!
//! Every check reads something, such as a file or the result of a system call. A separate function
//! judges the text or number. Tests run it on recorded ones. *Missing* is what pinwise could use
//! and cannot use here. A *warning* makes measurements worse. pinwise works without it unless the
//! detail says otherwise.

mod machine;
mod noise;
pub(crate) mod permission;
mod system;

use pinwise_topology::Machine;
use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is about, in two or three words.
    pub name: &'static str,
    /// The verdict.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to do, with the command, sysctl or capability; only where something is to be done.
    pub remedy: Option<String>,
}

/// The verdict on one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// In order.
    Ok,
    /// It is there, and makes measurements worse or contexts fewer.
    Warning,
    /// pinwise can use it, and cannot here.
    Missing,
}

impl State {
    /// As shown and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Missing => "missing",
        }
    }
}

impl Check {
    /// Nothing is to be done.
    pub fn is_ok(&self) -> bool {
        self.state == State::Ok
    }

    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Ok, detail: detail.into(), remedy: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warning, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn missing(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Missing, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

/// Runs all checks. Takes about a second, most of it to measure the noise of repeated measurements.
/// Asks `cancelled` at least every 20 ms; if it returns true the result is `None`.
pub fn examine(machine: &Machine, cancelled: &dyn Fn() -> bool) -> Option<Vec<Check>> {
    let mut checks = vec![
        permission::affinity(),
        permission::fifo(),
        permission::capabilities(),
        permission::hardware_counters(),
        permission::software_events(),
        permission::tracefs(),
        permission::bpf(),
        permission::monitor(),
        machine::allowed(machine),
        machine::offline(machine),
        machine::smt(machine),
        system::governor(),
        system::turbo(),
        system::numa_balancing(machine.numa.len()),
        system::quota(),
        system::huge_pages(),
        system::clock(),
        system::load(machine.allowed.len()),
    ];
    checks.extend(noise::checks(&machine.allowed, cancelled)?);
    Some(checks)
}

/// The trimmed text of a small file of the kernel; `None` if it is not there or not readable.
fn read(path: impl AsRef<std::path::Path>) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_looked_at_once_and_every_lack_has_a_remedy() {
        let mut machine = Machine::from_shape("1x1x1").unwrap();
        machine.allowed = pinwise_linux::sys::affinity(0).unwrap();
        let checks = examine(&machine, &|| false).unwrap();
        let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
        assert_eq!(
            names,
            [
                "setting affinity",
                "SCHED_FIFO",
                "capabilities",
                "hardware counters",
                "software events",
                "trace events",
                "eBPF",
                "monitor",
                "allowed contexts",
                "offline contexts",
                "SMT",
                "frequency governor",
                "turbo",
                "NUMA balancing",
                "CPU quota",
                "huge pages",
                "clock source",
                "load",
                "steal time",
                "repeatability",
            ]
        );
        for check in checks {
            assert_eq!(check.is_ok(), check.remedy.is_none(), "{check:?}");
            assert!(!check.detail.is_empty() && !check.detail.contains('\n'), "{check:?}");
            println!("{check:?}");
        }
    }
}

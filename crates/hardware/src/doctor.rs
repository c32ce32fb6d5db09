//! What this machine permits and what it lacks, for measuring and moving threads.
//!
//! Every check reads something, such as a file or the result of a system call. A separate function
//! judges the text or number. Tests run it on recorded ones.

mod counters;
mod finding;
mod machine;
mod noise;
pub(crate) mod permission;
mod system;

pub use finding::{Capability, CountedEvents, Finding, FindingState};
pub use pinwise_counters::{NamedEvent, UncountedEvent, UncountedReason};
pub use pinwise_monitor::Layer;

use pinwise_topology::Machine;

/// Runs all checks. Takes about a second, most of it to measure the noise of repeated measurements.
/// Asks `cancelled` at least every 20 ms; if it returns true the result is `None`.
pub fn examine(machine: &Machine, cancelled: &dyn Fn() -> bool) -> Option<Vec<Finding>> {
    let hardware_counters = permission::events(CountedEvents::Hardware);
    let counters = counters::counters(&hardware_counters);
    let mut findings = vec![
        permission::affinity(),
        permission::fifo(),
        permission::capabilities(),
        hardware_counters,
        permission::events(CountedEvents::Software),
        permission::events(CountedEvents::BranchRecords),
        counters,
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
    findings.extend(noise::checks(&machine.allowed, cancelled)?);
    Some(findings)
}

/// Whether the processor's branch records can be had.
pub fn branch_records() -> Finding {
    permission::events(CountedEvents::BranchRecords)
}

/// The trimmed text of a small file of the kernel; `None` if it is not there or not readable.
fn read(path: impl AsRef<std::path::Path>) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_looked_at_once() {
        let mut machine = Machine::from_shape("1x1x1").unwrap();
        machine.allowed = pinwise_linux::sys::affinity(0).unwrap();
        let findings = examine(&machine, &|| false).unwrap();
        let names: Vec<&str> = findings.iter().map(Finding::name).collect();
        assert_eq!(
            names,
            [
                "setting affinity",
                "SCHED_FIFO",
                "capabilities",
                "hardware counters",
                "software events",
                "branch records",
                "counters",
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
        findings.iter().for_each(|finding| println!("{finding:?}"));
    }
}

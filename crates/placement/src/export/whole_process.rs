//! Syntaxes that pin whole processes: taskset, numactl, systemd and the like.

use super::{Export, ExportNote, joined};
use crate::{Plan, PlannedMemory};
use pinwise_measure::MemoryPolicy;

/// The text for the CPUs of all threads, with a note if the threads have different ones.
fn whole(
    plan: &Plan,
    text: impl FnOnce(&pinwise_topology::CpuSet) -> String,
) -> Result<Export, String> {
    let all = plan.cpus();
    let differ = plan.threads.iter().any(|thread| thread.cpus != all);
    let notes = differ.then_some(ExportNote::WholeProcess).into_iter().collect();
    Ok(Export { text: text(&all), notes })
}

pub(super) fn cpulist(plan: &Plan) -> Result<Export, String> {
    whole(plan, |cpus| format!("{cpus}\n"))
}

pub(super) fn mask(plan: &Plan) -> Result<Export, String> {
    whole(plan, |cpus| format!("{}\n", cpus.to_mask()))
}

pub(super) fn hwloc(plan: &Plan) -> Result<Export, String> {
    whole(plan, |cpus| format!("{}\n", cpus.to_hwloc()))
}

/// taskset(1).
pub(super) fn taskset(plan: &Plan) -> Result<Export, String> {
    whole(plan, |cpus| format!("taskset -c {cpus}\n"))
}

/// The formats that also say where memory lies.
pub(super) const SAY_MEMORY: [&str; 2] = ["numactl", "systemd"];

/// The memory of a plan in the words of numactl and systemd: the policy, and its nodes if it takes
/// any. Threads on several nodes have their memory where they touch it first.
fn memory(plan: &Plan) -> Option<(&'static str, Option<String>)> {
    let PlannedMemory { policy, nodes } = plan.memory.as_ref()?;
    let list = joined(&nodes.iter().copied().collect::<Vec<_>>(), ",");
    match policy {
        MemoryPolicy::Leave => None,
        MemoryPolicy::Interleave => Some(("interleave", Some(list))),
        MemoryPolicy::Follow if nodes.len() == 1 => Some(("preferred", Some(list))),
        MemoryPolicy::Follow => Some(("local", None)),
    }
}

/// numactl(8).
pub(super) fn numactl(plan: &Plan) -> Result<Export, String> {
    let memory = match memory(plan) {
        Some((policy, Some(nodes))) => format!(" --{policy}={nodes}"),
        Some(_) => " --localalloc".to_owned(),
        None => String::new(),
    };
    whole(plan, |cpus| format!("numactl --physcpubind={cpus}{memory}\n"))
}

/// systemd.exec(5): lists of numbers and ranges.
pub(super) fn systemd(plan: &Plan) -> Result<Export, String> {
    let memory = memory(plan).map(|(policy, nodes)| {
        let mask = nodes.map(|nodes| format!("NUMAMask={nodes}\n")).unwrap_or_default();
        format!("NUMAPolicy={policy}\n{mask}")
    });
    let memory = memory.unwrap_or_default();
    whole(plan, |cpus| format!("[Service]\nCPUAffinity={cpus}\n{memory}"))
}

/// systemd.resource-control(5): the cpuset of the unit's cgroup (version 2).
pub(super) fn systemd_cpuset(plan: &Plan) -> Result<Export, String> {
    whole(plan, |cpus| format!("[Service]\nAllowedCPUs={cpus}\n"))
}

/// The kernel's Documentation/admin-guide/cgroup-v2.rst, section cpuset.
pub(super) fn cgroup(plan: &Plan) -> Result<Export, String> {
    whole(plan, |cpus| {
        format!(
            "# As root, with CGROUP the directory of the program's cgroup below /sys/fs/cgroup:\n\
             echo +cpuset > \"$(dirname \"$CGROUP\")/cgroup.subtree_control\"\n\
             echo {cpus} > \"$CGROUP/cpuset.cpus\"\n"
        )
    })
}

/// GameMode's example/gamemode.ini. GameMode pins to no fewer than 4 CPUs. It reads a lone 0 or 1
/// as no or yes (daemon/gamemode-cpu.c of 1.8, which brought `pin_cores`).
pub(super) fn gamemode(plan: &Plan) -> Result<Export, String> {
    let cpus = plan.cpus();
    if cpus.len() < 4 {
        return Err(format!(
            "GameMode pins to no fewer than 4 CPUs, and the plan uses {cpus}; use taskset"
        ));
    }
    whole(plan, |cpus| format!("[cpu]\npin_cores={cpus}\n"))
}

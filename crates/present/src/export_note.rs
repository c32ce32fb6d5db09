//! What a pinning syntax does not say of a plan.

use crate::note::tagged;
use pinwise_placement::{ExportNote, LeftOutBy};
use serde_json::Value;

/// A note of an export, as text that begins small and has no full stop.
pub fn export_note(note: &ExportNote) -> String {
    match note {
        ExportNote::WholeProcess => {
            "this pins the process, not each thread: use --to script or `pinwise apply` for that"
                .to_owned()
        }
        ExportNote::WholeInstances { instance } => format!(
            "an instance is a {instance}: each of its threads may run on all CPUs of the instance"
        ),
        ExportNote::LeftOut { by, threads } => {
            let why = match by {
                LeftOutBy::Dpdk => "they are not lcores",
                LeftOutBy::Suricata => "Suricata has no CPU set for them",
                LeftOutBy::Vpp => "VPP pins its main thread and workers",
            };
            format!("left out, {why}: {}", threads.join(" "))
        }
        ExportNote::NoFirstThread { lcore } => format!(
            "the program's first thread is not in the plan: lcore {lcore} may run on all its CPUs"
        ),
        ExportNote::TeamInOrder => {
            "check that the plan's threads are the OpenMP team, in its order: 0 is the program's \
             first"
                .to_owned()
        }
        ExportNote::AllThreadsInOrder => {
            "likwid-pin pins every thread in order of creation: skip those not in the plan with -s \
             MASK"
                .to_owned()
        }
        ExportNote::CpusByScheduler { cpus } => {
            format!("scx_layered decides itself which {cpus} CPUs it gives to the layer")
        }
        ExportNote::CpusInTurn { set, cpus } => format!(
            "{set}: Suricata gives CPUs {cpus} to threads in ascending order, unlike the plan"
        ),
        ExportNote::WorkersByCore { cpus } => {
            let order: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
            format!(
                "VPP numbers workers by core, the plan has them on CPU {}: set interface \
                 rx-placement",
                order.join(", ")
            )
        }
        ExportNote::MemoryLeftOut { policy } => format!(
            "the memory policy {} is left out: use numactl, systemd or pinwise run",
            policy.name()
        ),
        ExportNote::ForNumber { n } => {
            format!("this holds for n = {n}: start the program with it")
        }
    }
}

/// As [`export_note`], each with its kind and values.
pub fn tagged_export_notes(notes: &[ExportNote]) -> Vec<Value> {
    notes.iter().map(|note| tagged(note, export_note(note))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn threads_that_a_tool_cannot_pin_are_named_with_the_reason() {
        let threads = vec!["telemetry-v2".to_owned(), "log".to_owned()];
        let note = ExportNote::LeftOut { by: LeftOutBy::Dpdk, threads };
        assert_eq!(
            tagged_export_notes(&[note]),
            [json!({
                "kind": "left_out",
                "by": "dpdk",
                "threads": ["telemetry-v2", "log"],
                "text": "left out, they are not lcores: telemetry-v2 log",
            })]
        );
    }
}

//! Suricata: the `threading` section of suricata.yaml. Threads are called `W#01` (workers), `RX#01`
//! (receive), `TX#00` (verdict), and `FM#01`, `FR#01`, `CW`, `CS`, `US` (management).
//!
//! In mode `exclusive` each thread of a kind gets one CPU of its set, in ascending order. It begins
//! again with the first if CPUs run out. In mode `balanced` every thread may run on all of the set
//! (src/util-affinity.c of 7.0.10). The sets are written as a list, which Suricata reads up to
//! version 8. Version 8 warns that version 9 will require a map.

use super::{Export, ExportNote, LeftOutBy, left_out, union};
use crate::{Plan, PlannedThread};
use pinwise_topology::CpuSet;
use std::fmt::Write;

/// Cpu set, and how the names of its threads begin.
const SETS: [(&str, &[&str]); 4] = [
    ("management-cpu-set", &["FM#", "FR#", "CW", "CS", "US"]),
    ("receive-cpu-set", &["RX#"]),
    ("worker-cpu-set", &["W#"]),
    ("verdict-cpu-set", &["TX#"]),
];

pub(super) fn suricata(plan: &Plan) -> Result<Export, String> {
    let of = |prefixes: &[&str]| -> Vec<&PlannedThread> {
        plan.threads
            .iter()
            .filter(|t| prefixes.iter().any(|prefix| t.name.starts_with(prefix)))
            .collect()
    };
    if of(&["W#"]).is_empty() {
        return Err(
            "it has no worker thread called W#NN, so this is not Suricata; use script".into()
        );
    }
    let mut text = String::from("threading:\n  set-cpu-affinity: yes\n  cpu-affinity:\n");
    let mut notes = Vec::new();
    let mut known = Vec::new();
    for (set, prefixes) in SETS {
        let threads = of(prefixes);
        if threads.is_empty() {
            continue;
        }
        let cpus = union(threads.iter().copied());
        let mode =
            if threads.iter().all(|thread| thread.cpus == cpus) { "balanced" } else { "exclusive" };
        if mode == "exclusive" && !in_turn(&cpus, &threads) {
            notes.push(ExportNote::CpusInTurn { set, cpus: cpus.clone() });
        }
        let items: Vec<String> =
            cpus.to_string().split(',').map(|item| format!("\"{item}\"")).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "    - {set}:\n        cpu: [ {} ]\n        mode: \"{mode}\"\n",
            items.join(", ")
        );
        if set == "worker-cpu-set" {
            let _ = writeln!(text, "        threads: {}", threads.len());
        }
        known.extend(threads);
    }
    let rest: Vec<&PlannedThread> =
        plan.threads.iter().filter(|thread| !known.contains(thread)).collect();
    notes.extend(left_out(&rest, LeftOutBy::Suricata));
    Ok(Export { text, notes })
}

/// Whether the threads are on `cpus` one after the other.
fn in_turn(cpus: &CpuSet, threads: &[&PlannedThread]) -> bool {
    let cpus: Vec<_> = cpus.iter().collect();
    threads
        .iter()
        .zip(cpus.iter().cycle())
        .all(|(thread, cpu)| thread.cpus == [*cpu].into_iter().collect())
}

//! Suricata: the `threading` section of suricata.yaml. Threads are called `W#01` (workers), `RX#01` (receive), `TX#00` (verdict), and
//! `FM#01`, `FR#01`, `CW`, `CS` (management).
//!
//! Suricata hands the CPUs of a set to the threads of that kind one after the other, in ascending order.

use super::{Export, left_out, union};
use crate::{Plan, PlannedThread};
use std::fmt::Write;

/// Cpu set, and how the names of its threads begin.
const SETS: [(&str, &[&str]); 4] = [
    ("management-cpu-set", &["FM#", "FR#", "CW", "CS", "US", "Suricata-Main"]),
    ("receive-cpu-set", &["RX#"]),
    ("worker-cpu-set", &["W#"]),
    ("verdict-cpu-set", &["TX#"]),
];

pub(super) fn suricata(plan: &Plan) -> Result<Export, String> {
    let of = |prefixes: &[&str]| -> Vec<&PlannedThread> {
        plan.threads.iter().filter(|t| prefixes.iter().any(|prefix| t.name.starts_with(prefix))).collect()
    };
    let workers = of(&["W#"]);
    if workers.is_empty() {
        return Err("it has no worker thread called W#NN, so this is not Suricata; use script".into());
    }
    let mut text = String::from("threading:\n  set-cpu-affinity: yes\n  cpu-affinity:\n");
    let mut notes = Vec::new();
    for (set, prefixes) in SETS {
        let threads = of(prefixes);
        if threads.is_empty() {
            continue;
        }
        let cpus = union(threads.iter().copied());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {set}:\n      cpu: [ \"{cpus}\" ]");
        if set == "worker-cpu-set" {
            let _ = writeln!(text, "      mode: \"exclusive\"\n      threads: {}", threads.len());
        }
        if cpus.len() != threads.len() || threads.iter().any(|thread| thread.cpus.len() != 1) {
            notes.push(format!("{set}: Suricata hands out its CPUs in turn; the plan has several threads on one, or several CPUs for one"));
        } else if !threads.iter().map(|thread| thread.cpus.first()).is_sorted() {
            notes.push(format!("{set}: Suricata hands out its CPUs in ascending order, the plan has another"));
        }
    }
    let known = |thread: &&PlannedThread| {
        SETS.iter().any(|(_, prefixes)| prefixes.iter().any(|prefix| thread.name.starts_with(prefix)))
    };
    let rest: Vec<&PlannedThread> = plan.threads.iter().filter(|thread| !known(thread)).collect();
    notes.extend(left_out(&rest, "Suricata has no CPU set for them"));
    Ok(Export { text, notes })
}

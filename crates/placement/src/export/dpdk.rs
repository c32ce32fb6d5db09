//! DPDK's environment abstraction layer: `--lcores id@cpus,…` (EAL parameters, `-l/--lcores`).
//!
//! Worker threads carry the number of their lcore in their name (`rte-worker-3`, before DPDK 23.03
//! `lcore-worker-3`). The program's first thread is the main lcore.

use super::{Export, ExportNote, LeftOutBy, left_out, number_after};
use crate::{Plan, PlannedThread};
use pinwise_topology::CpuSet;

/// RTE_MAX_LCORE as Debian and the default build configure it.
const MAX_LCORE: usize = 128;

pub(super) fn dpdk(plan: &Plan) -> Result<Export, String> {
    let number = |thread: &PlannedThread| {
        ["rte-worker-", "lcore-worker-", "lcore-slave-"]
            .iter()
            .find_map(|prefix| number_after(&thread.name, prefix))
    };
    let mut lcores: Vec<(usize, &CpuSet)> =
        plan.threads.iter().filter_map(|t| Some((number(t)?, &t.cpus))).collect();
    if lcores.is_empty() {
        return Err(
            "it has no thread called rte-worker-N, so it is not a DPDK program; use script".into(),
        );
    }
    let main = (0..).find(|id| lcores.iter().all(|(taken, _)| taken != id)).unwrap_or(0);
    if let Some((id, _)) = lcores
        .iter()
        .find(|(id, _)| *id >= MAX_LCORE)
        .or(lcores.first().filter(|_| main >= MAX_LCORE))
    {
        return Err(format!("lcore {id} leaves no number below {MAX_LCORE} (RTE_MAX_LCORE)"));
    }
    let others: Vec<&PlannedThread> =
        plan.threads.iter().filter(|thread| number(thread).is_none()).collect();
    // A comm has at most 15 bytes.
    let program = plan
        .program
        .split_ascii_whitespace()
        .next()
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or("");
    let is_main = |thread: &&&PlannedThread| {
        !thread.name.is_empty() && program.starts_with(thread.name.as_str())
    };
    let all = plan.cpus();
    let mut notes = Vec::new();
    let first = others.iter().find(is_main).copied();
    lcores.push((main, first.map_or(&all, |thread| &thread.cpus)));
    if first.is_none() {
        notes.push(ExportNote::NoFirstThread { lcore: main });
    }
    lcores.sort_unstable_by_key(|(id, _)| *id);
    let rest: Vec<&PlannedThread> =
        others.into_iter().filter(|thread| Some(*thread) != first).collect();
    notes.extend(left_out(&rest, LeftOutBy::Dpdk));
    let texts: Vec<String> =
        lcores.iter().map(|(id, cpus)| format!("{id}@{}", group(cpus))).collect();
    Ok(Export { text: format!("--lcores '{}' --main-lcore {main}\n", texts.join(",")), notes })
}

/// One CPU, or several in parentheses.
fn group(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { cpus.to_string() } else { format!("({cpus})") }
}

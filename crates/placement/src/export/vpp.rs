//! VPP: `main-core` and `corelist-workers` of startup.conf. Threads are called `vpp_main` and
//! `vpp_wk_0`, `vpp_wk_1`, …
//!
//! VPP gives its workers the cores of the list in ascending order, one each.

use super::{Export, ExportNote, LeftOutBy, left_out, number_after, only_cpu};
use crate::{Plan, PlannedThread};
use pinwise_topology::{CpuId, CpuSet};

pub(super) fn vpp(plan: &Plan) -> Result<Export, String> {
    let is_worker = |thread: &&PlannedThread| number_after(&thread.name, "vpp_wk_").is_some();
    let mut workers: Vec<&PlannedThread> = plan.threads.iter().filter(is_worker).collect();
    if workers.is_empty() {
        return Err("it has no thread called vpp_wk_N, so this is not VPP; use script".into());
    }
    workers.sort_by_key(|thread| number_after(&thread.name, "vpp_wk_"));
    let cpus = workers.iter().map(|thread| only_cpu(thread)).collect::<Result<Vec<CpuId>, _>>()?;
    let cores: CpuSet = cpus.iter().copied().collect();
    if cores.len() < cpus.len() {
        return Err("two workers are on one CPU, VPP gives each its own; use script".into());
    }
    let mut notes = Vec::new();
    if !cpus.is_sorted() {
        notes.push(ExportNote::WorkersByCore { cpus });
    }
    let main = plan.threads.iter().find(|thread| thread.name == "vpp_main");
    let main_core = main
        .map(only_cpu)
        .transpose()?
        .map(|cpu| format!("  main-core {}\n", cpu.0))
        .unwrap_or_default();
    let rest: Vec<&PlannedThread> =
        plan.threads.iter().filter(|thread| !is_worker(thread) && Some(*thread) != main).collect();
    notes.extend(left_out(&rest, LeftOutBy::Vpp));
    Ok(Export { text: format!("cpu {{\n{main_core}  corelist-workers {cores}\n}}\n"), notes })
}

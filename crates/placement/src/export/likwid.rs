//! likwid-pin: physical CPU numbers in the order in which the program creates its threads.
//!
//! likwid-pin takes every CPU of its list once, even if the list repeats it. If more threads come
//! than the list has CPUs, it starts again at the first (seen with likwid 5.2). So it can say
//! 1,0,1,0 and cannot say 1,1,0.

use super::{Export, ExportNote, cpus_in_order, joined};
use crate::Plan;
use pinwise_topology::CpuId;

pub(super) fn likwid(plan: &Plan) -> Result<Export, String> {
    if let Some(missing) = missing(plan) {
        return Err(format!(
            "likwid-pin pins threads in the order of creation, and the plan has no '{missing}': \
             the later ones would get its CPUs; use script, or pinwise run"
        ));
    }
    let mut cpus: Vec<u32> = Vec::new();
    for cpu in cpus_in_order(plan)? {
        if !cpus.contains(&cpu) {
            cpus.push(cpu);
        }
    }
    let list = joined(&cpus, ",");
    let mut in_turn = plan.threads.iter().zip(cpus.iter().cycle());
    if let Some((thread, _)) =
        in_turn.find(|(thread, cpu)| thread.cpus.first() != Some(CpuId(**cpu)))
    {
        return Err(format!(
            "likwid-pin gives CPUs {list} to the threads in turn, and '{}' would not get CPU {}; \
             use script",
            thread.name, thread.cpus
        ));
    }
    let notes = vec![ExportNote::AllThreadsInOrder];
    Ok(Export { text: format!("likwid-pin -c {list}\n"), notes })
}

/// The first thread that was created before one of the plan, by their names, and is not in it. It
/// is `pigz#1` if there are `pigz#0` and `pigz#2`.
fn missing(plan: &Plan) -> Option<String> {
    let has = |name: &str| plan.threads.iter().any(|thread| thread.name == name);
    plan.threads.iter().find_map(|thread| {
        let (comm, suffix) = thread.name.rsplit_once('#')?;
        let order: usize = suffix.parse().ok()?;
        if order.to_string() != suffix {
            // Suricata itself calls a thread `W#01`.
            return None;
        }
        (0..order).map(|earlier| format!("{comm}#{earlier}")).find(|earlier| !has(earlier))
    })
}

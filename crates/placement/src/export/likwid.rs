//! likwid-pin: physical CPU numbers in the order in which the program creates its threads.
//!
//! likwid-pin takes every CPU of its list once, even if the list repeats it. If more threads come
//! than the list has CPUs, it starts again at the first (seen with likwid 5.2). So it can say
//! 1,0,1,0 and cannot say 1,1,0.

use super::{Export, ExportNote, check_order, cpus_in_order, joined};
use crate::Plan;
use pinwise_topology::CpuId;

pub(super) fn likwid(plan: &Plan) -> Result<Export, String> {
    check_order(plan, "likwid-pin")?;
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

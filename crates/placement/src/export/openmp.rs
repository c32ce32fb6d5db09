//! OpenMP runtimes: a list of places in the order of the team's threads.

use super::{Export, ExportNote, check_order, cpus_in_order, joined};
use crate::{Plan, PlannedThread};

/// OpenMP 5.2, chapter 21: thread i of the team gets place i when there are as many places as
/// threads.
pub(super) fn openmp(plan: &Plan) -> Result<Export, String> {
    check_order(plan, "the OpenMP runtime")?;
    let place = |thread: &PlannedThread| format!("{{{}}}", joined(&numbers(thread), ","));
    let places: Vec<String> = plan.threads.iter().map(place).collect();
    let text = format!(
        "export OMP_PLACES='{}'\nexport OMP_PROC_BIND=close\nexport OMP_NUM_THREADS={}\n",
        places.join(","),
        plan.threads.len()
    );
    Ok(Export { text, notes: vec![ExportNote::TeamInOrder] })
}

/// GCC's libgomp manual, section 4.
pub(super) fn gomp(plan: &Plan) -> Result<Export, String> {
    check_order(plan, "the OpenMP runtime")?;
    let cpus = joined(&cpus_in_order(plan)?, " ");
    let threads = plan.threads.len();
    let text = format!("export GOMP_CPU_AFFINITY='{cpus}'\nexport OMP_NUM_THREADS={threads}\n");
    Ok(Export { text, notes: vec![ExportNote::TeamInOrder] })
}

/// LLVM/OpenMP runtime references, KMP_AFFINITY: `proclist` counts with `explicit`; a set of CPUs
/// is in braces.
pub(super) fn kmp(plan: &Plan) -> Result<Export, String> {
    check_order(plan, "the OpenMP runtime")?;
    let places: Vec<String> = plan
        .threads
        .iter()
        .map(|thread| match numbers(thread).as_slice() {
            [cpu] => cpu.to_string(),
            several => format!("{{{}}}", joined(several, ",")),
        })
        .collect();
    let text = format!(
        "export KMP_AFFINITY='granularity=fine,proclist=[{}],explicit'\nexport \
         OMP_NUM_THREADS={}\n",
        places.join(","),
        places.len()
    );
    Ok(Export { text, notes: vec![ExportNote::TeamInOrder] })
}

fn numbers(thread: &PlannedThread) -> Vec<u32> {
    thread.cpus.iter().map(|cpu| cpu.0).collect()
}

//! Slurm and MPI, which pin one process per instance: a task of Slurm, a rank of MPI.

use super::{Export, ExportNote, union};
use crate::Plan;
use pinwise_topology::CpuSet;
use std::fmt::Write;

/// The CPUs of every instance, for launchers that call an instance `what`. A note says if its
/// threads have different ones.
fn instances(plan: &Plan, what: &'static str) -> Result<(Vec<CpuSet>, Vec<ExportNote>), String> {
    let mut sets: Vec<CpuSet> = Vec::new();
    // An instance that is missing ends the search, however large the numbers of those after it are.
    while sets.len() <= plan.threads.iter().map(|thread| thread.instance).max().unwrap_or(0) {
        let instance = sets.len();
        let cpus = union(plan.threads.iter().filter(|thread| thread.instance == instance));
        if cpus.is_empty() {
            return Err(format!(
                "it has no thread of instance {instance}, and every {what} needs its CPUs; use \
                 script"
            ));
        }
        sets.push(cpus);
    }
    let alike = plan.threads.iter().all(|thread| thread.cpus == sets[thread.instance]);
    let note = ExportNote::WholeInstances { instance: what };
    Ok((sets, (!alike).then_some(note).into_iter().collect()))
}

/// srun(1), `--cpu-bind`: masks use the kernel's numbers, and need a whole node (salloc
/// `--exclusive`). With `--overcommit` tasks may share CPUs.
pub(super) fn slurm(plan: &Plan) -> Result<Export, String> {
    let (sets, notes) = instances(plan, "task")?;
    let masks: Vec<String> = sets.iter().map(CpuSet::to_mask).collect();
    let text = format!(
        "salloc --nodes=1 --exclusive srun --overcommit --ntasks={} --cpu-bind=mask_cpu:{}\n",
        masks.len(),
        masks.join(",")
    );
    Ok(Export { text, notes })
}

/// mpirun(1) of Open MPI 4, section Rankfiles. A physical rankfile counts as the kernel does;
/// without `--use-hwthread-cpus` a rank gets the whole core of each CPU.
pub(super) fn rankfile(plan: &Plan) -> Result<Export, String> {
    let (sets, notes) = instances(plan, "rank")?;
    let mut text =
        "# mpirun --use-hwthread-cpus --mca rmaps_rank_file_physical 1 --rankfile FILE PROGRAM\n"
            .to_owned();
    for (rank, cpus) in sets.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "rank {rank}=localhost slot={cpus}");
    }
    Ok(Export { text, notes })
}

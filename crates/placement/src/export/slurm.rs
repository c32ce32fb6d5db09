//! Slurm: `srun --cpu-bind=mask_cpu:…`, one mask per task. An instance of the program is a task.

use super::{Export, union};
use crate::Plan;

pub(super) fn slurm(plan: &Plan) -> Result<Export, String> {
    let instances = plan.threads.iter().map(|thread| thread.instance + 1).max().unwrap_or(0);
    let masks: Vec<_> =
        (0..instances).map(|instance| union(plan.threads.iter().filter(|t| t.instance == instance))).collect();
    if let Some(missing) = masks.iter().position(|cpus| cpus.is_empty()) {
        return Err(format!("it has no thread of instance {missing}, and every task needs a mask; use script"));
    }
    let alike = plan.threads.iter().all(|thread| thread.cpus == masks[thread.instance]);
    let note = "Slurm pins tasks: every thread of an instance may run on all CPUs of the instance";
    let texts: Vec<String> = masks.iter().map(|cpus| cpus.to_mask()).collect();
    Ok(Export {
        text: format!("srun --ntasks={instances} --cpu-bind=mask_cpu:{}\n", texts.join(",")),
        notes: (!alike).then(|| note.to_owned()).into_iter().collect(),
    })
}

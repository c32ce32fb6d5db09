//! For other programs: every thread with its CPUs in the three forms that tools read.

use super::Export;
use crate::Plan;
use serde_json::json;

pub(super) fn json(plan: &Plan) -> Result<Export, String> {
    let threads: Vec<_> = plan
        .threads
        .iter()
        .map(|thread| {
            json!({
                "name": thread.name,
                "role": thread.role,
                "instance": thread.instance,
                "cpus": thread.cpus.to_string(),
                "mask": thread.cpus.to_mask(),
                "hwloc": thread.cpus.to_hwloc(),
            })
        })
        .collect();
    let document =
        json!({ "program": plan.program, "topology": plan.machine.topology, "threads": threads });
    Ok(Export { text: format!("{document:#}\n"), notes: Vec::new() })
}

//! scx_layered, a sched_ext scheduler: a layer for the program, confined to as many CPUs as the
//! plan uses. The last layer of a configuration must be for everything else (README of
//! scx_layered).

use super::{Export, ExportNote};
use crate::Plan;
use serde_json::json;

pub(super) fn scx_layered(plan: &Plan) -> Result<Export, String> {
    let program = plan
        .program
        .split_ascii_whitespace()
        .next()
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or("");
    if program.is_empty() {
        return Err("it does not name its program".into());
    }
    // The kernel keeps 15 bytes of a name.
    let comm: String = program
        .chars()
        .scan(0, |bytes, letter| {
            *bytes += letter.len_utf8();
            (*bytes <= 15).then_some(letter)
        })
        .collect();
    let cpus = plan.cpus().len();
    let layers = json!([
        {
            "name": comm,
            "comment": "from a pinwise plan",
            "matches": [[{ "PcommPrefix": comm }]],
            "kind": { "Confined": { "cpus_range": [cpus, cpus], "util_range": [0.0, 1.0] } },
        },
        { "name": "rest", "comment": "everything else", "matches": [[]], "kind": { "Open": {} } },
    ]);
    Ok(Export { text: format!("{layers:#}\n"), notes: vec![ExportNote::CpusByScheduler { cpus }] })
}

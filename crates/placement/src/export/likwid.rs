//! likwid-pin: physical CPU numbers in the order in which the program creates its threads.

use super::{Export, cpus_in_order, joined};
use crate::Plan;

pub(super) fn likwid(plan: &Plan) -> Result<Export, String> {
    let cpus = joined(&cpus_in_order(plan)?, ",");
    let notes = vec![
        "likwid-pin pins every thread in order of creation: this relies on the plan holding all of them; threads that only wait \
         can be skipped with -s MASK"
            .into(),
    ];
    Ok(Export { text: format!("likwid-pin -c {cpus}\n"), notes })
}

//! The figures of the SMT core beside those of the paper on hardware monitoring. They come from
//! docs/lab/smt-core.md, which has the rest.

use std::error::Error;

/// What `smt_pairs`, `smt_counters` and `smt_cosched` print, and what is said of it.
const PAGE: &str = include_str!("../../../docs/lab/smt-core.md");
/// Where its comparison with the paper begins, and the row after which it ends.
const BEGIN: &str = "The figures of the paper on hardware monitoring, each beside ours.";
const END: &str = "\n\nThe rows of the co-scheduler";

pub(crate) fn section() -> Result<String, Box<dyn Error>> {
    let begin = PAGE.find(BEGIN).ok_or("docs/lab/smt-core.md has no comparison with the paper")?;
    let length =
        PAGE[begin..].find(END).ok_or("docs/lab/smt-core.md: the comparison has no end")?;
    let comparison = &PAGE[begin..begin + length];
    Ok(format!(
        "## Two programs on one core, and a co-scheduler\n\nT. Moseley and others, \"Hardware \
         monitoring for SMT scheduling and path profiles\", sections 4\nand 5. `cargo run \
         --release -p pinwise-lab --example smt_counters` and `--example smt_cosched`\nmeasure \
         it. [smt-core.md](smt-core.md) and [cosched.md](cosched.md) say how, and what was \
         tried.\n\n{comparison}\n"
    ))
}

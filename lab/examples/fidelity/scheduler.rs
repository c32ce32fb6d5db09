//! The table of choices that compares the modelled operating system with the Thread Reinforcer
//! paper. It comes from docs/lab/fidelity-threads.md, which has the rest.

use std::error::Error;

/// What `thread_reinforcer` of `pinwise-threads` prints.
const PAGE: &str = include_str!("../../../docs/lab/fidelity-threads.md");
/// Where its table of choices begins, and what the last line of it says.
const BEGIN: &str = "The search's choice. It is";
const END: &str = "for the paper's reason.";

pub(crate) fn section() -> Result<String, Box<dyn Error>> {
    let begin = PAGE.find(BEGIN).ok_or("docs/lab/fidelity-threads.md has no table of choices")?;
    let length = PAGE[begin..]
        .find(END)
        .ok_or("docs/lab/fidelity-threads.md: the table of choices has no end")?;
    let table = &PAGE[begin..begin + length + END.len()];
    Ok(format!(
        "## Thread Reinforcer on the modelled operating system\n\nK. K. Pusukuri, R. Gupta, L. N. \
         Bhuyan, IISWC 2011. `cargo run --release -p pinwise-lab --example\nthread_reinforcer` \
         prints this table. [fidelity-threads.md](fidelity-threads.md) has what was\nfitted, the \
         speed-ups, the stages of ferret and critical threads. It says why choices \
         differ.\n\n{table}\n"
    ))
}

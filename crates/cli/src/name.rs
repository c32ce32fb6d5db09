//! Names of workloads that were mistyped.

use crate::output::Usage;
use pinwise_present::did_you_mean;
use pinwise_workloads::Program;

/// A workload that does not run, with the name that may have been meant.
pub(crate) fn no_workload(error: &pinwise_workloads::Error) -> Usage {
    let similar = match error {
        pinwise_workloads::Error::UnknownProgram { name } => {
            did_you_mean(name, Program::ALL.map(Program::name))
        }
        _ => String::new(),
    };
    Usage(format!("{error}{similar}"))
}

//! Suggestions for mistyped names of workloads.

use crate::output::Usage;
use pinwise_present::did_you_mean;
use pinwise_workloads::BuiltInProgram;

/// A workload that does not run, with the name that may have been meant.
pub(crate) fn no_workload(error: &pinwise_workloads::Error) -> Usage {
    let similar = match error {
        pinwise_workloads::Error::UnknownProgram { name } => {
            did_you_mean(name, BuiltInProgram::ALL.map(BuiltInProgram::name))
        }
        _ => String::new(),
    };
    Usage(format!("{error}{similar}"))
}

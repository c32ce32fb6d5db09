//! Why a search cannot begin.

use pinwise_prediction::{CoreLocalError, ProfilingError};
use pinwise_topology::SpaceError;

/// Why a question cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// There is no such space.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Asked to measure every assignment of too many.
    #[error(
        "there are {count} assignments, too many to measure each; use --strategy auto, or fewer \
         threads per context"
    )]
    TooMany {
        /// The number of assignments.
        count: String,
    },
    /// No level to profile within.
    #[error("{0}: name another level with --core-local, or use --strategy auto, which needs none")]
    Local(CoreLocalError),
    /// The workload cannot be profiled.
    #[error(transparent)]
    Profiling(ProfilingError),
    /// Fewer measurements than the least profile takes.
    #[error(
        "profiling takes at least {least} measurements, and the budget is {budget}: use --budget \
         {enough}, or --strategy auto"
    )]
    TooSmall {
        /// Measurements of the least profile and selection.
        least: u64,
        /// Measurements there may be.
        budget: u64,
        /// A budget that does.
        enough: u64,
    },
}

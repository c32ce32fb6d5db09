//! Why there is no profile.

use pinwise_topology::{DomainKind, SpaceError};
use serde::{Deserialize, Serialize};

/// Why there is no profile of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfilingError {
    /// More layouts of threads within a domain than can be gone through.
    #[error(
        "{kinds} kinds of threads have too many layouts on the {slots} places of a {}: choose a \
         smaller --core-local, or use --strategy auto",
        .level.name()
    )]
    TooManyLayouts {
        /// Kinds of threads.
        kinds: usize,
        /// Threads that a domain may hold.
        slots: usize,
        /// Of the domains.
        level: DomainKind,
    },
    /// An instance does not fit the machine.
    #[error(transparent)]
    #[serde(untagged)]
    Space(#[from] SpaceError),
}

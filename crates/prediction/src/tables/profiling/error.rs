//! Why there is no profile.

use num_bigint::BigUint;
use pinwise_topology::SpaceError;

/// Why there is no profile of a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfilingError {
    /// An instance does not fit the machine.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// More layouts of threads within a domain than can be gone through.
    #[error(
        "{kinds} kinds of threads have too many layouts on the {slots} places of a {level}: choose \
         a smaller --core-local, or use --strategy auto"
    )]
    TooManyLayouts {
        /// Kinds of threads.
        kinds: usize,
        /// Threads that a domain may hold.
        slots: usize,
        /// Of the domains.
        level: &'static str,
    },
    /// One instance alone has more assignments than could be measured.
    #[error(
        "an instance of {threads} threads has {count} assignments alone, and all must be measured \
         first: use --strategy auto, which \
         needs no profile"
    )]
    TooManyAlone {
        /// Threads of an instance.
        threads: usize,
        /// Its assignments.
        count: BigUint,
    },
}

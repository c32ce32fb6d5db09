//! The instruction streams that a microbenchmark can execute.

/// What a program executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionKind {
    /// Integer additions.
    Add,
    /// Integer multiplications.
    Multiply,
    /// Integer divisions.
    Divide,
    /// Floating-point additions.
    FloatAdd,
    /// Floating-point divisions.
    FloatDivide,
    /// Loads in a chain: each waits for the one before.
    Chase,
    /// Loads that follow each other in memory, one a cache line.
    Stream,
    /// Stores that follow each other in memory and go past the caches, whole cache lines.
    Store,
    /// Loads at random places: each waits for the one before.
    Follow,
    /// Loads at random places, as many at a time as the core can.
    Scatter,
}

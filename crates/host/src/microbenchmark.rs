//! Microbenchmarks as machine code on pinned threads.
//!
//! Each program is a long run of one instruction, written in assembly so that no compiler changes it (V. Čakarević et al., MICRO
//! 2009, section 3.2). Arithmetic runs in eight independent chains: an out-of-order core would leave a unit idle while one
//! chain waits for its own result, and two programs could then share the unit without either noticing. Loads are the
//! opposite, one chain in which every address comes from the load before ([`chase`]), so that what is timed is the latency of one
//! cache; `stream` alone reads ahead, to load what leads to memory.
//!
//! Time is the CPU time of the thread, read from the kernel before and after each repetition of a few milliseconds: what other
//! programs take away from a context does not count as slowdown. It disturbs all the same, and is reported
//! ([`pinwise_testbed::Pace::share`]).
//!
//! The threads stay in the ordinary scheduling class. A real-time class would keep others away, and the machine would not
//! answer while all its contexts spin.

mod bench;
mod chase;
mod footprint;
#[cfg_attr(target_arch = "x86_64", path = "microbenchmark/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "microbenchmark/aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "microbenchmark/none.rs")]
mod kernel;

pub use bench::HostBench;

/// What a program executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
    /// Loads of which each waits for the one before.
    Chase,
    /// Loads that follow each other in memory, one a cache line.
    Stream,
}

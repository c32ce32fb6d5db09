//! Microbenchmarks as machine code on pinned threads.
//!
//! Each program is a long run of one instruction, written in assembly so that no compiler changes
//! it (V. Čakarević et al., MICRO 2009, section 3.2). Arithmetic runs in eight independent chains:
//! an out-of-order core would leave a unit idle while one chain waits for its own result, and two
//! programs could then share the unit without either noticing. Loads are the opposite, one chain in
//! which every address comes from the load before ([`chase`]), so that what is timed is the latency
//! of one cache. To load what leads to memory there are programs that wait for nothing: successive
//! reads and writes ([`strip`]), and reads at random places ([`field`]).
//!
//! What a core gets of its caches is looked at first ([`curve`]); a slowdown is taken against the
//! same programs in the pauses of their stressors ([`run`]).
//!
//! Time is the CPU time of the thread, read from the kernel before and after each repetition of a
//! few milliseconds: what other programs take away from a context does not count as slowdown. It
//! disturbs all the same, and is reported ([`pinwise_measure::Pace::share`]).
//!
//! The threads stay in the ordinary scheduling class. A real-time class would keep others away, and
//! the machine would not answer while all its contexts spin.

mod bench;
mod chase;
mod curve;
mod field;
mod footprint;
#[cfg_attr(target_arch = "x86_64", path = "microbenchmark/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "microbenchmark/aarch64.rs")]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    path = "microbenchmark/none.rs"
)]
mod kernel;
mod kind;
mod load;
mod pages;
mod run;
mod strip;

pub use bench::HostBench;
use kind::Kind;

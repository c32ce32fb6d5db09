//! Microbenchmarks as machine code on pinned threads.
//!
//! Each program is a long run of one instruction. It is written in assembly, so that no compiler
//! changes it (V. Čakarević et al., MICRO 2009, section 3.2).
//!
//! - Arithmetic runs in eight independent chains. With one chain, an out-of-order core would leave
//!   a unit idle during each result's latency. Two programs could then share the unit unnoticed.
//! - Loads run in one chain, where every address comes from the load before ([`pointer_chase`]). So
//!   the time is the latency of one cache.
//! - Programs that load the path to memory wait for nothing. They make successive reads and writes
//!   ([`memory_sweep`]), or reads at random places ([`random_loads`]).
//!
//! The caches of a core are measured first ([`cache_sizes`]). A slowdown compares with the same
//! programs in the pauses of their stressors ([`run`]).
//!
//! Time is the CPU time of the thread. It is read from the kernel before and after each repetition
//! of a few milliseconds. CPU time that other programs take does not count as slowdown. It disturbs
//! all the same, so it is reported ([`pinwise_measure::Pace::share`]).
//!
//! The threads stay in the ordinary scheduling class. With a real-time class the machine would not
//! answer while all its contexts spin.

mod bench;
mod cache_sizes;
mod cpu_time;
mod footprint;
mod instruction_kind;
#[cfg_attr(target_arch = "x86_64", path = "microbenchmark/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "microbenchmark/aarch64.rs")]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    path = "microbenchmark/unsupported.rs"
)]
mod kernel;
mod loaded_program;
mod memory_sweep;
mod pages;
mod pointer_chase;
mod random_loads;
mod run;

pub use bench::HostBench;
use instruction_kind::InstructionKind;

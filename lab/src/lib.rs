#![doc = include_str!("../README.md")]
//!
//! What several studies share. The studies themselves are the examples of this crate.
//!
//! [`thread_reinforcer`] and [`metis`] read what others published, to compare pinwise with it.
//! - [`compiled`] predicts tens of millions of assignments a second.
//! - [`sweep`] measures the truth on the model of a scheduler, to compare searches with it.
//! - [`threads_truth`] asks the whole job there and judges what it announces.
//! - [`phase_rates`] has what phases of programs do on one core, and [`run_queues`] simulates
//!   minutes of a scheduler from that.
//! - [`searched()`] is a search for a placement from its first step to its last.
//! - [`on_paper`] has workloads of the processor on paper, and the best that they can do.
//!   [`Frozen`] has those of a simulated processor, and [`Bed`] is either.
//! - [`rate`] says how often something was so. [`parallel`] uses all processors, and [`on_nodes`]
//!   several machines.

#![forbid(unsafe_code)]

mod bed;
pub mod cells;
pub mod compiled;
mod frozen;
pub mod metis;
pub mod on_nodes;
pub mod on_paper;
pub mod parallel;
pub mod phase_rates;
pub mod rate;
pub mod run_queues;
mod searched;
pub mod sweep;
pub mod thread_reinforcer;
pub mod threads_truth;

pub use bed::Bed;
pub use frozen::Frozen;
pub use searched::searched;

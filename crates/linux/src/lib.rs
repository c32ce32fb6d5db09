//! Linux at the edge: processes, threads, affinities, and the guardian that puts them back.
//!
//! A [`Target`] is a program that was launched or attached to. Whatever is pinned is known to the
//! [`Guardian`] before, which puts everything back on every way out, `kill -9` included. What a
//! [`Pinner`] leaves pinned stands in a [`Ledger`] and can be undone.

pub mod affinity;
mod births;
pub mod capabilities;
mod capture;
pub mod choice;
mod demand;
mod fifo;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod guardian;
mod launch;
mod ledger;
mod pin;
pub mod process;
pub mod role;
mod roster;
mod stream;
pub mod survey;
pub mod sys;
mod target;
pub mod thread;

pub use affinity::AffinityError;
pub use births::Births;
pub use capture::{CaptureError, capture, machine, record};
pub use choice::{Choice, ChoiceError, Why};
pub use demand::{Demand, Look};
pub use fifo::Fifo;
pub use fingerprint::fingerprint;
pub use guardian::{ARGUMENT as GUARDIAN_ARGUMENT, Entry, Guardian, GuardianError, guardian_main};
pub use launch::{Exit, Launch, Output, Running};
pub use ledger::{Ledger, Released};
pub use pin::{Ended, Pinned, Pinner, Seen};
pub use roster::{Changes, Member, Roster, Scope};
pub use stream::{Line, Streams, Tail, each_line, follow, quotable};
pub use survey::{HARDLY_RUNS, Surveyed};
pub use target::{Target, TargetError, common_contexts, pause};
pub use thread::{Pid, StartTime, ThreadId, Tid};

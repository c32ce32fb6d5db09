#![doc = include_str!("../README.md")]

pub mod affinity;
pub mod capabilities;
mod capture;
mod cpu_demand;
mod fifo;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod fork_watch;
mod guardian;
mod hold;
mod launch;
mod ledger;
mod plan_pinner;
pub mod process;
pub mod role;
mod roster;
mod run_delay;
mod stream;
pub mod survey;
pub mod sys;
mod target;
mod target_error;
pub mod thread;
pub mod thread_filter;

pub use affinity::AffinityError;
pub use capture::{CaptureError, capture, machine, record};
pub use cpu_demand::{CpuDemand, Look};
pub use fifo::{Fifo, keep_nice};
pub use fingerprint::fingerprint;
pub use fork_watch::ForkWatch;
pub use guardian::{
    ARGUMENT as GUARDIAN_ARGUMENT, Guardian, GuardianEntry, GuardianError, guardian_main,
};
pub use hold::{Held, Hold};
pub use launch::{Exit, Launch, Output, Running};
pub use ledger::{Ledger, Released};
pub use plan_pinner::{EndedThreads, Pinned, PinnerThread, PlanPinner};
pub use roster::{Changes, Member, Roster, Scope};
pub use run_delay::RunDelay;
pub use stream::{Line, Streams, Tail, each_line, follow, quotable};
pub use survey::{HARDLY_RUNS, SurveyedThread};
pub use target::{Target, common_contexts, pause};
pub use target_error::TargetError;
pub use thread::{Pid, StartTime, ThreadId, Tid};
pub use thread_filter::{ThreadFilter, ThreadFilterError};

#![doc = include_str!("../README.md")]

pub mod affinity;
mod allocator;
pub mod capabilities;
mod control_group;
mod cpu_demand;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod fork_watch;
mod guardian;
mod guardian_timeouts;
mod launch;
mod line_queue;
mod machine_snapshot;
pub mod memory;
mod pinner;
mod plan_pinner;
pub mod process;
mod process_lock;
mod quota;
mod realtime;
mod roster;
mod run_delay;
mod signal_relay;
mod stream;
pub mod sys;
mod target;
mod target_error;
pub mod thread;
pub mod thread_filter;
pub mod thread_names;
pub mod thread_scan;
mod undo_notes;

pub use affinity::AffinityError;
pub use allocator::ExitingAllocator;
pub use control_group::{cpuset_of, effective_cpus};
pub use cpu_demand::{CpuDemand, ThreadSample};
pub use fingerprint::fingerprint;
pub use fork_watch::ForkWatch;
pub use guardian::{
    ARGUMENT as GUARDIAN_ARGUMENT, Guardian, GuardianEntry, GuardianError, LeftChanged, Restored,
    SETTING_MARK, guardian_main, is_left_changed, keep_ledgers, restore_abandoned, restore_again,
};
pub use guardian_timeouts::SETTING_LIMIT;
pub use launch::{Exit, Launch, LaunchedProgram, Output};
pub use line_queue::{LineReceiver, LineSender, line_queue};
pub use machine_snapshot::{CaptureError, capture, this_machine, write_recording};
pub use memory::{InitialMemory, MemoryError};
pub use pinner::likely_pinner;
pub use plan_pinner::{EndedThreads, Pinned, PinnerThread, PlanPinner, PlanPinnerError};
pub use process_lock::{ProcessLock, ProcessLockedError};
pub use quota::Quota;
pub use realtime::{RealtimeClass, keep_nice, share_with_others, take_precedence};
pub use roster::{Changes, Member, Roster, Scope};
pub use run_delay::RunDelay;
pub use signal_relay::pass_on;
pub use stream::{OutputLine, Streams, Tail, each_line, follow, quotable};
pub use target::{MovedThread, Target, common_contexts, described, pause};
pub use target_error::{TargetError, why_not_started};
pub use thread::{Pid, StartTime, ThreadId, Tid};
pub use thread_filter::{ThreadFilter, ThreadFilterError};
pub use thread_scan::ScannedThread;
pub use undo_notes::{NotedThread, Released, UndoNotes};

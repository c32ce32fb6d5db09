//! How a running program spends its time, watched from outside.
//!
//! Whether more threads would help shows in what the present ones do: compute, wait for a CPU, wait
//! for each other, or sleep. There are three ways to see it, the [`Layer`]s; all give an
//! [`Activity`], and it says which one it is from.
//!
//! Without privilege ([`Layer::Proc`]) the kernel accounts the first two exactly
//! (`/proc/PID/task/TID/schedstat`); the rest of a thread's time it slept. What it slept *for* is
//! sampled: a thread that waits for another one, at a lock, a condition variable, a barrier or a
//! join, sleeps in the `futex` system call, which `/proc/PID/task/TID/syscall` tells. Voluntary
//! switches and migrations are counters of the kernel.
//!
//! ```text
//! slept  = elapsed - ran - waited                      exact
//! locked = slept * looks in futex / looks asleep       the looks only split what is known exactly
//! ```
//!
//! A look costs a system call per thread on a file that is kept open; opening it every time would
//! cost a program that blocks often 8 to 14 % at a look per millisecond. The counters, which need
//! two more files, are read ten times less often.
//!
//! Limits: a thread that lives for less than the time between two looks is missed, and what a
//! thread counts after the last reading of its counters is lost with it. A lock that spins before
//! it sleeps shows as computing. Another user's program does not show its system calls; then locks
//! are not told ([`Activity::lock`]).
//!
//! With privilege the kernel's records of context switches ([`Layer::Perf`]) tell every turn on a
//! CPU, and a program in the kernel ([`Layer::Ebpf`]) keeps exact accounts of all of it, the time
//! at locks included. docs/MONITOR.md compares them. A [`Lookout`] gives them up for a program that
//! they cost too much; how often that is looked at is a matter of its `Budget`.

#![forbid(unsafe_code)]

mod activity;
mod budget;
mod calibration;
mod counters;
#[cfg(feature = "bpf")]
mod ebpf;
mod layer;
mod lookout;
mod monitor;
mod other_load;
mod overhead;
mod perf;
mod power;
mod quota;
mod sampling;
mod source;
mod thread_watch;

pub use activity::{Activity, ThreadActivity};
pub use layer::{Layer, Unavailable, UnknownLayer};
pub use lookout::Lookout;
pub use monitor::{Monitor, MonitorError, best_layer};
pub use other_load::{Moment, OtherLoad, OtherLoadMeter, OtherLoadWatch};
pub use overhead::Overhead;
pub use power::{Energy, POWERCAP, Power, PowerError};
pub use quota::Quota;

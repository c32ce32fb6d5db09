#![doc = include_str!("../README.md")]
//!
//! # The layers
//!
//! All layers give an [`Activity`], which names its [`Layer`].
//!
//! Without privilege ([`Layer::Proc`]) the kernel accounts the times that a thread computes and
//! waits for a CPU exactly (`/proc/PID/task/TID/schedstat`). The thread slept for the rest. What it
//! slept *for* is sampled. A thread that waits for another one sleeps in the `futex` system call.
//! It waits at a lock, a condition variable, a barrier or a join. `/proc/PID/task/TID/syscall`
//! shows that. Voluntary switches and migrations are counters of the kernel.
//!
//! ```text
//! slept  = elapsed - ran - waited                      exact
//! locked = slept * looks in futex / looks asleep       the looks only split what is known exactly
//! ```
//!
//! A look costs a system call per thread on a file that stays open. Opening the file every time
//! costs a program that blocks often 8 to 14 % at a look per millisecond. The counters need two
//! more files and are read ten times less often.
//!
//! With privilege, the kernel's records of context switches ([`Layer::Perf`]) show every turn on a
//! CPU. A program in the kernel ([`Layer::Ebpf`]) keeps exact accounts of everything, including the
//! time at locks. A [`LayerChoice`] gives up a layer that costs the program too much. `LookRate`
//! decides how often to look.
//!
//! # Limits
//!
//! - A thread that lives for less than the time between two looks is missed. What a thread counts
//!   after the last reading of its counters is lost with it.
//! - A lock that spins before it sleeps shows as computing.
//! - The system calls of another user's program are not visible. [`Activity::lock`] is then `None`.

#![forbid(unsafe_code)]

mod activity;
mod counters;
#[cfg(feature = "bpf")]
mod ebpf;
mod layer;
mod layer_choice;
mod layer_reader;
mod look_rate;
mod monitor;
mod other_load;
mod overhead;
mod perf;
mod power;
mod proc_layer;
mod switch_cost;
mod thread_watch;

pub use activity::{Activity, ThreadActivity};
pub use layer::{CostBase, Layer, Obstacle, Unavailable, UnknownLayer};
pub use layer_choice::LayerChoice;
pub use monitor::{Monitor, MonitorError, best_layer};
pub use other_load::{CpuTimeReading, OtherLoad, OtherLoadMeter, OtherLoadWatch};
pub use overhead::Overhead;
pub use power::{Energy, POWERCAP, Power, PowerError};

//! Linux: processes, threads, affinities, and the performance of running programs.

pub mod affinity;
mod fifo;
mod meter;
pub mod process;
mod stream;
mod sys;
pub mod thread;

pub use affinity::AffinityError;
pub use meter::Meter;
pub use stream::{Line, Streams, Tail};
pub use thread::{Pid, StartTime, Tid};

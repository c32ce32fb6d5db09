//! Linux: processes, threads, affinities, and the performance of running programs.

mod meter;
mod stream;

pub use meter::Meter;
pub use stream::{Line, Streams, Tail};

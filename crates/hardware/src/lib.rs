//! What this machine can do.
//!
//! [`HostBench`] measures how much programs slow each other down on hardware that they share;
//! [`Latencies`] are those between hardware contexts; [`doctor`] says what is missing for measuring
//! and for moving threads.

pub mod doctor;
mod latency;
mod microbenchmark;

pub use latency::{
    DirectedLatency, Latencies, LatencyError, Quantiles, TickRate, directed_latency,
};
pub use microbenchmark::HostBench;

#![doc = include_str!("../README.md")]

pub mod doctor;
mod latency;
mod mapping;
mod microbenchmark;

pub use latency::{
    DirectedLatency, Latencies, LatencyRunError, LatencyWarning, Quantiles, TickRate,
    directed_latency,
};
pub use microbenchmark::HostBench;

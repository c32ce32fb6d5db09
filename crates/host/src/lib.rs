//! Linux: processes, threads, affinities, and the performance of running programs.
//!
//! A [`Target`] is a program that was launched or attached to. [`LiveTestbed`] re-pins it while it
//! runs and reads its performance from a [`Meter`]; [`RerunTestbed`] starts a program anew for
//! every measurement. Whatever is pinned is known to the [`Guardian`] before, which puts everything
//! back on every way out, `kill -9` included. [`Latencies`] are measured with threads of
//! pinwise's own.

pub mod affinity;
mod births;
mod capture;
mod choice;
mod crowd;
mod demand;
pub mod doctor;
mod fifo;
mod fingerprint;
#[cfg(test)]
mod fixture;
mod guardian;
mod latency;
mod launch;
mod ledger;
mod live;
mod meter;
pub mod metric;
mod microbenchmark;
mod monitor;
mod pin;
mod power;
mod prober;
pub mod process;
mod quota;
mod rerun;
pub mod role;
mod roster;
mod stream;
mod survey;
mod sys;
mod target;
pub mod thread;

pub use affinity::AffinityError;
pub use capture::{CaptureError, capture, machine, record};
pub use choice::{Choice, ChoiceError};
pub use crowd::{CrowdShare, CrowdWatch};
pub use fingerprint::fingerprint;
pub use guardian::{ARGUMENT as GUARDIAN_ARGUMENT, Guardian, GuardianError, guardian_main};
pub use latency::{DirectedLatency, Latencies, LatencyError, Quantiles};
pub use launch::{Launch, Output};
pub use ledger::{Ledger, Released};
pub use live::{LiveOptions, LiveTestbed};
pub use meter::Meter;
pub use microbenchmark::HostBench;
pub use monitor::{
    Activity, Layer, Lookout, Monitor, MonitorError, Overhead, ThreadActivity, Unavailable,
    UnknownLayer,
};
pub use pin::{Ended, Pinned, Pinner};
pub use power::{Energy, POWERCAP, Power, PowerError};
pub use prober::{
    Drift, LinuxProber, NoSetter, ProbeError, ProbeOptions, ProgressSource, Recipe, RecipeError,
    Seen, Setter, Subject, Threads, set_number,
};
pub use quota::Quota;
pub use rerun::{RerunOptions, RerunTestbed, RunMetric, Stream};
pub use roster::Scope;
pub use stream::{Line, Streams, Tail};
pub use survey::{HARDLY_RUNS, Surveyed};
pub use target::{Target, TargetError};
pub use thread::{Pid, StartTime, ThreadId, Tid};

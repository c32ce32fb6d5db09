//! A real program as a testbed.
//!
//! [`LiveTestbed`] re-pins a program while it runs and reads its performance from a
//! [`Meter`](pinwise_metric::Meter); [`RerunTestbed`] starts a program anew for every measurement;
//! [`LinuxProber`] runs it with one number of threads after another.

#![forbid(unsafe_code)]

mod live;
mod prober;
mod rerun;

pub use live::{LiveOptions, LiveTestbed};
pub use prober::{
    Drift, LinuxProber, NoSetter, ProbeDetails, ProbeError, ProbeOptions, ProbedProgram,
    ProgressSource, Recipe, RecipeError, Setter, Threads, set_number,
};
pub use rerun::{RerunOptions, RerunTestbed, RunMetric, Stream};

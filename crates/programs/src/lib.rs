#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod live;
mod prober;
mod rerun;
mod run_metric;

pub use live::{LiveOptions, LiveTestbed};
pub use prober::{
    HalfDifference, LinuxProber, OwnParameter, ProbeDetails, ProbeError, ProbeOptions,
    ProbedProgram, ProgressSource, Recipe, RecipeError, Setter, SetterError, ThreadsForN,
    set_number,
};
pub use rerun::{RerunOptions, RerunTestbed};
pub use run_metric::{RunMetric, Stream};

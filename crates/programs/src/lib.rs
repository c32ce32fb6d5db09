#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cosched;
mod live;
mod pairs;
mod pin_history;
mod prober;
mod rerun;
mod run_metric;

pub use cosched::{
    CoscheduleError, CoscheduleOptions, CoscheduledTestbed, FoundPrograms, MoveDecision,
    process_time, thread_time,
};
pub use live::{FloorDetail, LiveOptions, LiveTestbed, UnpinnedWindow};
pub use pairs::PairsTestbed;
pub use prober::{
    CommandTemplate, CommandTemplateError, HalfDifference, LinuxProber, NumberSetter,
    NumberSetterError, OwnParameter, ProbeDetails, ProbeError, ProbeOptions, ProbedProgram,
    ProgressSource, START_TIME, ThreadsForN, set_number,
};
pub use rerun::{RerunOptions, RerunTestbed};
pub use run_metric::{RunMetric, Stream};

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod autocorrelation;
mod event_table;
#[cfg(test)]
mod fixture;
mod multiplexing;
mod perf_source;
mod pmu;
mod quantum_series;
mod recorded;
mod software_source;
mod source;
mod thread_groups;

pub use autocorrelation::Autocorrelation;
pub use perf_source::{NamedEvent, PerfSource};
pub use quantum_series::{QuantumSeries, RunCounts};
pub use recorded::{
    NotRecorded, NotRecordedReason, RecordedFile, RecordedFileError, RecordedInterval,
    RecordedSubject,
};
pub use software_source::{ProcCounts, SoftwareGroups, SoftwareSource};
pub use source::{CountError, CountSource, ThreadCounts, UncountedEvent, UncountedReason};

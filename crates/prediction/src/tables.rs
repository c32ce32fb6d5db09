//! The tables of BlackBox: the performance of each instance alone and the slowdown of a thread by
//! co-runners. Also the experiments that fill both.
//!
//! Source: blackbox-scheduler.txt. Start at `blackbox.rs`.

pub(crate) mod base;
pub(crate) mod base_forecast;
pub(crate) mod blackbox;
pub(crate) mod core_local;
pub(crate) mod experiment;
pub(crate) mod gaussian;
pub(crate) mod layout;
pub(crate) mod profiling;
pub(crate) mod slowdown;

pub use base::{BaseSpace, BaseTable};
pub use blackbox::BlackBox;
pub use core_local::{Build, CoreLocal, CoreLocalError};
pub use experiment::{Experiment, ExperimentCount, PlacedInstance};
pub use layout::Layouts;
pub use profiling::{Checked, Profiling, ProfilingEnd, ProfilingError, Solo, TableEntry};
pub use slowdown::SlowdownTable;

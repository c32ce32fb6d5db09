#![doc = include_str!("../README.md")]
//!
//! # How numbers come
//!
//! - **On demand**: pinwise asks the program (`cmd:`, `prom:`, `netdev:`, `io:`, `dpdk:`). A
//!   *counter*, read at the beginning and the end of a window, gives the rate over exactly that
//!   window. A number that is renewed only now and then is treated as if it had been printed when
//!   it changed.
//! - **At the program's pace**: the program prints (`stdout:`, `stderr:`, `file:`). A counter gives
//!   the rate between the first and the last line in the window. A *value* stands for the time
//!   since the line before it. A value whose time begins before the threads were moved is dropped.
//!   No line is used twice.
//!
//! The user states whether a number is a counter or a value. Otherwise its name decides, or its
//! first readings do. [`Metric::notes`] reports the decision.
//!
//! Lines are dated when they are read. Under load that is some milliseconds late. To avoid this, a
//! program can print its own clock, and the pattern names it (`(?<seconds>…)`).
//!
//! # Limits
//!
//! Some values are smoothed by the program itself over a long time, such as an "instantaneous"
//! rate. They still hold some of the assignment before. Use the counter behind it if there is one.

#![forbid(unsafe_code)]

mod arrivals;
mod availability;
mod cadence;
mod command;
mod counter_detection;
mod dpdk;
mod error;
mod growing_file;
mod meter;
mod metric;
mod metric_detection;
mod netdev;
mod number;
mod on_demand;
mod paced;
mod pattern;
mod procio;
mod prometheus;
mod pseudo_file;
pub mod reading;
mod source;
mod spec;
mod window;
mod words;

pub use command::{CommandError, run};
pub use counter_detection::CounterDetection;
pub use error::MetricError;
pub use meter::Meter;
pub use metric::{Metric, MetricOptions};
pub use pattern::Pattern;
pub use procio::Pids;
pub use prometheus::Selector;
pub use reading::Interpretation;
pub use source::MetricValue;
pub use spec::MetricSpec;

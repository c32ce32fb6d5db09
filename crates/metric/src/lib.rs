//! What performance is, for a program that runs: a number that it prints, keeps or answers, read
//! while its threads are moved.
//!
//! A *metric* is written `KIND:WHERE` ([`MetricSpec`]). Numbers come in two ways:
//!
//! - **on demand**: the program is asked (`cmd:`, `prom:`, `netdev:`, `io:`, `dpdk:`). A *counter*
//!   read at the begin and the end of a window gives the rate over exactly that window. Where the
//!   number is renewed only now and then, the changes are taken as if they had been printed.
//! - **at the program's pace**: it prints (`stdout:`, `stderr:`, `file:`). A counter gives the rate
//!   between the first and the last line in the window. A *value* stands for the time since the
//!   line before it, so one that reaches back before the threads were moved is dropped. No line is
//!   used twice.
//!
//! Which of these it is, counter or value, is stated by the user, said by the name, or seen in the
//! first readings; what was decided is told ([`Metric::notes`]). Lines are dated when they are
//! read: under load that is some milliseconds late, unless the program prints its own clock and the
//! pattern names it (`(?<seconds>…)`).
//!
//! Limits: a value that the program itself smooths over a long time (an "instantaneous" rate over
//! the last seconds) still holds some of the assignment before; take the counter behind it where
//! there is one.

#![forbid(unsafe_code)]

mod arrivals;
mod availability;
pub mod cadence;
mod command;
mod counter_detection;
mod dpdk;
mod error;
mod meter;
mod metric;
mod netdev;
mod number;
mod on_demand;
mod paced;
mod pattern;
mod probe;
mod procio;
mod prometheus;
mod pseudo_file;
pub mod reading;
mod source;
mod spec;
mod tail;
mod window;

pub use command::run;
pub use counter_detection::CounterDetection;
pub use error::MetricError;
pub use meter::Meter;
pub use metric::{Metric, MetricOptions};
pub use pattern::Pattern;
pub use procio::Pids;
pub use prometheus::Selector;
pub use reading::Interpretation;
pub use source::Sample;
pub use spec::MetricSpec;

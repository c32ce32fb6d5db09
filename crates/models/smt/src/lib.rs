#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod description;
mod phase;
mod pipeline;
mod program;
mod testbed;

pub use description::{SmtCore, SmtError};
pub use phase::{PhasedProgram, ProgramPhase};
pub use pipeline::{CounterValues, events};
pub use program::{AccessPattern, DataSet, StreamProgram};
pub use testbed::SmtTestbed;

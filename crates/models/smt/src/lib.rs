#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod description;
mod pipeline;
mod program;

pub use description::{SmtCore, SmtError};
pub use pipeline::{CounterValues, events};
pub use program::{AccessPattern, DataSet, StreamProgram};

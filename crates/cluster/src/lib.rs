#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod dispatch;
mod launch;
mod likeness;
mod message;
mod node;
mod worker;
mod workers;

pub use dispatch::{Dispatch, HandedTrial};
pub use launch::{NodeLoss, OwnProgram};
pub use likeness::{ERRORS, NOTABLE, NodeDifference, REFERENCES, difference, unlike};
pub use message::{
    FrameError, FromWorker, MOST, Opened, PROTOCOL, ToWorker, read_frame, write_frame,
};
pub use node::{MOST_NODES, Nodes, NodesError};
pub use worker::{Session, serve};
pub use workers::{NodeError, SILENCE, Workers};

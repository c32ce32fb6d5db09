#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod dispatch;
mod launch;
mod likeness;
mod message;
mod node;
mod turn;
mod watch;
mod worker;
mod workers;

pub use dispatch::{Dispatch, HandedTrial};
pub use launch::{NodeLoss, OwnProgram};
pub use likeness::{
    ERRORS, NOTABLE, NodeDifference, NodeLikeness, NodeScatter, REFERENCES, UnlikeNode, difference,
};
pub use message::{
    FrameError, FromWorker, MOST, Opened, PROTOCOL, ToWorker, read_frame, write_frame,
};
pub use node::{MOST_NODES, Nodes, NodesError};
pub use turn::NodeTurn;
pub use worker::{ABANDONED, Session, serve};
pub use workers::{NodeError, NodeNews, OpeningRequest, SILENCE, UnlikeNodes, Workers};

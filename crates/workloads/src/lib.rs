#![doc = include_str!("../README.md")]
//!
//! # Sources
//!
//! - Nine variants of IP forwarding (`forwarder`): BlackBox scheduler, section 4.3.
//! - A packet analyzer (`analyzer`), intrusion detection by string matching (`matcher`) and
//!   stateful flow processing (`flows`): optimal-assignment-evt, section 4.3.
//!
//! There, packets came from a 10 Gbit/s link and threads ran on bare hardware contexts. Here they
//! come from memory, and threads run on Linux.

#![forbid(unsafe_code)]

mod analyzer;
mod checksum;
mod flows;
mod forwarder;
mod frame;
mod generator;
mod hash;
mod keywords;
mod matcher;
mod packet_capture;
mod packet_work;
mod pipeline;
mod polling;
mod program;
mod ring;
mod running;
mod traffic;

pub use frame::{IpVersion, Layout};
pub use packet_capture::{Capture, PacketCaptureError};
pub use packet_work::{PacketAction, PacketWork};
pub use program::{BuiltInProgram, BuiltInWorkload};
pub use ring::{Consumer, Producer, ring};
pub use running::{Counts, FinalCounts, RunningWorkload};
pub use traffic::Traffic;

/// Why a workload does not run. One line for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no program of this name.
    #[error("there is no workload `{name}`; there are {}", names())]
    UnknownProgram {
        /// What was asked for.
        name: String,
    },
    /// The number of instances makes no sense.
    #[error("`{text}` is not a number of instances; give 1 to {}", BuiltInWorkload::MOST_INSTANCES)]
    Instances {
        /// What was asked for.
        text: String,
    },
    /// The pool of frames is empty.
    #[error("there are no packets to receive")]
    NoTraffic,
    /// The system refused a thread.
    #[error(
        "cannot start thread {thread}: {source}; start fewer instances, or raise the limit of \
         processes (`ulimit -u`)"
    )]
    Spawn {
        /// The thread's name.
        thread: String,
        /// Why.
        source: std::io::Error,
    },
    /// A thread panicked.
    #[error("thread {thread} panicked: a bug in pinwise, see its message above")]
    Panicked {
        /// The thread's name.
        thread: String,
    },
}

fn names() -> String {
    BuiltInProgram::ALL.map(BuiltInProgram::name).join(", ")
}

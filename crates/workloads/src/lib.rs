//! Packet-processing programs to try placements on: real threads, real packets, real work.
//!
//! Each instance of a [`Program`] is a software pipeline of three threads: R receives packets, P
//! processes them, T transmits them (`pipeline`). They pass packets on through two lock-free rings
//! ([`ring()`]) which they poll (`polling`). The programs are those of the studies that pinwise
//! builds on: nine variants of IP forwarding (`forwarder`; BlackBox scheduler, section 4.3), a
//! packet analyzer (`analyzer`), intrusion detection by string matching (`matcher`) and stateful
//! flow processing (`flows`; optimal assignment by extreme value theory, section 4.3). There,
//! packets came from a 10 Gbit/s link and threads ran on bare hardware contexts; here they come
//! from memory (`generator`, `capture`) and threads run on Linux.
//!
//! What this crate does not do: use a network interface, or place its threads. It is the program
//! that gets placed.
//!
//! ```
//! use pinwise_workloads::Workload;
//! use std::time::Duration;
//!
//! let workload = Workload::parse("hash1_L1:2")?;
//! let running = workload.start(None, 1, Some(10_000))?;
//! while !running.wait(Duration::from_secs(1)) {}
//! assert!(running.stop()?.iter().all(|instance| instance.counts.packets == 10_000));
//! # Ok::<(), pinwise_workloads::Error>(())
//! ```

#![forbid(unsafe_code)]

mod analyzer;
mod capture;
mod checksum;
mod flows;
mod forwarder;
mod frame;
mod generator;
mod hash;
mod keywords;
mod matcher;
mod pipeline;
mod polling;
mod processor;
mod program;
mod ring;
mod running;
mod traffic;

pub use capture::{Capture, CaptureError};
pub use frame::{Layout, Version};
pub use processor::{Processor, Verdict};
pub use program::{Program, Workload};
pub use ring::{Consumer, Producer, ring};
pub use running::{Counts, Running, Summary};
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
    #[error("`{text}` is no number of instances; give 1 to {}", Workload::MOST_INSTANCES)]
    Instances {
        /// What was asked for.
        text: String,
    },
    /// The pool of frames is empty.
    #[error("there are no packets to receive")]
    NoTraffic,
    /// The system refused a thread.
    #[error(
        "cannot start thread {thread}: {source}; start fewer instances, or raise the limit of processes (`ulimit -u`)"
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
    Program::ALL.map(Program::name).join(", ")
}

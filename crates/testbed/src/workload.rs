//! The threads that are to be placed.

use serde::{Deserialize, Serialize};

/// One thread of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// As users know it: its `comm`, with its creation order where several share one (`pigz#3`).
    pub name: String,
    /// What it does, shared by threads that do the same (`R`, `worker`, the `comm` without its number).
    pub role: String,
    /// Which instance of the application it belongs to, counted from 0.
    pub instance: usize,
}

/// The application instances that run together, each with its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// The command or the name of a built-in program.
    pub name: String,
    /// The threads, in the order in which assignments number them.
    pub threads: Vec<Thread>,
}

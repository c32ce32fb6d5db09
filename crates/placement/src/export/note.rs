//! [`ExportNote`]: what a syntax cannot say of a plan, as values. The crate `present` makes the
//! text.

use pinwise_measure::MemoryPolicy;
use pinwise_topology::{CpuId, CpuSet};
use serde::Serialize;

/// A note: what a syntax could not say of a plan, or what its text relies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExportNote {
    /// The process is pinned to the CPUs of all its threads, which have different ones.
    WholeProcess,
    /// Every instance is pinned to the CPUs of all its threads, which have different ones.
    WholeInstances {
        /// The launcher's word for an instance.
        instance: &'static str,
    },
    /// The tool has no words for some threads.
    LeftOut {
        /// The tool.
        by: LeftOutBy,
        /// Their names.
        threads: Vec<String>,
    },
    /// The program's first thread is not in the plan. It may run on all CPUs of the plan.
    NoFirstThread {
        /// Its lcore.
        lcore: usize,
    },
    /// The threads have to be the OpenMP team, in its order.
    TeamInOrder,
    /// The plan has to hold every thread, in the order of their creation.
    AllThreadsInOrder,
    /// The scheduler decides which CPUs the program gets.
    CpusByScheduler {
        /// How many it gets.
        cpus: usize,
    },
    /// Threads get the CPUs of their set in ascending order. The plan has them elsewhere.
    CpusInTurn {
        /// The set.
        set: &'static str,
        /// Its CPUs.
        cpus: CpuSet,
    },
    /// Workers are numbered by their CPU. The plan has them in another order.
    WorkersByCore {
        /// The CPU of each worker in the plan.
        cpus: Vec<CpuId>,
    },
    /// The plan's memory policy is not in the text.
    MemoryLeftOut {
        /// The policy.
        policy: MemoryPolicy,
    },
    /// The plan is for this number of threads.
    ForNumber {
        /// The number.
        n: u32,
    },
}

/// A tool that has no words for some threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutBy {
    /// They are not lcores.
    Dpdk,
    /// They belong to no CPU set.
    Suricata,
    /// They are neither its main thread nor workers.
    Vpp,
}

//! Memory on paper: threads are slower by what they read from other nodes.

use pinwise_measure::MemoryPolicy;
use pinwise_topology::{CpuId, Machine};
use std::collections::BTreeSet;

/// The memory of a workload on a machine with several nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemoteMemory {
    /// What becomes of it when threads are pinned.
    pub policy: MemoryPolicy,
    /// Where it lies before: an index into [`Machine::numa`].
    pub home: usize,
    /// The share by which a thread is slower if all of its memory is on other nodes.
    pub latency: f64,
}

impl RemoteMemory {
    /// By what a thread on `node` takes longer. Its instance runs on the nodes `used`, of `all`.
    pub(super) fn factor(&self, node: usize, used: &BTreeSet<usize>, all: usize) -> f64 {
        let remote = match self.policy {
            MemoryPolicy::Follow if used.len() == 1 => 0.0,
            MemoryPolicy::Follow | MemoryPolicy::Leave => f64::from(node != self.home),
            MemoryPolicy::Interleave => 1.0 - 1.0 / all.max(1) as f64,
        };
        1.0 + self.latency * remote
    }

    /// Where memory lies while nothing is pinned: what follows has no one to follow.
    pub(super) fn unpinned(self) -> Self {
        let policy = match self.policy {
            MemoryPolicy::Leave | MemoryPolicy::Follow => MemoryPolicy::Leave,
            MemoryPolicy::Interleave => MemoryPolicy::Interleave,
        };
        Self { policy, ..self }
    }
}

/// The node of a context.
pub(super) fn node_of(machine: &Machine, cpu: CpuId) -> usize {
    machine.numa.iter().position(|node| node.cpus.contains(cpu)).unwrap_or_default()
}

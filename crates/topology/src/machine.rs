//! A machine: its tree of sharing domains, its contexts, caches, NUMA nodes and kinds of cores.

use crate::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

/// What the contexts of a domain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DomainKind {
    /// Everything.
    Machine,
    /// A grouping the firmware names without a standard meaning (drawer, book, board).
    Group,
    /// A socket.
    Package,
    /// Contexts local to one NUMA node.
    Numa,
    /// A die of a multi-die package.
    Die,
    /// Contexts that share a fourth-level cache.
    L4,
    /// Contexts that share a third-level cache.
    L3,
    /// A cluster of cores that share an interconnect or cache tags (`topology/cluster_id`).
    Cluster,
    /// Contexts that share a second-level cache.
    L2,
    /// A core.
    Core,
    /// A group of strands within a core that share an issue pipeline (UltraSPARC T2).
    Pipe,
    /// One hardware context.
    Pu,
}

/// A node of the tree: some contexts and what they share. Children are disjoint and in ascending order of first context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// What its contexts share.
    pub kind: DomainKind,
    /// The kernel's or firmware's number (`P#`), where one exists.
    pub os_index: Option<u32>,
    /// Its contexts.
    pub cpus: CpuSet,
    /// The domains within; empty for a [`DomainKind::Pu`].
    pub children: Vec<Domain>,
}

/// One online hardware context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The kernel's number.
    pub cpu: CpuId,
    /// Index into [`Machine::kinds`].
    pub kind: usize,
}

/// A kind of core on a hybrid machine; an ordinary machine has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreKind {
    /// `performance`, `efficiency`, … or the kernel's name of its PMU (`cpu_core`).
    pub name: String,
    /// The contexts of this kind.
    pub cpus: CpuSet,
    /// Relative capacity where the kernel tells it (`cpu_capacity`, 1024 = fastest), or the maximum frequency in kHz.
    pub capacity: Option<u64>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache and the contexts that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 for the level next to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Capacity in bytes, where known.
    pub size: Option<u64>,
    /// Line size in bytes, where known.
    pub line: Option<u32>,
    /// Associativity, where known.
    pub ways: Option<u32>,
    /// The contexts that share it.
    pub cpus: CpuSet,
}

/// A NUMA node; one without contexts (memory only) has an empty set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// The kernel's number.
    pub os_index: u32,
    /// The contexts local to it.
    pub cpus: CpuSet,
    /// Its memory in bytes, where known.
    pub memory: Option<u64>,
}

/// ACPI SLIT distances between NUMA nodes, in the order of [`Machine::numa`]; 10 is local.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances(pub Vec<Vec<u32>>);

/// A machine as a value: live, recorded or synthetic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// For people: the CPU model, or the shape or model it was built from.
    pub name: String,
    /// The root of the tree of domains, over all online contexts.
    pub root: Domain,
    /// The online contexts in tree order; the index is the logical number (hwloc's `L#`).
    pub contexts: Vec<Context>,
    /// The kinds of cores, most capable first.
    pub kinds: Vec<CoreKind>,
    /// Every cache.
    pub caches: Vec<Cache>,
    /// Every NUMA node, ascending.
    pub numa: Vec<NumaNode>,
    /// Distances between them, where the firmware tells.
    pub distances: Option<Distances>,
    /// Contexts that exist but are offline.
    pub offline: CpuSet,
    /// Online contexts that the cpuset and the affinity mask of the asker allow.
    pub allowed: CpuSet,
}

/// Why a description is no machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// Neither a shape, a built-in model, nor a description that could be parsed.
    #[error("{what}: {reason}")]
    Malformed {
        /// The input (a name, a path within a snapshot, `hwloc XML, line 12`).
        what: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Machine {
    /// The context with logical number `index`, as the kernel numbers it.
    pub fn cpu(&self, index: usize) -> Option<CpuId> {
        self.contexts.get(index).map(|context| context.cpu)
    }
}

//! A machine: its tree of sharing domains, its contexts, caches, NUMA nodes and kinds of cores.

use crate::{CpuId, CpuSet, Domain, DomainKind, MachineNote, machine_note};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// Relative capacity if the kernel reports it (`cpu_capacity`, 1024 = fastest), or the maximum
    /// frequency in kHz.
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
    /// Whether the cpuset of the process that read the machine allows this memory.
    pub allowed: bool,
}

/// CPUs that one control group has for itself. In version 1, the groups above it may use them, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusiveCpus {
    /// Its path below the root of control groups: `/app.slice`.
    pub group: String,
    /// The CPUs.
    pub cpus: CpuSet,
}

impl NumaNode {
    /// Whether it has memory that may be used: true unless something says otherwise.
    fn has_memory(&self) -> bool {
        self.allowed && self.memory != Some(0)
    }
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
    /// Distances between them, if the firmware reports them.
    pub distances: Option<Distances>,
    /// Contexts that exist but are offline.
    pub offline: CpuSet,
    /// Online contexts that the process that read the machine may use, by cpuset and affinity mask.
    pub allowed: CpuSet,
    /// Contexts that the scheduler leaves to threads confined to them (`isolcpus`, or an isolated
    /// cpuset).
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub isolated: CpuSet,
    /// Contexts without a timer tick while one thread runs there (`nohz_full`).
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub nohz_full: CpuSet,
    /// Control groups that have CPUs for themselves (a partition, or an exclusive cpuset).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusive: Vec<ExclusiveCpus>,
    /// Contradictions in the description, and what was left out because of them.
    #[serde(deserialize_with = "machine_note::notes")]
    pub notes: Vec<MachineNote>,
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

impl MachineError {
    pub(crate) fn malformed(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed { what: what.into(), reason: reason.into() }
    }
}

impl Machine {
    /// A machine with these domains: contexts in tree order, all online contexts allowed, one NUMA
    /// node, one kind of core.
    pub(crate) fn from_tree(name: String, root: Domain) -> Self {
        let all = root.cpus.clone();
        let pus = root.walk().filter(|domain| domain.kind == DomainKind::Pu);
        let contexts =
            pus.filter_map(|pu| pu.cpus.first()).map(|cpu| Context { cpu, kind: 0 }).collect();
        Self {
            name,
            root,
            contexts,
            kinds: vec![CoreKind { name: "core".into(), cpus: all.clone(), capacity: None }],
            caches: Vec::new(),
            numa: vec![NumaNode { os_index: 0, cpus: all.clone(), memory: None, allowed: true }],
            distances: None,
            offline: CpuSet::new(),
            allowed: all,
            isolated: CpuSet::new(),
            nohz_full: CpuSet::new(),
            exclusive: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the kinds of cores, and with them the kind of every context.
    pub(crate) fn set_kinds(&mut self, kinds: Vec<CoreKind>) {
        for context in &mut self.contexts {
            context.kind =
                kinds.iter().position(|kind| kind.cpus.contains(context.cpu)).unwrap_or(0);
        }
        self.kinds = kinds;
    }

    /// The online contexts.
    pub fn online(&self) -> &CpuSet {
        &self.root.cpus
    }

    /// The domains of one kind, in tree order.
    pub fn domains(&self, kind: DomainKind) -> impl Iterator<Item = &Domain> {
        self.root.walk().filter(move |domain| domain.kind == kind)
    }

    /// The NUMA nodes with memory that may be used.
    pub fn memory_nodes(&self) -> BTreeSet<u32> {
        let with_memory = self.numa.iter().filter(|node| node.has_memory());
        with_memory.map(|node| node.os_index).collect()
    }

    /// This machine for a program that may use memory on these nodes, numbered by the kernel. What
    /// pinwise may not use stays out: the kernel moves no memory there for it.
    pub fn with_memory_on(mut self, nodes: &CpuSet) -> Self {
        for node in &mut self.numa {
            node.allowed &= nodes.contains(CpuId(node.os_index));
        }
        self
    }

    /// The nodes with memory that are nearest to `cpus`. It is the node of a context if that has
    /// memory.
    pub fn nearest_memory(&self, cpus: &CpuSet) -> BTreeSet<u32> {
        let distance = |from: usize, to: usize| match &self.distances {
            Some(Distances(rows)) => rows.get(from).and_then(|row| row.get(to)).copied(),
            None => Some(u32::from(from != to)),
        };
        let used = self.numa.iter().enumerate().filter(|(_, node)| !node.cpus.is_disjoint(cpus));
        let nearest = |(from, _): (usize, &NumaNode)| {
            let with_memory = self.numa.iter().enumerate().filter(|(_, node)| node.has_memory());
            let near = with_memory
                .min_by_key(|&(to, _)| (from != to, distance(from, to).unwrap_or(u32::MAX)));
            near.map(|(_, node)| node.os_index)
        };
        used.filter_map(nearest).collect()
    }

    /// The caches of one level that hold data (data or unified).
    pub fn data_caches(&self, level: u8) -> impl Iterator<Item = &Cache> {
        self.caches
            .iter()
            .filter(move |cache| cache.level == level && cache.kind != CacheKind::Instruction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_context_is_its_nodes_or_the_nearest() {
        let mut machine = Machine::from_shape("numa:3 core:2").unwrap();
        let nearest = |machine: &Machine, cpus: &str| -> Vec<u32> {
            machine.nearest_memory(&CpuSet::parse_list(cpus).unwrap()).into_iter().collect()
        };
        assert_eq!(nearest(&machine, "2"), [1]);
        assert_eq!(nearest(&machine, "1,5"), [0, 2]);
        machine.numa[1].memory = Some(0);
        assert_eq!(nearest(&machine, "3"), [0]);
        let far = vec![vec![10, 31, 21], vec![31, 10, 21], vec![21, 21, 10]];
        machine.distances = Some(Distances(far));
        assert_eq!(nearest(&machine, "3"), [2]);
        assert_eq!(machine.memory_nodes().into_iter().collect::<Vec<_>>(), [0, 2]);
        let other = machine.clone().with_memory_on(&CpuSet::parse_list("0-1").unwrap());
        assert_eq!(nearest(&other, "0-5"), [0]);
        assert_eq!(nearest(&other.with_memory_on(&machine.allowed), "0-5"), [0], "pinwise's own");
    }
}

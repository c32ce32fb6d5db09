//! [`Domain`]: contexts of a machine, and what they share.

use crate::CpuSet;
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

/// A node of the tree: some contexts and what they share. Children are disjoint and in ascending
/// order of first context.
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

impl DomainKind {
    /// The name people read: `Package`, `L3`, `PU`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "Machine",
            Self::Group => "Group",
            Self::Package => "Package",
            Self::Numa => "NUMA",
            Self::Die => "Die",
            Self::L4 => "L4",
            Self::L3 => "L3",
            Self::Cluster => "Cluster",
            Self::L2 => "L2",
            Self::Core => "Core",
            Self::Pipe => "Pipe",
            Self::Pu => "PU",
        }
    }
}

impl Domain {
    /// This domain and all within it, each before its children.
    pub fn walk(&self) -> DomainWalk<'_> {
        DomainWalk { pending: vec![self] }
    }
}

/// The iterator of [`Domain::walk`].
#[derive(Clone, Debug)]
pub struct DomainWalk<'a> {
    pending: Vec<&'a Domain>,
}

impl<'a> Iterator for DomainWalk<'a> {
    type Item = &'a Domain;

    fn next(&mut self) -> Option<&'a Domain> {
        let domain = self.pending.pop()?;
        self.pending.extend(domain.children.iter().rev());
        Some(domain)
    }
}

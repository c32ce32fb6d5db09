//! What matters of a machine for placing threads: the allowed contexts, the domains they share, which domains are alike.

use crate::{CpuId, CpuSet, DomainKind, Machine};
use serde::{Deserialize, Serialize};

/// Which domains count as interchangeable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alike {
    /// Domains of equal structure, caches, core kinds and (symmetric) NUMA distances.
    #[default]
    ByStructure,
    /// As above, but every NUMA node is unlike any other: right for a live process whose memory already has a place.
    ExceptNuma,
}

/// The sharing tree over the allowed contexts of a machine. Domains with the same contexts are merged; leaves are
/// contexts in tree order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingTree {
    leaves: Vec<CpuId>,
}

impl SharingTree {
    /// The tree over `machine.allowed`.
    pub fn new(machine: &Machine, alike: Alike) -> Self {
        Self::over(machine, &machine.allowed, alike)
    }

    /// The tree over the contexts of `cpus` that exist and are online.
    pub fn over(_machine: &Machine, _cpus: &CpuSet, _alike: Alike) -> Self {
        todo!()
    }

    /// The contexts, in leaf order.
    pub fn leaves(&self) -> &[CpuId] {
        &self.leaves
    }

    /// The levels with more than one domain per parent somewhere, outermost first: kind, and the number of children per
    /// parent where it is the same everywhere.
    pub fn levels(&self) -> Vec<(DomainKind, Option<usize>)> {
        todo!()
    }
}

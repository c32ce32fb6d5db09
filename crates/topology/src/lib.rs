#![doc = include_str!("../README.md")]
//!
//! # What is here
//!
//! - *Machines*: a [`Machine`] is a value. Live, recorded and synthetic machines are one type, and
//!   any number of them can exist at once. A [`Snapshot`] holds the files of `/sys` and `/proc`
//!   that describe a machine, live or recorded.
//! - *Latencies*: a [`LatencyMatrix`] has the time of a cache line between any two contexts.
//!   [`LatencyLevels`] is the tree that it implies, and [`LatencyComparison`] compares that tree
//!   with the one a machine declares.
//! - *Assignments*: a [`SharingTree`] is what matters of a machine for placing threads. It has the
//!   allowed contexts, grouped by the resources they share, and says which groups are alike. A
//!   [`Space`] is every [`Assignment`] of a number of threads to such a tree, up to swaps of alike
//!   groups. A thread may keep to some of the contexts. A [`Policy`] is a rule that places any
//!   number of threads.

#![forbid(unsafe_code)]

mod assignment;
mod balanced;
mod core_kinds;
mod cpuset;
mod domain;
mod fingerprint;
mod hwloc_xml;
mod latency;
mod machine;
mod machine_note;
mod models;
mod nesting;
mod policy;
mod random;
#[cfg(test)]
mod random_machine;
mod shape;
mod snapshot;
mod space;
mod sysfs;
mod tree;

pub use assignment::Assignment;
pub use balanced::balanced;
pub use cpuset::{CpuId, CpuSet, CpuSetError};
pub use domain::{Domain, DomainKind, DomainWalk};
pub use fingerprint::{Fingerprint, digest};
pub use latency::{
    DeclaredGroups, Difference, HeaderCheck, LatencyClass, LatencyComparison, LatencyError,
    LatencyLevel, LatencyLevels, LatencyMatrix, LatencyUnit, LevelMatch, MctCache, MctFile, Oddity,
    Pairs,
};
pub use machine::{
    Cache, CacheKind, Context, CoreKind, Distances, ExclusiveCpus, Machine, MachineError, NumaNode,
};
pub use machine_note::MachineNote;
pub use policy::{Footprint, Policy};
pub use random::Random;
pub use snapshot::{Snapshot, SnapshotFiles, component};
pub use space::{PerContext, Space, SpaceError, are_countable};
pub use sysfs::is_exclusive;
pub use tree::{Alike, SharingTree};

//! Policies of placement: rules that say where any number of threads goes, whatever they do.
//!
//! A policy is an order of all contexts. Threads take them one by one, and begin again when all
//! hold one. So a context holds a second thread only where every context holds one.
//!
//! ```text
//! 2 packages of 2 cores of 2 contexts; contexts 0 and 1 are one core:
//!
//! compact  0 1 2 3 4 5 6 7    contexts of a core, cores of a package, packages
//! cores    0 2 4 6 1 3 5 7    one context of each core, package by package; then the others
//! scatter  0 4 2 6 1 5 3 7    round the packages, in these round the cores, then the others
//! ```
//!
//! `compact` and `scatter` are the extremes that tools for pinning offer (OpenMP's `close` and
//! `spread`, Intel's `compact` and `scatter`). `cores` is between them. A policy takes threads in
//! the given order. Only a search for the placement finds differences between threads.
//!
//! Where cores are of several kinds, faster ones are taken first. The fourth policy takes only the
//! fastest kind.
//!
//! ```text
//! 3 fast cores of 2 contexts (0 1, 2 3, 4 5) and 2 slow cores (6, 7):
//!
//! compact  0 1 2 3 4 5 6 7    all contexts of the fast cores, then the slow cores
//! cores    0 2 4 6 7 1 3 5    each core has a thread before any has two
//! fast     0 2 4 1 3 5        as cores, without the slow ones
//! ```

use crate::{Assignment, DomainKind, PerContext, SharingTree, Space};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// A rule that says where any number of threads goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// As near to each other as possible. It fills the contexts of a core, then the cores of a
    /// package, then packages.
    Compact,
    /// One thread on each core, package by package, so that they are otherwise near. Then come the
    /// second contexts of all cores, then the third.
    Cores,
    /// As far from each other as possible: round the packages, then the cores, then the contexts.
    Scatter,
    /// Like [`Policy::Cores`], on the fastest kind of cores only.
    Fast,
}

/// The part of a machine that placed threads use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Footprint {
    /// Cores with at least one thread.
    pub cores: u32,
    /// Packages with at least one thread. On a machine with one package, the largest domains that
    /// share a cache or memory count.
    pub packages: u32,
}

impl Policy {
    /// The version of their orders. In version 1, faster cores did not come first.
    pub const ORDER: u32 = 2;

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Compact, Self::Cores, Self::Scatter, Self::Fast];

    /// The name shown to the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Cores => "cores",
            Self::Scatter => "scatter",
            Self::Fast => "fast",
        }
    }

    /// Where `threads` threads go, in their order.
    ///
    /// # Panics
    /// If the tree has no contexts and there are threads.
    pub fn assign(self, tree: &SharingTree, threads: usize) -> Assignment {
        let order = self.order(tree);
        Assignment::new((0..threads).map(|thread| order[thread % order.len()]).collect())
    }

    /// Policies that put `threads` threads in different places, up to swaps of alike domains and of
    /// threads. The first of several with the same result. [`Policy::Fast`] is left out if the
    /// fastest kind of cores has too few contexts. Empty if the tree has no contexts.
    pub fn different(tree: &SharingTree, threads: usize) -> Vec<(Self, Assignment)> {
        let Ok(space) = Space::new(tree.clone(), threads, PerContext::Any) else {
            return Vec::new();
        };
        let mut seen = BTreeSet::new();
        let has_room = |policy: &Self| *policy != Self::Fast || threads <= policy.order(tree).len();
        let policies = Self::ALL.into_iter().filter(has_room);
        let placed = policies.map(|policy| (policy, policy.assign(tree, threads)));
        let is_new = |(_, assignment): &(Self, Assignment)| {
            let mut leaves = assignment.leaves().to_vec();
            leaves.sort_unstable();
            seen.insert(space.canonical(&Assignment::new(leaves)))
        };
        placed.filter(is_new).collect()
    }

    /// The contexts, in the order in which threads take them.
    fn order(self, tree: &SharingTree) -> Vec<u32> {
        let kinds: BTreeSet<usize> = tree.core_kinds().iter().copied().collect();
        let mut taken: HashMap<u32, u32> = HashMap::new();
        let turn = |leaf: u32| {
            let turns = taken.entry(tree.core(leaf)).or_default();
            *turns += 1;
            (*turns, tree.core_kind(leaf), leaf)
        };
        // Within a core, in the order in which contexts are far from each other. Kinds are in the
        // order of their speed.
        let mut order: Vec<(u32, usize, u32)> =
            kinds.iter().flat_map(|&kind| scattered(tree, 0, kind)).map(turn).collect();
        match self {
            Self::Compact => order.sort_by_key(|&(_, kind, leaf)| (kind, leaf)),
            Self::Cores => order.sort(),
            Self::Scatter => order.sort_by_key(|&(turn, kind, _)| (turn, kind)),
            Self::Fast => {
                order.retain(|&(_, kind, _)| Some(&kind) == kinds.first());
                order.sort();
            }
        }
        order.into_iter().map(|(.., leaf)| leaf).collect()
    }
}

/// The leaves of a node whose cores are of this kind: round robin over its children, recursively.
fn scattered(tree: &SharingTree, node: usize, kind: usize) -> Vec<u32> {
    let Some(own) = tree.nodes().get(node) else { return Vec::new() };
    let mut children: Vec<usize> = own.groups.iter().flatten().copied().collect();
    if children.is_empty() {
        return own.leaves.clone().filter(|&leaf| tree.core_kind(leaf) == kind).collect();
    }
    children.sort_unstable_by_key(|&child| tree.nodes()[child].leaves.start);
    let orders: Vec<Vec<u32>> =
        children.into_iter().map(|child| scattered(tree, child, kind)).collect();
    let longest = orders.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| orders.iter().filter_map(move |order| order.get(turn).copied()))
        .collect()
}

impl SharingTree {
    /// The part of the machine that `assignment` uses.
    ///
    /// # Panics
    /// If a thread is on a leaf that does not exist.
    pub fn footprint(&self, assignment: &Assignment) -> Footprint {
        let levels: Vec<DomainKind> = self.levels().into_iter().map(|(kind, _)| kind).collect();
        // Groups of packages are outside of these.
        let packages = levels.iter().find(|kind| **kind == DomainKind::Package);
        let coarse = packages.or(levels.first()).copied().filter(|kind| *kind <= DomainKind::L3);
        let package = |leaf: u32| {
            coarse.map_or(0, |level| {
                self.within(leaf, level).pop().map_or(leaf, |domain| domain.start)
            })
        };
        let count = |of: &dyn Fn(u32) -> u32| {
            assignment.leaves().iter().map(|&leaf| of(leaf)).collect::<BTreeSet<u32>>().len() as u32
        };
        Footprint { cores: count(&|leaf| self.core(leaf)), packages: count(&package) }
    }

    /// The first leaf of a leaf's core.
    fn core(&self, leaf: u32) -> u32 {
        self.within(leaf, DomainKind::Core).pop().map_or(leaf, |core| core.start)
    }
}

#[cfg(test)]
mod tests;

//! Policies of placement: rules that say where any number of threads goes, whatever they do.
//!
//! A policy is an order of all contexts. Threads take them one by one, and begin anew when all hold
//! one. So a context holds a second thread only where every context holds one.
//!
//! ```text
//! 2 packages of 2 cores of 2 contexts; contexts 0 and 1 are one core:
//!
//! compact  0 1 2 3 4 5 6 7    contexts of a core, cores of a package, packages
//! cores    0 2 4 6 1 3 5 7    one context of each core, package by package; then the others
//! scatter  0 4 2 6 1 5 3 7    round the packages, in these round the cores, then the others
//! ```
//!
//! Two are the extremes that tools for pinning offer (OpenMP's `close` and `spread`, Intel's
//! `compact` and `scatter`). One is between. Threads are taken in the given order, and cores as if
//! they were all of one kind. A search for the placement finds the differences between threads or
//! cores.

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
}

/// What threads in their places use of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Footprint {
    /// Cores with a thread at least.
    pub cores: u32,
    /// Packages with a thread at least. On a machine with one package, the largest domains that
    /// share a cache or memory count.
    pub packages: u32,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Compact, Self::Cores, Self::Scatter];

    /// The name shown to the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Cores => "cores",
            Self::Scatter => "scatter",
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
    /// threads. Of those that do the same, it gives the first. None where the tree has no contexts.
    pub fn different(tree: &SharingTree, threads: usize) -> Vec<(Self, Assignment)> {
        let Ok(space) = Space::new(tree.clone(), threads, PerContext::Any) else {
            return Vec::new();
        };
        let mut seen = BTreeSet::new();
        let placed = Self::ALL.map(|policy| (policy, policy.assign(tree, threads)));
        let is_new = |(_, assignment): &(Self, Assignment)| {
            let mut leaves = assignment.leaves().to_vec();
            leaves.sort_unstable();
            seen.insert(space.canonical(&Assignment::new(leaves)))
        };
        placed.into_iter().filter(is_new).collect()
    }

    /// The contexts, those first that are taken first.
    fn order(self, tree: &SharingTree) -> Vec<u32> {
        match self {
            Self::Compact => (0..tree.leaves().len() as u32).collect(),
            Self::Scatter => scattered(tree, 0),
            Self::Cores => {
                // Within a core, in the order in which contexts are far from each other.
                let mut taken: HashMap<u32, u32> = HashMap::new();
                let turn = |leaf: u32| {
                    let turns = taken.entry(tree.core(leaf)).or_default();
                    *turns += 1;
                    (*turns, leaf)
                };
                let mut turns: Vec<(u32, u32)> = scattered(tree, 0).into_iter().map(turn).collect();
                turns.sort_unstable();
                turns.into_iter().map(|(_, leaf)| leaf).collect()
            }
        }
    }
}

/// The leaves of a node, round its children, and in these likewise.
fn scattered(tree: &SharingTree, node: usize) -> Vec<u32> {
    let Some(own) = tree.nodes().get(node) else { return Vec::new() };
    let mut children: Vec<usize> = own.groups.iter().flatten().copied().collect();
    if children.is_empty() {
        return own.leaves.clone().collect();
    }
    children.sort_unstable_by_key(|&child| tree.nodes()[child].leaves.start);
    let orders: Vec<Vec<u32>> = children.into_iter().map(|child| scattered(tree, child)).collect();
    let longest = orders.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|turn| orders.iter().filter_map(move |order| order.get(turn).copied()))
        .collect()
}

impl SharingTree {
    /// What `assignment` uses of the machine.
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

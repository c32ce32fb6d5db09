//! Every assignment of a number of threads to a machine, up to swaps of alike domains.

use crate::{Assignment, Random, SharingTree};
use num_bigint::BigUint;

/// How many threads one context may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerContext {
    /// At most this many.
    AtMost(usize),
    /// Any number.
    Any,
}

/// Why there is no such space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// No context is allowed.
    #[error("no hardware context is allowed: check the cpuset and the affinity mask (taskset -p $$)")]
    NoContexts,
    /// More threads than places.
    #[error(
        "{threads} threads do not fit on {contexts} contexts with at most {per_context} per context: raise --per-context"
    )]
    TooManyThreads {
        /// Threads asked for.
        threads: usize,
        /// Contexts there are.
        contexts: usize,
        /// Threads per context allowed.
        per_context: usize,
    },
}

/// All assignments of `threads` threads to the leaves of a tree.
#[derive(Clone, Debug)]
pub struct Space {
    tree: SharingTree,
    threads: usize,
    per_context: PerContext,
}

impl Space {
    /// The space; at least one context, and room for every thread.
    pub fn new(tree: SharingTree, threads: usize, per_context: PerContext) -> Result<Self, SpaceError> {
        Ok(Self { tree, threads, per_context })
    }

    /// The tree it places threads on.
    pub fn tree(&self) -> &SharingTree {
        &self.tree
    }

    /// How many threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// How many threads a context may hold.
    pub fn per_context(&self) -> PerContext {
        self.per_context
    }

    /// The exact number of classes: assignments that no swap of alike domains turns into one another.
    pub fn count(&self) -> BigUint {
        todo!()
    }

    /// The exact number of labelled placements (functions from threads to contexts).
    pub fn labelled(&self) -> BigUint {
        todo!()
    }

    /// The representative of the class of `assignment`.
    pub fn canonical(&self, _assignment: &Assignment) -> Assignment {
        todo!()
    }

    /// How many labelled placements the class of `assignment` has.
    pub fn class_size(&self, _assignment: &Assignment) -> BigUint {
        todo!()
    }

    /// A labelled placement drawn uniformly, in canonical form: a class is drawn with probability proportional to its size.
    pub fn sample(&self, _random: &mut Random) -> Assignment {
        todo!()
    }

    /// The representative of every class, once, in the order of [`Space::rank`].
    pub fn classes(&self) -> Box<dyn Iterator<Item = Assignment> + '_> {
        todo!()
    }

    /// The position of the class of `assignment` in [`Space::classes`].
    pub fn rank(&self, _assignment: &Assignment) -> BigUint {
        todo!()
    }

    /// The class at position `rank`, which must be below [`Space::count`].
    pub fn unrank(&self, _rank: &BigUint) -> Option<Assignment> {
        todo!()
    }

    /// Share `index` of `shares` of the enumeration: together all classes, sizes equal to within one.
    pub fn share(&self, _index: usize, _shares: usize) -> Box<dyn Iterator<Item = Assignment> + '_> {
        todo!()
    }
}

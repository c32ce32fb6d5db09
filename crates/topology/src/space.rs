//! Every assignment of a number of threads to a machine, up to swaps of alike domains.
//!
//! **Terms.** A *labelled assignment* is a function from threads to contexts; threads have
//! identities. Swapping alike domains with all they hold turns one labelled assignment into another
//! that performs the same. All assignments that such swaps can reach are a *class*. The *canonical*
//! member of a class represents it. Within every group of alike domains or contexts, those that
//! hold threads come first. They are in the order of their smallest thread. The canonical member is
//! also the lexicographically smallest one. Restricted growth finds it. Thread after thread goes
//! into a domain in use, or into the first empty one of its group.
//!
//! **Counting** is by exponential generating functions over the tree (see `series`). A context that
//! holds at most c threads has the series sum over k <= c of x^k/k!. The series of different places
//! are multiplied. Take m alike places with the series f each. Filled ones hold different threads,
//! so the j! orders of j filled places count as one. Their series is the sum over j <= m of
//! (f-1)^j/j!. The coefficient at the root is the number of classes.
//!
//! **Masks.** A thread may keep to some contexts. Then only contexts that the same threads may use
//! are alike. The series have one variable for each kind of thread: see `masks`.
//!
//! **Cost.** With n threads, counting takes O(n^2) products of numbers of O(n log n) bits per class
//! of domains. The canonical form and the next class take O(n · depth). So does a sample where a
//! context holds one thread or any number.

mod classes;
mod masks;
mod sample;
mod series;

use crate::{Assignment, CpuSet, Random, SharingTree};
use classes::Classes;
use masks::Masks;
pub use masks::are_countable;
use num_bigint::BigUint;
use sample::Prefixes;
use serde::{Deserialize, Serialize};
use series::{Degrees, PowerSeries};
use std::sync::OnceLock;

/// How many threads one context may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerContext {
    /// At most this many.
    AtMost(usize),
    /// Any number.
    Any,
}

/// Why there is no such space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SpaceError {
    /// No context is allowed.
    #[error(
        "no hardware context is allowed: check the cpuset and the affinity mask (taskset -p $$)"
    )]
    NoContexts,
    /// More threads than places.
    #[error(
        "{threads} threads do not fit on {contexts} context{} with at most {per_context} per \
         context: raise --per-context, or allow more contexts",
        if *.contexts == 1 { "" } else { "s" }
    )]
    TooManyThreads {
        /// Threads asked for.
        threads: usize,
        /// Contexts there are.
        contexts: usize,
        /// Threads per context allowed.
        per_context: usize,
    },
    /// A thread keeps to CPUs that are not among the contexts.
    #[error("a thread keeps to CPU {cpus}, which the search does not have: allow that")]
    Elsewhere {
        /// The CPUs that the thread keeps to.
        cpus: String,
    },
    /// Some threads keep to fewer contexts than they need.
    #[error(
        "threads keep to too few CPUs to have at most {per_context} on each: raise --per-context, \
         or widen their affinities (taskset)"
    )]
    TooNarrow {
        /// Threads per context allowed.
        per_context: usize,
    },
    /// The threads keep to too many different sets of CPUs: the assignments cannot be counted.
    #[error("the threads keep to too many different sets of CPUs: place fewer of them (--include)")]
    TooManyMasks,
}

/// All assignments of threads to the leaves of a tree.
///
/// Methods that take an [`Assignment`] expect one of this space.
#[derive(Clone, Debug)]
pub struct Space {
    tree: SharingTree,
    /// The tree whose exchanges also keep cells; `None` if all leaves are in one.
    cells: Option<SharingTree>,
    masks: Masks,
    threads: usize,
    per_context: PerContext,
    degrees: OnceLock<Degrees>,
    /// The series of an empty domain, by class; computed when first asked for.
    empty: OnceLock<Vec<PowerSeries>>,
    /// They exist only if a context may hold several threads, but not any number, or if threads
    /// keep to masks.
    prefixes: OnceLock<Prefixes>,
}

impl Space {
    /// The space of threads that may be anywhere; at least one context, and room for every thread.
    pub fn new(
        tree: SharingTree,
        threads: usize,
        per_context: PerContext,
    ) -> Result<Self, SpaceError> {
        Self::masked(tree, &vec![None; threads], per_context)
    }

    /// The space of threads that keep to these CPUs, each to its own; `None` may be anywhere.
    pub fn masked(
        tree: SharingTree,
        cpus: &[Option<CpuSet>],
        per_context: PerContext,
    ) -> Result<Self, SpaceError> {
        if tree.leaves().is_empty() {
            return Err(SpaceError::NoContexts);
        }
        let away = |own: &&CpuSet| !tree.leaves().iter().any(|&cpu| own.contains(cpu));
        if let Some(away) = cpus.iter().flatten().find(away) {
            return Err(SpaceError::Elsewhere { cpus: away.to_string() });
        }
        let masks = Masks::new(&tree, cpus);
        let cells = (!masks.is_open()).then(|| tree.marked(&masks.cells));
        Self::of(tree, cells, masks, cpus.len(), per_context)
    }

    /// The same threads on the same tree, with another number of threads per context.
    pub fn with_per_context(&self, per_context: PerContext) -> Result<Self, SpaceError> {
        let (tree, masks) = (self.tree.clone(), self.masks.clone());
        Self::of(tree, self.cells.clone(), masks, self.threads, per_context)
    }

    fn of(
        tree: SharingTree,
        cells: Option<SharingTree>,
        masks: Masks,
        threads: usize,
        per_context: PerContext,
    ) -> Result<Self, SpaceError> {
        if let PerContext::AtMost(per_context) = per_context {
            let contexts = tree.leaves().len();
            if contexts.saturating_mul(per_context) < threads {
                return Err(SpaceError::TooManyThreads { threads, contexts, per_context });
            }
            if !masks.leave_room(&vec![0; contexts], 0, per_context) {
                return Err(SpaceError::TooNarrow { per_context });
            }
        }
        if !masks.are_few() {
            return Err(SpaceError::TooManyMasks);
        }
        Ok(Self {
            tree,
            cells,
            masks,
            threads,
            per_context,
            degrees: OnceLock::new(),
            empty: OnceLock::new(),
            prefixes: OnceLock::new(),
        })
    }

    /// Whether some thread keeps to some of the contexts.
    pub fn is_masked(&self) -> bool {
        self.cells.is_some()
    }

    /// Whether a thread may be on a leaf.
    pub fn may(&self, thread: usize, leaf: u32) -> bool {
        self.masks.may(thread, leaf)
    }

    /// Whether an assignment to leaves of the tree is one of this space.
    pub fn allows(&self, assignment: &Assignment) -> bool {
        let fits = |most: usize| self.held(assignment).into_iter().all(|held| held <= most);
        let room = match self.per_context {
            PerContext::AtMost(most) => fits(most),
            PerContext::Any => true,
        };
        room && self.masks.allow(assignment)
    }

    /// An assignment of this space that is like `assignment`. A thread on a forbidden context goes
    /// to the emptiest context that it may use.
    pub fn nearest(&self, assignment: &Assignment) -> Assignment {
        if self.allows(assignment) {
            return assignment.clone();
        }
        let mut load = self.held(assignment);
        let mut held = vec![0; load.len()];
        let place = |(thread, &wanted): (usize, &u32)| {
            load[wanted as usize] -= 1;
            let mut leaves: Vec<u32> = (0..held.len() as u32).collect();
            leaves.sort_by_key(|&leaf| (leaf != wanted, load[leaf as usize], leaf));
            let fits = |&leaf: &u32| self.takes(thread, leaf, &mut held);
            // There is room for every thread in a space.
            let leaf = leaves.into_iter().find(fits).unwrap_or(wanted);
            load[leaf as usize] += 1;
            held[leaf as usize] += 1;
            leaf
        };
        Assignment::new(assignment.leaves().iter().enumerate().map(place).collect())
    }

    /// Whether all later threads still find places if a thread joins `held` threads on a leaf.
    fn takes(&self, thread: usize, leaf: u32, held: &mut [usize]) -> bool {
        if !self.masks.may(thread, leaf) {
            return false;
        }
        let PerContext::AtMost(most) = self.per_context else { return true };
        let leaf = leaf as usize;
        held[leaf] += 1;
        let later = || self.masks.leave_room(held, thread + 1, most);
        // Threads that may be anywhere have room in every space.
        let takes = held[leaf] <= most && (!self.is_masked() || later());
        held[leaf] -= 1;
        takes
    }

    /// The threads on every leaf.
    fn held(&self, assignment: &Assignment) -> Vec<usize> {
        let mut held = vec![0; self.tree.leaves().len()];
        assignment.leaves().iter().for_each(|&leaf| held[leaf as usize] += 1);
        held
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

    /// The exact number of classes: assignments that no swap of alike domains turns into one
    /// another.
    pub fn count(&self) -> BigUint {
        let root = self.swaps().nodes()[0].class;
        self.empty()[root].get(self.degrees().len() - 1).cloned().unwrap_or_default()
    }

    /// The exact number of labelled assignments (functions from threads to contexts).
    pub fn labelled(&self) -> BigUint {
        if self.capacity() == self.threads {
            let choices = self.masks.kinds.iter().zip(&self.masks.threads).map(|(may, threads)| {
                let leaves = may.iter().filter(|may| **may).count();
                BigUint::from(leaves).pow(threads.len() as u32)
            });
            return choices.product();
        }
        let (degrees, cells) = (self.degrees(), &self.masks.cells);
        let mut ways = vec![BigUint::from(1u32)];
        for cell in 0..=cells.iter().copied().max().unwrap_or(0) {
            let Some(leaf) = cells.iter().position(|other| *other == cell) else { continue };
            let leaves = cells.iter().filter(|other| **other == cell).count();
            let one = self.masks.leaf(degrees, leaf, self.capacity());
            ways = degrees.product(&ways, &degrees.power(&one, leaves));
        }
        ways.get(degrees.len() - 1).cloned().unwrap_or_default()
    }

    /// The representative of the class of `assignment`.
    ///
    /// # Panics
    /// If a thread is on a leaf that does not exist.
    pub fn canonical(&self, assignment: &Assignment) -> Assignment {
        const NOWHERE: usize = usize::MAX;
        let nodes = self.swaps().nodes();
        let mut image = vec![NOWHERE; nodes.len()];
        let mut filled = vec![0; self.swaps().groups()];
        let place = |&leaf: &u32| {
            let mut at = 0;
            for &node in self.swaps().path(leaf) {
                if image[node] == NOWHERE {
                    // Alike nodes have corresponding groups: `at` need not be the parent of `node`,
                    // only its image.
                    let next = &mut filled[nodes[at].first_group + nodes[node].group];
                    image[node] = nodes[at].groups[nodes[node].group][*next];
                    *next += 1;
                }
                at = image[node];
            }
            nodes[at].leaves.start
        };
        Assignment::new(assignment.leaves().iter().map(place).collect())
    }

    /// How many labelled assignments the class of `assignment` has.
    ///
    /// # Panics
    /// If a thread is on a leaf that does not exist.
    pub fn class_size(&self, assignment: &Assignment) -> BigUint {
        let nodes = self.swaps().nodes();
        let mut seen = vec![false; nodes.len()];
        let mut filled = vec![0; self.swaps().groups()];
        let mut size = BigUint::from(1u32);
        for &leaf in assignment.leaves() {
            for &node in self.swaps().path(leaf) {
                if !std::mem::replace(&mut seen[node], true) {
                    // The next filled member of a group of m can be any of the m - filled others.
                    let (parent, filled) = (nodes[node].parent, &mut filled[nodes[node].in_group]);
                    size *= nodes[parent].groups[nodes[node].group].len() - *filled;
                    *filled += 1;
                }
            }
        }
        size
    }

    /// Draws a labelled assignment uniformly. Returns its canonical form. The probability of a
    /// class is proportional to its size.
    pub fn sample(&self, random: &mut Random) -> Assignment {
        self.canonical(&self.sample_labelled(random))
    }

    /// The representative of every class, once, in lexicographic order.
    pub fn classes(&self) -> Box<dyn Iterator<Item = Assignment> + '_> {
        Box::new(Classes::from_start(self))
    }

    /// How many threads a context can hold at most; never more than there are.
    fn capacity(&self) -> usize {
        match self.per_context {
            PerContext::AtMost(most) => most.min(self.threads),
            PerContext::Any => self.threads,
        }
    }

    /// The tree whose exchanges turn assignments into equivalent ones.
    fn swaps(&self) -> &SharingTree {
        self.cells.as_ref().unwrap_or(&self.tree)
    }

    fn degrees(&self) -> &Degrees {
        self.degrees.get_or_init(|| self.masks.degrees())
    }

    /// The series of an empty domain, by class.
    fn empty(&self) -> &[PowerSeries] {
        self.empty.get_or_init(|| {
            let (nodes, degrees) = (self.swaps().nodes(), self.degrees());
            let classes = nodes.iter().map(|node| node.class + 1).max().unwrap_or(0);
            let mut known: Vec<Option<PowerSeries>> = vec![None; classes];
            for node in nodes.iter().rev() {
                if known[node.class].is_some() {
                    continue;
                }
                let series = if node.groups.is_empty() {
                    self.masks.leaf(degrees, node.leaves.start as usize, self.capacity())
                } else {
                    let empty = vec![BigUint::from(1u32)];
                    node.groups.iter().fold(empty, |ways, group| {
                        // Children come after their parent in preorder, so theirs are known.
                        let child =
                            known[nodes[group[0]].class].as_ref().map_or(&[][..], Vec::as_slice);
                        degrees.product(&ways, &degrees.alike(child, group.len()))
                    })
                };
                known[node.class] = Some(series);
            }
            known.into_iter().map(Option::unwrap_or_default).collect()
        })
    }
}

#[cfg(test)]
mod tests;

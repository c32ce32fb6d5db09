//! Every assignment of a number of threads to a machine, up to swaps of alike domains.
//!
//! **Terms.** A *labelled assignment* is a function from threads to contexts; threads have
//! identities. Swapping alike domains with all they hold turns one labelled assignment into another
//! that performs the same. All that can be reached in this way are a *class*. The *canonical*
//! member of a class represents it. Within every group of alike domains or contexts, those that
//! hold threads come first. They are in the order of their smallest thread. It is also the
//! lexicographically smallest member. Restricted growth gives the same member: it places thread
//! after thread, each into a domain in use or the first empty one of its group.
//!
//! **Counting** is by exponential generating functions over the tree (see `series`). A context that
//! holds at most c threads has sum over k <= c of x^k/k!. The series of different places are
//! multiplied. Take m alike places with the series f each. Filled ones hold different threads, so
//! the j! orders of j filled places count as one: sum over j <= m of (f - 1)^j/j!. The coefficient
//! at the root is the number of classes.
//!
//! **Cost.** With n threads, counting takes O(n^2) products of numbers of O(n log n) bits per class
//! of domains. The canonical form and the next class take O(n · depth). So does a sample where a
//! context holds one thread or any number.

mod classes;
mod sample;
mod series;

use crate::{Assignment, Random, SharingTree};
use classes::Classes;
use num_bigint::BigUint;
use serde::{Deserialize, Serialize};
use series::PowerSeries;
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
}

/// All assignments of `threads` threads to the leaves of a tree.
///
/// Methods that take an [`Assignment`] expect one of this space.
#[derive(Clone, Debug)]
pub struct Space {
    tree: SharingTree,
    threads: usize,
    per_context: PerContext,
    /// The series of an empty domain, by class; computed when first asked for.
    empty: OnceLock<Vec<PowerSeries>>,
    /// At `[i][r]`: in how many ways r threads can be placed on the first i contexts. It exists
    /// only if a context may hold several threads, but not any number.
    prefixes: OnceLock<Vec<PowerSeries>>,
}

impl Space {
    /// The space; at least one context, and room for every thread.
    pub fn new(
        tree: SharingTree,
        threads: usize,
        per_context: PerContext,
    ) -> Result<Self, SpaceError> {
        let contexts = tree.leaves().len();
        if contexts == 0 {
            return Err(SpaceError::NoContexts);
        }
        match per_context {
            PerContext::AtMost(per_context) if contexts.saturating_mul(per_context) < threads => {
                Err(SpaceError::TooManyThreads { threads, contexts, per_context })
            }
            _ => Ok(Self {
                tree,
                threads,
                per_context,
                empty: OnceLock::new(),
                prefixes: OnceLock::new(),
            }),
        }
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
        let root = self.tree.nodes()[0].class;
        self.empty()[root].get(self.threads).cloned().unwrap_or_default()
    }

    /// The exact number of labelled assignments (functions from threads to contexts).
    pub fn labelled(&self) -> BigUint {
        let contexts = self.tree.leaves().len();
        if self.capacity() == self.threads {
            return BigUint::from(contexts).pow(self.threads as u32);
        }
        let ways = series::power(&series::up_to(self.capacity()), contexts, self.threads);
        ways.get(self.threads).cloned().unwrap_or_default()
    }

    /// The representative of the class of `assignment`.
    ///
    /// # Panics
    /// If a thread is on a leaf that does not exist.
    pub fn canonical(&self, assignment: &Assignment) -> Assignment {
        const NOWHERE: usize = usize::MAX;
        let nodes = self.tree.nodes();
        let mut image = vec![NOWHERE; nodes.len()];
        let mut filled = vec![0; self.tree.groups()];
        let place = |&leaf: &u32| {
            let mut at = 0;
            for &node in self.tree.path(leaf) {
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
        let nodes = self.tree.nodes();
        let mut seen = vec![false; nodes.len()];
        let mut filled = vec![0; self.tree.groups()];
        let mut size = BigUint::from(1u32);
        for &leaf in assignment.leaves() {
            for &node in self.tree.path(leaf) {
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

    /// The series of an empty domain, by class.
    fn empty(&self) -> &[PowerSeries] {
        self.empty.get_or_init(|| {
            let nodes = self.tree.nodes();
            let classes = nodes.iter().map(|node| node.class + 1).max().unwrap_or(0);
            let mut known: Vec<Option<PowerSeries>> = vec![None; classes];
            for node in nodes.iter().rev() {
                if known[node.class].is_some() {
                    continue;
                }
                let series = if node.groups.is_empty() {
                    series::up_to(self.capacity())
                } else {
                    node.groups.iter().fold(series::up_to(0), |ways, group| {
                        // Children come after their parent in preorder, so theirs are known.
                        let child =
                            known[nodes[group[0]].class].as_ref().map_or(&[][..], Vec::as_slice);
                        series::product(
                            &ways,
                            &series::alike(child, group.len(), self.threads),
                            self.threads,
                        )
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

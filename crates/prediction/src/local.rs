//! The part of a machine within which threads are taken to interfere: the core-local domain.
//!
//! blackbox-scheduler.txt, section 3.1.1: once the workload is chosen, threads on a core are hardly affected by how the threads
//! of other cores are placed, so a table of what happens within one core serves for the whole processor. Which level that is
//! differs between machines (a core of the UltraSPARC T2, a core with two contexts, a cluster that shares an L2), so it is
//! an argument. All domains of the level have to be of one build, or the table of one would not serve for the other.
//!
//! A context that may hold several threads is one more level: a domain of that many *slots*.

use pinwise_topology::{DomainKind, SharingTree};
use std::ops::Range;

/// The domains of the core-local level: all alike, of `size` contexts each, in leaf order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    level: DomainKind,
    domains: usize,
    size: usize,
    /// Children per domain of each level within, outermost first, down to the slots of a context where it has several.
    arities: Vec<usize>,
    per_context: usize,
}

/// Why a level cannot be the core-local one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// The machine has no such domains.
    #[error("this machine has no {wanted}, only {there}")]
    NoSuchLevel {
        /// Asked for.
        wanted: &'static str,
        /// What it has.
        there: String,
    },
    /// One table cannot serve for domains that differ.
    #[error("the {level} domains of this machine are not all alike, so that one table cannot stand for all")]
    Irregular {
        /// Asked for.
        level: &'static str,
    },
}

impl Local {
    /// The domains of kind `level`, with at most `per_context` threads on a context (1 or more).
    ///
    /// # Errors
    /// A level that the machine does not have, or whose domains differ in build.
    pub fn new(tree: &SharingTree, level: DomainKind, per_context: usize) -> Result<Self, LocalError> {
        let contexts = tree.leaves().len() as u32;
        // A domain of one context is no domain of the tree: it is the context itself.
        let sizes_within = |leaf: u32| -> Vec<usize> {
            let around = tree.around(leaf);
            let until = around.iter().position(|(kind, _)| *kind == level).map_or(0, |position| position + 1);
            around[..until].iter().map(|(_, leaves): &(DomainKind, Range<u32>)| leaves.len()).collect()
        };
        let sizes = sizes_within(0);
        // Whatever a context is called where it is alone in its core.
        let known = level == DomainKind::Pu || tree.levels().iter().any(|(kind, _)| *kind == level);
        if sizes.is_empty() && !known {
            let mut there: Vec<&str> = tree.levels().iter().map(|(kind, _)| kind.name()).collect();
            if there.is_empty() {
                there.push(DomainKind::Pu.name());
            }
            return Err(LocalError::NoSuchLevel { wanted: level.name(), there: there.join(", ") });
        }
        let size = sizes.last().copied().unwrap_or(1);
        let irregular = LocalError::Irregular { level: level.name() };
        let alike = (0..contexts).all(|leaf| sizes_within(leaf) == sizes);
        if !alike || size == 0 || !(contexts as usize).is_multiple_of(size) {
            return Err(irregular);
        }
        let mut arities = Vec::new();
        let mut inner = 1;
        for outer in &sizes {
            if !outer.is_multiple_of(inner) {
                return Err(irregular);
            }
            arities.insert(0, outer / inner);
            inner = *outer;
        }
        if per_context > 1 {
            arities.push(per_context);
        }
        Ok(Self { level, domains: contexts as usize / size, size, arities, per_context: per_context.max(1) })
    }

    /// The level that is core-local where nobody says otherwise: the outermost one below the whole machine whose domains have
    /// at most `most` contexts; the innermost there is where all are larger. 8 (a core of the UltraSPARC T2) keeps the
    /// table of three kinds of threads in the thousands.
    pub fn usual_level(tree: &SharingTree, most: usize) -> DomainKind {
        let around = tree.around(0);
        let inner = &around[..around.len().saturating_sub(1)];
        let small = inner.iter().rev().find(|(_, leaves)| leaves.len() <= most);
        small.or(inner.first()).map_or(DomainKind::Pu, |(kind, _)| *kind)
    }

    /// Of the core-local domains.
    pub fn level(&self) -> DomainKind {
        self.level
    }

    /// How many domains.
    pub fn domains(&self) -> usize {
        self.domains
    }

    /// Contexts per domain.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Children per domain of each level within, outermost first; the last are contexts, or slots of one.
    pub fn arities(&self) -> &[usize] {
        &self.arities
    }

    /// Threads that a context may hold.
    pub fn per_context(&self) -> usize {
        self.per_context
    }

    /// Threads that a domain may hold.
    pub fn slots(&self) -> usize {
        self.size * self.per_context
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{Alike, CpuSet, Machine};

    fn tree(shape: &str) -> SharingTree {
        SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure)
    }

    #[test]
    fn a_core_of_the_t2_has_two_pipes_of_four_strands() {
        let tree = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
        let local = Local::new(&tree, DomainKind::Core, 1).unwrap();
        assert_eq!((local.domains(), local.size(), local.arities()), (8, 8, &[2, 4][..]));
        assert_eq!(Local::new(&tree, DomainKind::Pipe, 1).unwrap().arities(), [4]);
        assert_eq!(Local::new(&tree, DomainKind::Pu, 1).unwrap().arities(), [0; 0]);
        assert_eq!(Local::new(&tree, DomainKind::Core, 2).unwrap().arities(), [2, 4, 2]);
        assert_eq!(Local::usual_level(&tree, 8), DomainKind::Core);
        assert_eq!(Local::usual_level(&tree, 3), DomainKind::Pipe);
    }

    #[test]
    fn levels_that_are_not_there_or_not_alike_are_refused() {
        let error = Local::new(&tree("2x4x2"), DomainKind::L3, 1).unwrap_err().to_string();
        assert!(error.contains("no L3") && error.contains("Core"), "{error}");
        let machine = Machine::from_shape("2x4x2").unwrap();
        let some = SharingTree::over(&machine, &CpuSet::parse_list("0-4,6").unwrap(), Alike::ByStructure);
        assert!(matches!(Local::new(&some, DomainKind::Core, 1), Err(LocalError::Irregular { .. })));
        // Cores of one context are contexts.
        for level in [DomainKind::Core, DomainKind::Pu] {
            assert_eq!(Local::new(&tree("4x1"), level, 1).unwrap().size(), 1);
        }
        let two = Local::new(&tree("2"), Local::usual_level(&tree("2"), 8), 3).unwrap();
        assert_eq!((two.domains(), two.arities()), (2, &[3][..]));
    }
}

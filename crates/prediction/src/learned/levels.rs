//! What contexts share, as numbers that a model can count by.

use pinwise_topology::{Assignment, DomainKind, PerContext, SharingTree, Space};
use std::collections::BTreeMap;

/// The domains of every level of a machine, the machine itself left out.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// By level the domain of every leaf, numbered from 0.
    pub(crate) domains: Vec<Vec<usize>>,
    /// Domains of the level that has most.
    pub(crate) most_domains: usize,
    /// What sort of context a leaf is: those that are alike have one number.
    pub(crate) sorts: Vec<usize>,
    pub(crate) sort_count: usize,
}

impl Levels {
    /// The levels of `tree`, which has leaves.
    pub(crate) fn new(tree: &SharingTree) -> Self {
        let leaves = tree.leaves().len() as u32;
        let around: Vec<_> = (0..leaves).map(|leaf| tree.around(leaf)).collect();
        let mut kinds: Vec<DomainKind> = around.iter().flatten().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut domains = vec![(0..leaves as usize).collect::<Vec<_>>()];
        for kind in kinds {
            let mut numbers = BTreeMap::new();
            let mut number = |leaf: usize| {
                // A leaf without a domain of this kind around it is a domain alone.
                let domain = around[leaf].iter().find(|(other, _)| *other == kind);
                let range = domain
                    .map_or((leaf as u32, leaf as u32 + 1), |(_, range)| (range.start, range.end));
                let next = numbers.len();
                *numbers.entry(range).or_insert(next)
            };
            let level: Vec<usize> = (0..leaves as usize).map(&mut number).collect();
            // The whole machine holds everyone in any assignment.
            if level.iter().any(|domain| *domain > 0) {
                domains.push(level);
            }
        }
        let sorts = context_sorts(tree);
        let sort_count = sorts.iter().max().map_or(0, |last| last + 1);
        Self { domains, most_domains: leaves as usize, sorts, sort_count }
    }

    /// Whether the domains of a level are single contexts, on which threads take turns.
    pub(crate) fn are_contexts(&self, level: usize) -> bool {
        self.domains[level].iter().max().is_some_and(|last| last + 1 == self.most_domains)
    }
}

/// What sort of context each leaf of `tree` is: those that are alike have one number, from 0.
pub(crate) fn context_sorts(tree: &SharingTree) -> Vec<usize> {
    let one = Space::new(tree.clone(), 1, PerContext::Any);
    let first = |leaf: u32| {
        one.as_ref().map_or(0, |one| one.canonical(&Assignment::new(vec![leaf])).leaf(0))
    };
    let firsts: Vec<usize> = (0..tree.leaves().len() as u32).map(first).collect();
    let mut different = firsts.clone();
    different.sort_unstable();
    different.dedup();
    firsts.iter().map(|first| different.binary_search(first).unwrap_or_default()).collect()
}

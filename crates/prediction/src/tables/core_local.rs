//! The part of a machine within which threads are taken to interfere: the core-local domain.
//!
//! blackbox-scheduler.txt, section 3.1.1. Once the workload is chosen, the placement of threads on
//! other cores hardly affects the threads on a core. So a table of what happens within one core
//! serves for the whole processor. The level is an argument, because it differs between machines.
//! It is a core of the UltraSPARC T2, a core with two contexts, or a cluster that shares an L2.
//! Domains of one *build*, of one shape and of one kind of cores, have a table together. A hybrid
//! processor has several builds: cores of two contexts, say, and clusters of slower cores. The
//! level may be missing, as a cluster is around the large cores. Then the outermost domain within
//! it takes its place.
//!
//! A context that may hold several threads is one more level: a domain of that many *slots*.

use pinwise_topology::{DomainKind, SharingTree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// The domains of the core-local level, in leaf order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreLocal {
    level: DomainKind,
    domains: Vec<LocalDomain>,
    builds: Vec<Build>,
    per_context: usize,
}

/// One core-local domain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LocalDomain {
    leaves: Range<u32>,
    build: usize,
}

/// How a core-local domain is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// What kind its cores are: index into [`pinwise_topology::Machine::kinds`].
    core_kind: usize,
    /// Contexts.
    size: usize,
    /// Children per domain of each level within, outermost first, down to the slots of a context
    /// where it has several.
    arities: Vec<usize>,
}

/// Why a level cannot be the core-local one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CoreLocalError {
    /// The machine has no such domains.
    #[error("this machine has no {}, only {}", .wanted.name(), names(.there))]
    NoSuchLevel {
        /// Asked for.
        wanted: DomainKind,
        /// What it has.
        there: Vec<DomainKind>,
    },
    /// One table cannot describe a domain whose parts differ.
    #[error(
        "the parts of a {} of this machine are not all alike, so no table can predict what \
         happens there",
        .level.name()
    )]
    Irregular {
        /// Asked for.
        level: DomainKind,
    },
}

fn names(levels: &[DomainKind]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
}

impl CoreLocal {
    /// The domains of kind `level`, with at most `per_context` threads on a context (1 or more).
    ///
    /// # Errors
    /// The machine does not have the level. Or the parts of a level differ within one of its
    /// domains.
    pub fn new(
        tree: &SharingTree,
        level: DomainKind,
        per_context: usize,
    ) -> Result<Self, CoreLocalError> {
        let contexts = tree.leaves().len() as u32;
        // Whatever a context is called where it is alone in its core.
        let known = level == DomainKind::Pu || tree.levels().iter().any(|(kind, _)| *kind == level);
        if !known
            && (0..contexts).all(|leaf| tree.around(leaf).iter().all(|(kind, _)| *kind != level))
        {
            let mut there: Vec<DomainKind> = tree.levels().iter().map(|(kind, _)| *kind).collect();
            if there.is_empty() {
                there.push(DomainKind::Pu);
            }
            return Err(CoreLocalError::NoSuchLevel { wanted: level, there });
        }
        let irregular = CoreLocalError::Irregular { level };
        let per_context = per_context.max(1);
        let mut local = Self { level, domains: Vec::new(), builds: Vec::new(), per_context };
        let mut leaf = 0;
        while leaf < contexts {
            let within = tree.within(leaf, level);
            let leaves = within.last().cloned().unwrap_or(leaf..leaf + 1);
            let build = Build::new(tree, &within, leaf, per_context);
            let alike = |other: u32| {
                build.as_ref()
                    == Build::new(tree, &tree.within(other, level), other, per_context).as_ref()
            };
            let Some(build) = build.clone().filter(|_| leaves.clone().all(alike)) else {
                return Err(irregular);
            };
            leaf = leaves.end;
            let known = local.builds.iter().position(|known| *known == build);
            local.domains.push(LocalDomain { leaves, build: known.unwrap_or(local.builds.len()) });
            if known.is_none() {
                local.builds.push(build);
            }
        }
        Ok(local)
    }

    /// The core-local level unless the user names one. It is the outermost one below the whole
    /// machine whose domains have at most `most` contexts. If all are larger, the innermost.
    pub fn usual_level(tree: &SharingTree, most: usize) -> DomainKind {
        let contexts = tree.leaves().len();
        let around = (0..contexts as u32).flat_map(|leaf| tree.around(leaf));
        let mut inner: Vec<DomainKind> =
            around.filter(|(_, leaves)| leaves.len() < contexts).map(|(kind, _)| kind).collect();
        inner.sort_unstable();
        inner.dedup();
        let largest = |level: &DomainKind| {
            let local = Self::new(tree, *level, 1).ok()?;
            local.builds.iter().map(|build| build.size).max()
        };
        let regular: Vec<(DomainKind, usize)> =
            inner.into_iter().filter_map(|level| Some((level, largest(&level)?))).collect();
        let small = regular.iter().find(|(_, largest)| *largest <= most);
        small.or(regular.last()).map_or(DomainKind::Pu, |(kind, _)| *kind)
    }

    /// The level of the core-local domains.
    pub fn level(&self) -> DomainKind {
        self.level
    }

    /// How many domains.
    pub fn domains(&self) -> usize {
        self.domains.len()
    }

    /// How many contexts they have together.
    pub fn contexts(&self) -> u32 {
        self.domains.last().map_or(0, |last| last.leaves.end)
    }

    /// How domains may be built: one table for each.
    pub fn builds(&self) -> &[Build] {
        &self.builds
    }

    /// How a domain (which must exist) is built: index into [`CoreLocal::builds`].
    pub fn build(&self, domain: usize) -> usize {
        self.domains[domain].build
    }

    /// The leaves of a domain (which must exist).
    pub fn leaves(&self, domain: usize) -> Range<u32> {
        self.domains[domain].leaves.clone()
    }

    /// The domain of a leaf (which must exist).
    pub fn domain_of(&self, leaf: u32) -> usize {
        self.domains.partition_point(|domain| domain.leaves.end <= leaf)
    }

    /// The domains of some leaves.
    pub(crate) fn domains_of(&self, leaves: &[u32]) -> BTreeSet<usize> {
        leaves.iter().map(|leaf| self.domain_of(*leaf)).collect()
    }

    /// Threads that a context may hold.
    pub fn per_context(&self) -> usize {
        self.per_context
    }

    /// The slots of a domain (which must exist), among those of the whole machine.
    pub(crate) fn slots(&self, domain: usize) -> Range<usize> {
        let leaves = self.leaves(domain);
        leaves.start as usize * self.per_context..leaves.end as usize * self.per_context
    }

    /// The context of a slot, and its domain.
    pub(crate) fn context(&self, slot: usize) -> (u32, usize) {
        let leaf = (slot / self.per_context) as u32;
        (leaf, self.domain_of(leaf))
    }
}

impl Build {
    /// Takes the domains around a leaf, smallest first.
    fn new(
        tree: &SharingTree,
        within: &[Range<u32>],
        leaf: u32,
        per_context: usize,
    ) -> Option<Self> {
        let mut arities = Vec::new();
        let mut inner = 1;
        for outer in within.iter().map(ExactSizeIterator::len) {
            arities.insert(0, outer / inner);
            if !outer.is_multiple_of(inner) {
                return None;
            }
            inner = outer;
        }
        if per_context > 1 {
            arities.push(per_context);
        }
        Some(Self { core_kind: tree.core_kind(leaf), size: inner, arities })
    }

    /// Contexts.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Children per domain of each level within, outermost first; the last are contexts, or slots
    /// of one.
    pub fn arities(&self) -> &[usize] {
        &self.arities
    }

    /// Threads that a domain may hold.
    pub fn slots(&self) -> usize {
        self.arities.iter().product()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pinwise_topology::{Alike, CoreKind, CpuId, CpuSet, Machine};

    /// `fast` cores of two contexts, and clusters of four slow ones of one context that share an
    /// L2.
    pub(crate) fn hybrid(fast: u32, clusters: u32) -> SharingTree {
        let mut machine =
            Machine::from_shape(&format!("l2:{} core:4 pu:2", fast + clusters)).unwrap();
        let is_fast = |cpu: u32| cpu < 8 * fast;
        let there = |cpu: u32| if is_fast(cpu) { cpu % 8 < 2 } else { cpu.is_multiple_of(2) };
        let cpus = |fast: bool| -> CpuSet {
            let all = 0..machine.contexts.len() as u32;
            all.filter(|cpu| is_fast(*cpu) == fast && there(*cpu)).map(CpuId).collect()
        };
        let kind =
            |name: &str, fast| CoreKind { name: name.into(), cpus: cpus(fast), capacity: None };
        machine.kinds = vec![kind("performance", true), kind("efficiency", false)];
        machine.allowed = cpus(true).union(&cpus(false));
        machine
            .contexts
            .iter_mut()
            .for_each(|context| context.kind = usize::from(!is_fast(context.cpu.0)));
        SharingTree::new(&machine, Alike::ByStructure)
    }

    fn tree(shape: &str) -> SharingTree {
        SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure)
    }

    #[test]
    fn a_core_of_the_t2_has_two_pipes_of_four_strands() {
        let tree = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
        let only = |level, per_context| {
            let local = CoreLocal::new(&tree, level, per_context).unwrap();
            assert_eq!(local.builds().len(), 1);
            (local.domains(), local.builds()[0].size(), local.builds()[0].arities().to_vec())
        };
        assert_eq!(only(DomainKind::Core, 1), (8, 8, vec![2, 4]));
        assert_eq!(only(DomainKind::Pipe, 1), (16, 4, vec![4]));
        assert_eq!(only(DomainKind::Pu, 1), (64, 1, vec![]));
        assert_eq!(only(DomainKind::Core, 2), (8, 8, vec![2, 4, 2]));
        assert_eq!(CoreLocal::usual_level(&tree, 8), DomainKind::Core);
        assert_eq!(CoreLocal::usual_level(&tree, 3), DomainKind::Pipe);
    }

    #[test]
    fn levels_that_are_not_there_or_not_regular_are_refused() {
        let error = CoreLocal::new(&tree("2x4x2"), DomainKind::L3, 1).unwrap_err().to_string();
        assert!(error.contains("no L3") && error.contains("Core"), "{error}");
        let machine = Machine::from_shape("2x4x2").unwrap();
        let some = SharingTree::over(
            &machine,
            &CpuSet::parse_list("0-4,8-11").unwrap(),
            Alike::ByStructure,
        );
        assert!(matches!(
            CoreLocal::new(&some, DomainKind::Package, 1),
            Err(CoreLocalError::Irregular { .. })
        ));
        assert_eq!(
            CoreLocal::usual_level(&some, 8),
            DomainKind::Core,
            "the outermost regular ones"
        );
        // Cores of one context are contexts.
        for level in [DomainKind::Core, DomainKind::Pu] {
            assert_eq!(CoreLocal::new(&tree("4x1"), level, 1).unwrap().builds()[0].size(), 1);
        }
        let two = CoreLocal::new(&tree("2"), CoreLocal::usual_level(&tree("2"), 8), 3).unwrap();
        assert_eq!((two.domains(), two.builds()[0].arities()), (2, &[3][..]));
    }

    #[test]
    fn domains_that_differ_have_builds_of_their_own() {
        let machine = Machine::from_shape("2x4x2").unwrap();
        let some = SharingTree::over(
            &machine,
            &CpuSet::parse_list("0-4,6,8-9").unwrap(),
            Alike::ByStructure,
        );
        let local = CoreLocal::new(&some, DomainKind::Core, 1).unwrap();
        let domains: Vec<(usize, Range<u32>)> = (0..local.domains())
            .map(|domain| (local.build(domain), local.leaves(domain)))
            .collect();
        assert_eq!(domains, [(0, 0..2), (0, 2..4), (1, 4..5), (1, 5..6), (0, 6..8)]);
        assert_eq!(local.builds().iter().map(Build::size).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(
            (0..8).map(|leaf| local.domain_of(leaf)).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 3, 4, 4]
        );
    }

    #[test]
    fn a_hybrid_processor_has_a_build_for_each_kind_of_core() {
        let tree = hybrid(2, 1);
        // The fast cores have no cluster around them.
        let local = CoreLocal::new(&tree, DomainKind::L2, 1).unwrap();
        let builds: Vec<(usize, &[usize])> =
            local.builds().iter().map(|build| (build.core_kind, build.arities())).collect();
        assert_eq!((local.domains(), builds), (3, vec![(0, &[2][..]), (1, &[4])]));
        assert_eq!(CoreLocal::usual_level(&tree, 8), DomainKind::L2);
        // Contexts alone: of one shape, and yet of two builds.
        assert_eq!(CoreLocal::usual_level(&tree, 1), DomainKind::Core);
        let cores = CoreLocal::new(&tree, DomainKind::Core, 1).unwrap();
        assert_eq!(cores.builds().iter().map(Build::size).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(CoreLocal::new(&tree, DomainKind::Pu, 1).unwrap().builds().len(), 2);
    }
}

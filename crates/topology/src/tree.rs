//! The sharing tree, the part of a machine that matters for placing threads. It has the allowed
//! contexts and the domains they share, and says which domains are alike.
//!
//! **The reduction.** Only allowed contexts remain of a [`Machine`]'s tree. A domain left without
//! any disappears. Domains with the same contexts become one: a core with a single context, a
//! package that is one NUMA node. In the remaining tree all inner nodes have two children or more.
//! Its leaves are contexts, numbered in tree order.
//!
//! **Alike.** Two children of a node are *alike* when exchanging them, position by position, gives
//! the same machine again. It then has the same nesting of the same kinds of domains and the same
//! kinds of cores. Its caches (level, kind, size, associativity) and NUMA distances are the same.
//! Assignments that differ only by such exchanges perform the same. Three rules decide:
//!
//! * *Structure.* A node's *shape* is what follows from the node alone. Children are compared as
//!   multisets. So two packages have one shape even if their only single-threaded core is in
//!   different positions. Positions are then taken in order of shape. The contexts of a cache need
//!   not be a domain of the tree. Such a cache marks each of its contexts with the cache's number.
//!   So only exchanges that keep its set of contexts keep all shapes equal.
//! * *NUMA.* An exchange moves NUMA nodes too. It is allowed only if the distance matrix stays the
//!   same and nodes with memory move to nodes with memory. A domain of several nodes moves all of
//!   them at once.
//! * *[`Alike::ExceptNuma`]* allows only exchanges that move no NUMA node.
//!
//! **Sound and conservative.** Every exchange allowed here is a symmetry of the machine, and so is
//! every composition of them. Two assignments count as one only if a symmetry turns one into the
//! other. The converse does not hold. Four nodes in a ring can be rotated, but exchanging just two
//! neighbours changes distances, so they count as unlike. The price is that some equivalent
//! assignments are counted, and may be measured, separately. No answer becomes wrong. Being alike
//! is an equivalence. To exchange A and C, exchange A and B, then B and C, then A and B.

mod memory;

use crate::{CacheKind, CpuId, CpuSet, Domain, DomainKind, Machine};
use memory::NumaLeaves;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Which domains count as interchangeable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alike {
    /// Domains of equal structure, caches, core kinds and (symmetric) NUMA distances.
    #[default]
    ByStructure,
    /// As above, but every NUMA node is unlike any other. That is right for a live process whose
    /// memory already has a place.
    ExceptNuma,
}

/// The sharing tree over the allowed contexts of a machine. Domains with the same contexts are
/// merged; leaves are contexts in tree order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingTree {
    leaves: Vec<CpuId>,
    /// For every leaf its kind of core: index into [`Machine::kinds`].
    kinds: Vec<usize>,
    /// In preorder, the root first; empty when no context is allowed.
    nodes: Vec<Node>,
    /// For every leaf the nodes from below the root down to it.
    paths: Vec<Vec<usize>>,
    /// Number of groups of alike children in the whole tree.
    groups: usize,
}

/// A domain, or several with the same contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its name: see [`name`].
    kind: DomainKind,
    /// The merged domains, outermost first.
    kinds: Vec<DomainKind>,
    /// The innermost of them.
    innermost: DomainKind,
    pub(crate) parent: usize,
    /// Its leaves.
    pub(crate) leaves: Range<u32>,
    /// Its children by group of alike ones, each group in tree order. Empty for a leaf. Nodes of
    /// one class have the same number of groups, of the same sizes, in the same order.
    pub(crate) groups: Vec<Vec<usize>>,
    /// The number of its first group among all groups of the tree.
    pub(crate) first_group: usize,
    /// The position of its group among the groups of its parent.
    pub(crate) group: usize,
    /// The number of its group among all groups of the tree. The root is in none and has 0.
    pub(crate) in_group: usize,
    /// Its position in its group.
    pub(crate) place: u32,
    /// Nodes of one class have equally many assignments: their groups have the same classes and
    /// sizes.
    pub(crate) class: usize,
}

impl SharingTree {
    /// The tree over `machine.allowed`.
    pub fn new(machine: &Machine, alike: Alike) -> Self {
        Self::over(machine, &machine.allowed, alike)
    }

    /// The tree over the contexts of `cpus` that exist and are online.
    pub fn over(machine: &Machine, cpus: &CpuSet, alike: Alike) -> Self {
        let mut tree = Self {
            leaves: Vec::new(),
            kinds: Vec::new(),
            nodes: Vec::new(),
            paths: Vec::new(),
            groups: 0,
        };
        let Some(draft) = Draft::restrict(&machine.root, cpus) else { return tree };
        let mut merged = Vec::new();
        tree.append(&draft, 0, &mut merged);
        let kind_of: HashMap<CpuId, usize> =
            machine.contexts.iter().map(|context| (context.cpu, context.kind)).collect();
        tree.kinds =
            tree.leaves.iter().map(|cpu| kind_of.get(cpu).copied().unwrap_or_default()).collect();
        let leaf_of: HashMap<CpuId, u32> = tree.leaves.iter().copied().zip(0..).collect();
        let leaves_of = |cpus: &CpuSet| {
            let mut leaves: Vec<u32> =
                cpus.iter().filter_map(|cpu| leaf_of.get(&cpu).copied()).collect();
            leaves.sort_unstable();
            leaves
        };
        let shapes = Shapes::new(machine, &tree, &merged, leaves_of);
        let memory = NumaLeaves::new(machine, &tree, leaves_of);
        tree.group(&shapes, &memory, alike);
        tree.paths = tree.trace();
        tree
    }

    /// The contexts, in leaf order.
    pub fn leaves(&self) -> &[CpuId] {
        &self.leaves
    }

    /// The kind of core of every leaf: an index into [`Machine::kinds`].
    pub fn core_kinds(&self) -> &[usize] {
        &self.kinds
    }

    /// The kind of core of one leaf, which must exist.
    pub fn core_kind(&self, leaf: u32) -> usize {
        self.kinds[leaf as usize]
    }

    /// The levels at which some parent has more than one child, outermost first. Each has its kind,
    /// and the number of children per parent if that is the same everywhere. A cluster of one core
    /// counts as a cluster only beside several larger ones.
    pub fn levels(&self) -> Vec<(DomainKind, Option<usize>)> {
        let several = |counts: &BTreeMap<usize, usize>| counts.values().any(|&count| count > 1);
        let mut siblings: BTreeMap<DomainKind, BTreeMap<usize, usize>> = BTreeMap::new();
        for node in self.nodes.iter().skip(1) {
            *siblings.entry(node.kind).or_default().entry(node.parent).or_default() += 1;
        }
        siblings.retain(|_, counts| several(counts));
        siblings.values_mut().for_each(BTreeMap::clear);
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            // A cluster with one core is merged with it. It is one of the clusters, and the level
            // of cores has one child there.
            let mut parent = Some(node.parent);
            let own = if node.kinds.is_empty() { &[node.kind][..] } else { &node.kinds };
            for kind in own {
                let Some(counts) = siblings.get_mut(kind) else { continue };
                match parent.take() {
                    Some(parent) => *counts.entry(parent).or_default() += 1,
                    None => _ = counts.insert(index, 1),
                }
            }
        }
        let arity = |counts: &BTreeMap<usize, usize>| {
            let first = *counts.values().next()?;
            counts.values().all(|&count| count == first).then_some(first)
        };
        siblings.iter().map(|(&kind, counts)| (kind, arity(counts))).collect()
    }

    /// The domains around a leaf (which must exist), from the smallest with another context to the
    /// whole tree. Each has its kind and leaves. It has only one of several domains with the same
    /// contexts. A tree of one context has none.
    pub fn around(&self, leaf: u32) -> Vec<(DomainKind, Range<u32>)> {
        self.nodes_around(leaf).map(|node| (node.kind, node.leaves.clone())).collect()
    }

    /// The leaves of the domains around a leaf (which must exist). They go from the smallest with
    /// another context to that of kind `level`. There may be none: a large core is in no cluster.
    /// Then they end at the outermost domain that would be within one.
    pub fn within(&self, leaf: u32, level: DomainKind) -> Vec<Range<u32>> {
        let around: Vec<&Node> = self.nodes_around(leaf).collect();
        let exact = around.iter().position(|node| node.kind == level);
        let last = exact.or_else(|| around.iter().rposition(|node| node.innermost >= level));
        around[..last.map_or(0, |last| last + 1)].iter().map(|node| node.leaves.clone()).collect()
    }

    fn nodes_around(&self, leaf: u32) -> impl Iterator<Item = &Node> {
        let inner = self.paths[leaf as usize].iter().rev().copied();
        inner.chain([0]).map(|node| &self.nodes[node]).filter(|node| node.leaves.len() > 1)
    }

    /// The nodes in preorder: parents before children.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many groups of alike siblings.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// The nodes from below the root down to a leaf.
    pub(crate) fn path(&self, leaf: u32) -> &[usize] {
        &self.paths[leaf as usize]
    }

    /// Appends a draft's nodes in preorder, and to `merged` the kinds of domain each stands for.
    fn append(&mut self, draft: &Draft, parent: usize, merged: &mut Vec<Vec<DomainKind>>) {
        let index = self.nodes.len();
        let start = self.leaves.len() as u32;
        self.nodes.push(Node {
            kind: name(&draft.kinds),
            kinds: draft.kinds.clone(),
            innermost: draft.kinds.last().copied().unwrap_or(DomainKind::Pu),
            parent,
            leaves: start..start,
            groups: Vec::new(),
            first_group: 0,
            group: 0,
            in_group: 0,
            place: 0,
            class: 0,
        });
        merged.push(draft.kinds.clone());
        self.leaves.extend(draft.context);
        for child in &draft.children {
            self.append(child, index, merged);
        }
        self.nodes[index].leaves.end = self.leaves.len() as u32;
    }

    /// Sorts the children of every node into groups of alike ones.
    fn group(&mut self, shapes: &Shapes, memory: &NumaLeaves, alike: Alike) {
        self.regroup(&[], |_, parent| {
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for &child in &shapes.children[parent] {
                let fits = |group: &&mut Vec<usize>| {
                    shapes.of[group[0]] == shapes.of[child]
                        && memory.may_swap(&shapes.order[group[0]], &shapes.order[child], alike)
                };
                match groups.iter_mut().find(fits) {
                    Some(group) => group.push(child),
                    None => groups.push(vec![child]),
                }
            }
            groups
        });
    }

    /// The tree whose leaves also differ in their marks. Domains stay alike if an exchange of them,
    /// with exchanges within them, keeps the mark of every leaf.
    pub(crate) fn marked(&self, marks: &[usize]) -> Self {
        let mut tree = self.clone();
        tree.groups = 0;
        tree.regroup(marks, |tree, parent| {
            // Nodes of one group have corresponding groups, and classes order the parts of each.
            let parts = tree.nodes[parent].groups.iter().flat_map(|group| {
                let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                for &child in group {
                    parts.entry(tree.nodes[child].class).or_default().push(child);
                }
                parts.into_values()
            });
            parts.collect()
        });
        tree
    }

    /// Gives every node the groups of its children, children before parents. Leaves without a mark
    /// have one mark.
    fn regroup(&mut self, marks: &[usize], groups_of: impl Fn(&Self, usize) -> Vec<Vec<usize>>) {
        type Definition = (usize, Vec<(usize, usize)>);
        let mut classes: HashMap<Definition, usize> = HashMap::new();
        for parent in (0..self.nodes.len()).rev() {
            let groups = groups_of(self, parent);
            for (index, group) in groups.iter().enumerate() {
                for (place, &child) in (0u32..).zip(group) {
                    let node = &mut self.nodes[child];
                    (node.group, node.in_group, node.place) = (index, self.groups + index, place);
                }
            }
            let sizes =
                groups.iter().map(|group| (self.nodes[group[0]].class, group.len())).collect();
            let next = classes.len();
            let node = &mut self.nodes[parent];
            let mark = match groups.is_empty() {
                true => marks.get(node.leaves.start as usize).copied().unwrap_or_default(),
                false => 0,
            };
            node.class = *classes.entry((mark, sizes)).or_insert(next);
            node.first_group = self.groups;
            self.groups += groups.len();
            node.groups = groups;
        }
    }

    /// The way from the root to every leaf.
    fn trace(&self) -> Vec<Vec<usize>> {
        let mut paths = vec![Vec::new(); self.leaves.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            for leaf in node.leaves.clone() {
                paths[leaf as usize].push(index);
            }
        }
        paths
    }
}

/// A domain over allowed contexts, after merging.
struct Draft {
    /// The merged domains, outermost first.
    kinds: Vec<DomainKind>,
    /// The context, of a leaf.
    context: Option<CpuId>,
    children: Vec<Draft>,
}

impl Draft {
    /// `domain` over the contexts of `cpus`; `None` if it has none of them.
    fn restrict(domain: &Domain, cpus: &CpuSet) -> Option<Self> {
        let mut children: Vec<Self> = if domain.children.is_empty() {
            let leaf =
                |context| Self { kinds: Vec::new(), context: Some(context), children: Vec::new() };
            domain.cpus.intersection(cpus).iter().map(leaf).collect()
        } else {
            domain.children.iter().filter_map(|child| Self::restrict(child, cpus)).collect()
        };
        if children.len() > 1 {
            return Some(Self { kinds: vec![domain.kind], context: None, children });
        }
        let mut only = children.pop()?;
        only.kinds.insert(0, domain.kind);
        Some(only)
    }
}

/// The name of a merged domain. It is the outermost kind. A cache, a cluster or a group gives the
/// name only if nothing else does. A core with a private L2 is a core, a package with one L3 is a
/// package.
fn name(kinds: &[DomainKind]) -> DomainKind {
    let is_thing = |kind: &&DomainKind| {
        !matches!(
            kind,
            DomainKind::Group
                | DomainKind::L4
                | DomainKind::L3
                | DomainKind::Cluster
                | DomainKind::L2
        )
    };
    kinds.iter().find(is_thing).or(kinds.first()).copied().unwrap_or(DomainKind::Pu)
}

/// The properties of a cache without its contexts.
type CacheTraits = (u8, CacheKind, Option<u64>, Option<u32>);

/// Everything about a node except its position: nodes with equal descriptions have one shape.
#[derive(PartialEq, Eq, Hash)]
struct NodeDescription {
    kinds: Vec<DomainKind>,
    /// Of a leaf: index into [`Machine::kinds`].
    core: Option<usize>,
    /// Caches with exactly the node's contexts, sorted.
    caches: Vec<CacheTraits>,
    /// Of a leaf: indices of the caches around it that are no domain of the tree.
    marks: Vec<usize>,
    /// Shapes of the children, sorted.
    children: Vec<usize>,
}

/// The shape of every node.
struct Shapes {
    /// Equal numbers are equal shapes.
    of: Vec<usize>,
    /// The children of every node, by shape, then in tree order: the positions that an exchange
    /// matches.
    children: Vec<Vec<usize>>,
    /// The leaves of every node in the order of these positions.
    order: Vec<Vec<u32>>,
}

impl Shapes {
    fn new(
        machine: &Machine,
        tree: &SharingTree,
        merged: &[Vec<DomainKind>],
        leaves_of: impl Fn(&CpuSet) -> Vec<u32>,
    ) -> Self {
        let count = tree.nodes.len();
        let domains: HashMap<Range<u32>, usize> = tree
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.leaves.clone(), index))
            .collect();
        let mut caches: Vec<Vec<CacheTraits>> = vec![Vec::new(); count];
        let mut marks: Vec<Vec<usize>> = vec![Vec::new(); tree.leaves.len()];
        for (index, cache) in machine.caches.iter().enumerate() {
            let leaves = leaves_of(&cache.cpus);
            let Some((&first, &last)) = leaves.first().zip(leaves.last()) else { continue };
            let is_range = (last - first) as usize + 1 == leaves.len();
            match domains.get(&(first..last + 1)).filter(|_| is_range) {
                Some(&node) => caches[node].push((cache.level, cache.kind, cache.size, cache.ways)),
                None => leaves.iter().for_each(|&leaf| marks[leaf as usize].push(index)),
            }
        }
        let mut shapes = Self {
            of: vec![0; count],
            children: vec![Vec::new(); count],
            order: vec![Vec::new(); count],
        };
        let mut known: HashMap<NodeDescription, usize> = HashMap::new();
        for index in (0..count).rev() {
            // Children come after their parent and were visited last first.
            let mut children = std::mem::take(&mut shapes.children[index]);
            children.reverse();
            children.sort_by_key(|&child| shapes.of[child]);
            caches[index].sort_unstable();
            let leaf = children.is_empty().then_some(tree.nodes[index].leaves.start);
            let description = NodeDescription {
                kinds: merged[index].clone(),
                core: leaf.map(|leaf| tree.kinds[leaf as usize]),
                caches: std::mem::take(&mut caches[index]),
                marks: leaf
                    .map(|leaf| std::mem::take(&mut marks[leaf as usize]))
                    .unwrap_or_default(),
                children: children.iter().map(|&child| shapes.of[child]).collect(),
            };
            let next = known.len();
            shapes.of[index] = *known.entry(description).or_insert(next);
            shapes.order[index] = match leaf {
                Some(leaf) => vec![leaf],
                None => children.iter().flat_map(|&child| shapes.order[child].clone()).collect(),
            };
            shapes.children[index] = children;
            if index > 0 {
                shapes.children[tree.nodes[index].parent].push(index);
            }
        }
        shapes
    }
}

#[cfg(test)]
mod tests;

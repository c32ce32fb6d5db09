//! Compares the levels that latencies imply with those that a machine declares.

use super::{LatencyLevels, LatencyMatrix, Pairs, summary};
use crate::{CpuId, CpuSet, Domain, DomainKind, Machine};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where the latencies agree with the declaration of the machine, and where not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyComparison {
    /// For each implied level, in its order.
    pub levels: Vec<LevelMatch>,
    /// Declared groupings that no level shows.
    pub unseen: Vec<DeclaredGroups>,
    /// Contexts of the matrix that the machine does not have.
    pub unknown: CpuSet,
    /// Contexts of the machine that the matrix does not have.
    pub unmeasured: CpuSet,
}

/// An implied level and its counterpart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelMatch {
    /// The kinds of domains that have the same groups of contexts. Empty if no kind has.
    pub declared: Vec<DomainKind>,
    /// The difference from the nearest declared grouping, if none is the same.
    pub difference: Option<Difference>,
}

/// How an implied level differs from a declared grouping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The nearest declared grouping.
    pub nearest: Vec<DomainKind>,
    /// An implied group that the declared grouping does not have.
    pub implied: CpuSet,
    /// The declared groups of these contexts.
    pub declared: Vec<CpuSet>,
    /// How many pairs of contexts share a group in only one of the two groupings.
    pub pairs: usize,
}

/// A declared grouping that latencies do not show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredGroups {
    /// The kinds of its domains.
    pub kinds: Vec<DomainKind>,
    /// How many groups it has.
    pub groups: usize,
    /// Median latency of pairs within one of its groups. Pairs that the next implied level inside
    /// it groups are left out.
    pub inside: Option<f64>,
    /// Median latency of pairs across its groups. Only pairs count that the next implied level
    /// around it groups.
    pub outside: Option<f64>,
}

/// Disjoint groups that together have every context.
type Partition = BTreeSet<CpuSet>;

impl LatencyComparison {
    /// Compares what `matrix` implies with what `machine` declares of the same contexts.
    pub fn new(matrix: &LatencyMatrix, levels: &LatencyLevels, machine: &Machine) -> Self {
        let measured: CpuSet = matrix.contexts().iter().copied().collect();
        let common = measured.intersection(machine.online());
        let declared = declared(&machine.root, &common);
        let implied: Vec<Partition> = levels
            .levels
            .iter()
            .map(|level| {
                level
                    .groups
                    .iter()
                    .map(|group| group.intersection(&common))
                    .filter(|g| !g.is_empty())
                    .collect()
            })
            .collect();
        let matches = implied.iter().map(|partition| find(partition, &declared)).collect();
        let pairs = matrix.pairs();
        let unseen = declared
            .iter()
            .filter(|(partition, _)| !implied.contains(partition))
            .map(|(partition, kinds)| {
                let (inside, outside) = contrast(matrix.contexts(), &pairs, partition, &implied);
                DeclaredGroups { kinds: kinds.clone(), groups: partition.len(), inside, outside }
            })
            .collect();
        let unmeasured = machine.online().difference(&measured);
        Self { levels: matches, unseen, unknown: measured.difference(machine.online()), unmeasured }
    }

    /// Whether the machine declares every implied level and has every measured context.
    pub fn agrees(&self) -> bool {
        self.unknown.is_empty() && self.levels.iter().all(|level| !level.declared.is_empty())
    }
}

/// The different groupings of the contexts by domains, and the kinds of domains of each. A grouping
/// with every context alone is left out.
fn declared(root: &Domain, contexts: &CpuSet) -> Vec<(Partition, Vec<DomainKind>)> {
    let mut kinds: BTreeMap<DomainKind, Partition> = BTreeMap::new();
    for domain in root.walk() {
        let cpus = domain.cpus.intersection(contexts);
        if !cpus.is_empty() {
            kinds.entry(domain.kind).or_default().insert(cpus);
        }
    }
    let mut groupings: Vec<(Partition, Vec<DomainKind>)> = Vec::new();
    for (kind, mut partition) in kinds {
        // Domains of one kind may lie in each other (groups of firmware): the outermost count.
        let outer: Partition = partition
            .iter()
            .filter(|a| !partition.iter().any(|b| *a != b && a.is_subset(b)))
            .cloned()
            .collect();
        let covered = outer.iter().fold(CpuSet::new(), |all, group| all.union(group));
        partition = outer;
        partition.extend(contexts.difference(&covered).iter().map(|cpu| CpuSet::from_iter([cpu])));
        if partition.iter().all(|group| group.len() == 1) {
            continue;
        }
        match groupings.iter_mut().find(|(known, _)| *known == partition) {
            Some((_, kinds)) => kinds.push(kind),
            None => groupings.push((partition, vec![kind])),
        }
    }
    groupings
}

fn find(partition: &Partition, declared: &[(Partition, Vec<DomainKind>)]) -> LevelMatch {
    if let Some((_, kinds)) = declared.iter().find(|(known, _)| known == partition) {
        return LevelMatch { declared: kinds.clone(), difference: None };
    }
    // The whole machine is the nearest only where nothing else is declared.
    let nearest =
        declared.iter().min_by_key(|(known, _)| (known.len() == 1, pairs_apart(partition, known)));
    let difference = nearest.and_then(|(known, kinds)| {
        let implied = partition.iter().find(|group| !known.contains(*group))?;
        let declared = known.iter().filter(|group| !group.is_disjoint(implied)).cloned().collect();
        let pairs = pairs_apart(partition, known);
        Some(Difference { nearest: kinds.clone(), implied: implied.clone(), declared, pairs })
    });
    LevelMatch { declared: Vec::new(), difference }
}

/// How many pairs share a group in only one of two groupings. It is the pairs of one plus those of
/// the other, less twice the common ones.
fn pairs_apart(one: &Partition, other: &Partition) -> usize {
    let pairs = |n: usize| n * n.saturating_sub(1) / 2;
    let of =
        |partition: &Partition| -> usize { partition.iter().map(|group| pairs(group.len())).sum() };
    let both: usize =
        one.iter().flat_map(|a| other.iter().map(move |b| pairs(a.intersection(b).len()))).sum();
    of(one) + of(other) - 2 * both
}

/// Median latencies inside and outside the groups of a declared grouping, `border`. Inside: pairs
/// in one of its groups, but not in one group of the next finer implied level. Outside: pairs
/// across its groups, but in one group of the next coarser implied level.
fn contrast(
    contexts: &[CpuId],
    pairs: &Pairs,
    border: &Partition,
    implied: &[Partition],
) -> (Option<f64>, Option<f64>) {
    let number = |partition: &Partition| -> Vec<Option<usize>> {
        contexts.iter().map(|&cpu| partition.iter().position(|group| group.contains(cpu))).collect()
    };
    let finer = |a: &Partition, b: &Partition| {
        a.iter().all(|group| b.iter().any(|other| group.is_subset(other)))
    };
    let inner = implied.iter().rev().find(|level| finer(level, border)).map(number);
    let outer = implied.iter().find(|level| finer(border, level)).map(number);
    let border = number(border);
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for (a, b) in (0..contexts.len()).flat_map(|a| (a + 1..contexts.len()).map(move |b| (a, b))) {
        let together = |groups: &[Option<usize>]| groups[a].is_some() && groups[a] == groups[b];
        let Some(value) = pairs.get(a, b) else { continue };
        if together(&border) && !inner.as_deref().is_some_and(together) {
            inside.push(value);
        } else if !together(&border) && outer.as_deref().is_some_and(together) {
            outside.push(value);
        }
    }
    let middle = |values| summary(values).map(|(median, _, _)| median);
    (middle(inside), middle(outside))
}

//! Tests of the tree of domains.

use super::*;
use crate::Distances;
use crate::{Cache, CoreKind, NumaNode, random_machine};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn shape(shape: &str) -> Machine {
    Machine::from_shape(shape).unwrap()
}

/// Sizes of the groups of alike children of the root, descending.
fn top(machine: &Machine, alike: Alike) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        SharingTree::new(machine, alike).nodes[0].groups.iter().map(Vec::len).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

#[test]
fn the_t2_has_three_levels_of_alike_domains() {
    let tree = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
    assert_eq!(
        tree.levels(),
        [(DomainKind::Core, Some(8)), (DomainKind::Pipe, Some(2)), (DomainKind::Pu, Some(4))]
    );
    assert_eq!(tree.leaves().len(), 64);
    assert!(tree.nodes.iter().all(|node| node.groups.len() <= 1));
}

#[test]
fn a_core_of_one_context_is_one_node() {
    let tree = SharingTree::new(&shape("package:1 l3:1 l2:2 core:1 pu:1"), Alike::ByStructure);
    assert_eq!(tree.nodes.len(), 3);
    assert_eq!(tree.levels(), [(DomainKind::Core, Some(2))]);
}

#[test]
fn the_domains_around_a_context_go_from_the_smallest_shared_one_to_all() {
    let tree = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
    let around =
        [(DomainKind::Pipe, 12..16), (DomainKind::Core, 8..16), (DomainKind::Machine, 0..64)];
    assert_eq!(tree.around(13), around);
    let alone = SharingTree::new(&shape("package:1 l3:1 l2:2 core:1 pu:1"), Alike::ByStructure);
    assert_eq!(alone.around(1), [(DomainKind::Machine, 0..2)]);
    assert!(SharingTree::new(&shape("1"), Alike::ByStructure).around(0).is_empty());
}

#[test]
fn levels_of_irregular_machines_have_no_arity() {
    let machine = shape("2x2x2");
    let tree = SharingTree::over(&machine, &cpus("0-3,4,6,7"), Alike::ByStructure);
    assert_eq!(
        tree.levels(),
        [(DomainKind::Package, Some(2)), (DomainKind::Core, Some(2)), (DomainKind::Pu, None)],
        "one core has one context"
    );
    let tree = SharingTree::over(&machine, &cpus("0-3,4"), Alike::ByStructure);
    assert_eq!(tree.levels()[0], (DomainKind::Package, Some(2)));
    let tree = SharingTree::over(&shape("3x3"), &cpus("0-2,3,4,6"), Alike::ByStructure);
    assert_eq!(tree.levels(), [(DomainKind::Core, Some(3)), (DomainKind::Pu, None)]);
    // Clusters of four cores, of three and of one.
    let clusters =
        SharingTree::over(&shape("l2:3 core:4 pu:1"), &cpus("0-6,8"), Alike::ByStructure);
    assert_eq!(clusters.levels(), [(DomainKind::L2, Some(3)), (DomainKind::Core, None)]);
    let clusters =
        SharingTree::over(&shape("l2:3 core:4 pu:1"), &cpus("0-4,8"), Alike::ByStructure);
    assert_eq!(clusters.levels(), [(DomainKind::Core, None)], "one has several cores");
    // Domains that are nested against the usual order.
    for (inverted, levels) in [
        ("numa:2 package:1 core:4", [(DomainKind::Numa, 2), (DomainKind::Core, 4)]),
        ("die:2 numa:1 core:2", [(DomainKind::Die, 2), (DomainKind::Core, 2)]),
    ] {
        let tree = SharingTree::new(&shape(inverted), Alike::ByStructure);
        let known = tree.levels();
        assert_eq!(known.len(), 2, "{inverted}: {known:?}");
        assert_eq!(
            known.iter().map(|level| level.1).collect::<Vec<_>>(),
            levels.map(|l| Some(l.1))
        );
    }
}

#[test]
fn only_allowed_contexts_remain_and_emptied_domains_go() {
    let mut machine = shape("2x2x2");
    machine.allowed = cpus("1,4-7,900");
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    assert_eq!(tree.leaves(), [CpuId(1), CpuId(4), CpuId(5), CpuId(6), CpuId(7)]);
    assert_eq!(tree.nodes[0].groups.len(), 2);
    machine.allowed = CpuSet::new();
    assert!(SharingTree::new(&machine, Alike::ByStructure).leaves().is_empty());
}

#[test]
fn packages_whose_parts_stand_in_another_order_are_alike() {
    // Package 0 has lost a thread of its first core, package 1 one of its second.
    let mut machine = shape("2x2x2");
    machine.allowed = cpus("1-6");
    assert_eq!(top(&machine, Alike::ByStructure), [2]);
}

#[test]
fn performance_and_efficiency_cores_are_not_alike() {
    let mut machine = shape("4");
    let kind =
        |name: &str, list: &str| CoreKind { name: name.into(), cpus: cpus(list), capacity: None };
    machine.set_kinds(vec![kind("performance", "0,2"), kind("efficiency", "1,3")]);
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    assert_eq!(tree.nodes[0].groups.len(), 2);
    assert!(tree.nodes[0].groups.iter().all(|group| group.len() == 2));
}

#[test]
fn unequal_caches_make_domains_unlike() {
    let mut machine = shape("4");
    let cache = |size: u64, list: &str| Cache {
        level: 2,
        kind: CacheKind::Unified,
        size: Some(size),
        line: Some(64),
        ways: Some(8),
        cpus: cpus(list),
    };
    machine.caches = ["0", "1", "2", "3"].map(|list| cache(1 << 20, list)).to_vec();
    assert_eq!(top(&machine, Alike::ByStructure), [4]);
    machine.caches[3].size = Some(2 << 20);
    assert_eq!(top(&machine, Alike::ByStructure), [3, 1]);
    machine.caches[3] = cache(1 << 20, "3");
    machine.caches[3].ways = Some(16);
    assert_eq!(top(&machine, Alike::ByStructure), [3, 1]);
    // A cache of cores 0 and 1 that is no domain of the tree.
    machine.caches = vec![cache(1 << 20, "0,1")];
    assert_eq!(top(&machine, Alike::ByStructure), [2, 2]);
}

/// Four nodes of one core each with the given distances.
fn four_nodes(distances: [[u32; 4]; 4]) -> Machine {
    let mut machine = shape("numa:4 core:1");
    machine.distances = Some(Distances(distances.map(Vec::from).to_vec()));
    machine
}

#[test]
fn nodes_are_alike_only_if_exchanging_them_keeps_all_distances() {
    let equal = [[10, 20, 20, 20], [20, 10, 20, 20], [20, 20, 10, 20], [20, 20, 20, 10]];
    assert_eq!(top(&four_nodes(equal), Alike::ByStructure), [4]);
    assert_eq!(top(&four_nodes(equal), Alike::ExceptNuma), [1, 1, 1, 1]);
    // Two pairs: nodes of a pair can be exchanged, the pairs themselves are no domains.
    let pairs = [[10, 15, 20, 20], [15, 10, 20, 20], [20, 20, 10, 15], [20, 20, 15, 10]];
    assert_eq!(top(&four_nodes(pairs), Alike::ByStructure), [2, 2]);
    // A ring can be rotated, and mirrored through two opposite nodes: opposite nodes are alike,
    // neighbours are not.
    let ring = [[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10]];
    assert_eq!(top(&four_nodes(ring), Alike::ByStructure), [2, 2]);
    // A line: only its middle distinguishes the ends, and they cannot be exchanged without it.
    let line = [[10, 20, 30, 40], [20, 10, 20, 30], [30, 20, 10, 20], [40, 30, 20, 10]];
    assert_eq!(top(&four_nodes(line), Alike::ByStructure), [1, 1, 1, 1]);
}

#[test]
fn packages_of_several_nodes_are_exchanged_as_a_whole() {
    let mut machine = shape("package:2 numa:2 core:2");
    let pairs = [[10, 15, 20, 20], [15, 10, 20, 20], [20, 20, 10, 15], [20, 20, 15, 10]];
    machine.distances = Some(Distances(pairs.map(Vec::from).to_vec()));
    assert_eq!(top(&machine, Alike::ByStructure), [2]);
    assert_eq!(top(&machine, Alike::ExceptNuma), [1, 1]);
    // Node 0 is nearer to node 2 than to node 3. So the packages can be exchanged, the nodes within
    // one cannot.
    let crossed = [[10, 15, 20, 30], [15, 10, 30, 20], [20, 30, 10, 15], [30, 20, 15, 10]];
    machine.distances = Some(Distances(crossed.map(Vec::from).to_vec()));
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    assert_eq!(tree.nodes[0].groups.len(), 1);
    assert_eq!(tree.nodes[tree.nodes[0].groups[0][1]].groups.len(), 2);
}

#[test]
fn a_node_without_memory_is_unlike_one_with() {
    let mut machine = shape("numa:2 core:1");
    machine.numa[0] = NumaNode { memory: Some(1 << 30), ..machine.numa[0].clone() };
    machine.numa[1] = NumaNode { memory: Some(1 << 31), ..machine.numa[1].clone() };
    assert_eq!(top(&machine, Alike::ByStructure), [2]);
    machine.numa[1].memory = Some(0);
    assert_eq!(top(&machine, Alike::ByStructure), [1, 1]);
}

/// All orders of `items`.
fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let others: Vec<usize> = items.iter().copied().filter(|&item| item != first).collect();
        orders(&others).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    items.iter().flat_map(|&first| with_first(first)).collect()
}

/// Whether renaming contexts leaves the description of a machine, restricted to the allowed
/// contexts, as it was.
fn is_symmetry(machine: &Machine, tree: &SharingTree, moved: &[u32], alike: Alike) -> bool {
    let leaves = |cpus: &CpuSet| -> BTreeSet<u32> {
        (0..tree.leaves.len() as u32)
            .filter(|&leaf| cpus.contains(tree.leaves[leaf as usize]))
            .collect()
    };
    let image = |set: &BTreeSet<u32>| -> BTreeSet<u32> {
        set.iter().map(|&leaf| moved[leaf as usize]).collect()
    };
    let same = |sets: Vec<(String, BTreeSet<u32>)>| {
        let sets: Vec<_> = sets.into_iter().filter(|(_, set)| !set.is_empty()).collect();
        let mut before = sets.clone();
        let mut after: Vec<_> =
            sets.iter().map(|(label, set)| (label.clone(), image(set))).collect();
        before.sort();
        after.sort();
        before == after
    };
    let domains =
        machine.root.walk().map(|domain| (format!("{:?}", domain.kind), leaves(&domain.cpus)));
    let kinds = machine.kinds.iter().map(|kind| (kind.name.clone(), leaves(&kind.cpus)));
    let caches = machine.caches.iter().map(|cache| {
        let label = format!("{} {:?} {:?} {:?}", cache.level, cache.kind, cache.size, cache.ways);
        (label, leaves(&cache.cpus))
    });
    let nodes: Vec<BTreeSet<u32>> = machine.numa.iter().map(|node| leaves(&node.cpus)).collect();
    let bare: Vec<bool> = machine.numa.iter().map(|node| node.memory == Some(0)).collect();
    let distance =
        |from: usize, to: usize| machine.distances.as_ref().map(|distances| distances.0[from][to]);
    let numbers: Vec<usize> = (0..nodes.len()).collect();
    let identity = |order: &Vec<usize>| *order == numbers;
    let keeps = |order: &Vec<usize>| {
        (alike == Alike::ByStructure || identity(order))
            && numbers.iter().all(|&node| {
                nodes[order[node]] == image(&nodes[node]) && bare[order[node]] == bare[node]
            })
            && numbers
                .iter()
                .all(|&a| numbers.iter().all(|&b| distance(order[a], order[b]) == distance(a, b)))
    };
    same(domains.collect())
        && same(kinds.collect())
        && same(caches.collect())
        && orders(&numbers).iter().any(keeps)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_exchange_is_a_symmetry_of_the_machine(seed: u64, numa: bool) {
        let machine = random_machine::machine(seed, 12);
        let alike = if numa { Alike::ByStructure } else { Alike::ExceptNuma };
        let tree = SharingTree::new(&machine, alike);
        for moved in random_machine::exchanges(&tree) {
            prop_assert!(
                is_symmetry(&machine, &tree, &moved, alike),
                "{moved:?} of {machine:#?}"
            );
        }
    }

    /// The converse, for exchanges of two leaves with one parent: none that is a symmetry is
    /// missed.
    #[test]
    fn contexts_of_one_domain_are_alike_whenever_exchanging_them_is_a_symmetry(seed: u64) {
        let machine = random_machine::machine(seed, 12);
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let node = |leaf: u32| tree.paths[leaf as usize].last().map(|&node| &tree.nodes[node]);
        for a in 0..tree.leaves.len() as u32 {
            for b in 0..a {
                let (Some(x), Some(y)) = (node(a), node(b)) else { continue };
                if x.parent == y.parent && x.in_group != y.in_group {
                    let mut moved: Vec<u32> = (0..tree.leaves.len() as u32).collect();
                    moved.swap(a as usize, b as usize);
                    prop_assert!(
                        !is_symmetry(&machine, &tree, &moved, Alike::ByStructure),
                        "{a} {b} {machine:#?}"
                    );
                }
            }
        }
    }
}

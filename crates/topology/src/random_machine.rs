//! Small random machines for property tests: irregular, hybrid, with odd caches, NUMA distances and
//! forbidden contexts.

use crate::{
    Cache, CacheKind, CoreKind, CpuId, CpuSet, Distances, Domain, DomainKind, Machine, NumaNode,
    Random, SharingTree,
};

const KINDS: [DomainKind; 4] =
    [DomainKind::Machine, DomainKind::Package, DomainKind::Core, DomainKind::Pu];

/// A machine of at most `most` contexts that `seed` stands for.
pub(crate) fn machine(seed: u64, most: u32) -> Machine {
    let mut random = Random::new(seed);
    let root = loop {
        let mut cpus = 0;
        let root = grow(random.bits(), 0, &mut cpus);
        if cpus <= most {
            break root;
        }
    };
    let mut machine = Machine::from_tree(format!("sketch {seed}"), root);
    if random.below(3) == 0 {
        add_kinds(&mut machine, &mut random);
    }
    if random.below(2) == 0 {
        add_caches(&mut machine, &mut random);
    }
    if random.below(2) == 0 {
        add_numa(&mut machine, &mut random);
    }
    if random.below(3) == 0 && machine.contexts.len() > 1 {
        let cpu = CpuId(random.below(machine.contexts.len() as u64) as u32);
        machine.allowed.remove(cpu);
    }
    machine
}

/// A domain that depends on `seed` alone, so that siblings of one seed are alike.
fn grow(seed: u64, depth: usize, cpus: &mut u32) -> Domain {
    let mut random = Random::new(seed);
    let first = *cpus;
    let mut children = Vec::new();
    if depth + 1 < KINDS.len() {
        let mut child = random.bits();
        for _ in 0..=random.below(3) {
            if random.below(3) == 0 {
                child = random.bits();
            }
            children.push(grow(child, depth + 1, cpus));
        }
    } else {
        *cpus += 1;
    }
    Domain {
        kind: KINDS[depth],
        os_index: None,
        cpus: (first..*cpus).map(CpuId).collect(),
        children,
    }
}

fn some_of(cpus: &CpuSet, random: &mut Random) -> CpuSet {
    cpus.iter().filter(|_| random.below(2) == 0).collect()
}

fn add_kinds(machine: &mut Machine, random: &mut Random) {
    let fast = some_of(machine.online(), random);
    let slow = machine.online().difference(&fast);
    let kind = |name: &str, cpus| CoreKind { name: name.into(), cpus, capacity: None };
    machine.set_kinds(vec![kind("performance", fast), kind("efficiency", slow)]);
}

fn add_caches(machine: &mut Machine, random: &mut Random) {
    let cache = |level, size, cpus| Cache {
        level,
        kind: CacheKind::Unified,
        size,
        line: None,
        ways: None,
        cpus,
    };
    let mut caches = Vec::new();
    for domain in machine.root.walk() {
        if random.below(2) == 0 {
            caches.push(cache(2, Some(64 << random.below(2)), domain.cpus.clone()));
        }
    }
    if random.below(2) == 0 {
        caches.push(cache(3, None, some_of(machine.online(), random)));
    }
    machine.caches = caches;
}

fn add_numa(machine: &mut Machine, random: &mut Random) {
    let kind = KINDS[1 + random.below(2) as usize];
    let sets: Vec<CpuSet> =
        machine.domains(kind).map(|domain| domain.cpus.clone()).take(4).collect();
    let memory = |random: &mut Random| (random.below(4) == 0).then_some(random.below(2) << 30);
    machine.numa = (0..)
        .zip(sets)
        .map(|(os_index, cpus)| NumaNode { os_index, cpus, memory: memory(random), allowed: true })
        .collect();
    let nodes = machine.numa.len();
    let mut distances = vec![vec![10; nodes]; nodes];
    for (from, to) in (0..nodes).flat_map(|to| (0..to).map(move |from| (from, to))) {
        let distance = if random.below(4) == 0 { 30 } else { 20 };
        (distances[from][to], distances[to][from]) = (distance, distance);
    }
    machine.distances = Some(Distances(distances));
}

/// The exchange of every two neighbours in a group of alike siblings, as a permutation of leaves.
/// Together they generate all.
pub(crate) fn exchanges(tree: &SharingTree) -> Vec<Vec<u32>> {
    let mut exchanges = Vec::new();
    for group in tree.nodes().iter().flat_map(|node| &node.groups) {
        for pair in group.windows(2) {
            let mut moved: Vec<u32> = (0..tree.leaves().len() as u32).collect();
            for (a, b) in positions(tree, pair[0]).into_iter().zip(positions(tree, pair[1])) {
                moved.swap(a as usize, b as usize);
            }
            exchanges.push(moved);
        }
    }
    exchanges
}

/// The leaves of a node in the order that alike nodes have in common.
fn positions(tree: &SharingTree, node: usize) -> Vec<u32> {
    let node = &tree.nodes()[node];
    if node.groups.is_empty() {
        return vec![node.leaves.start];
    }
    node.groups.iter().flatten().flat_map(|&child| positions(tree, child)).collect()
}

//! For each number: unpinned, and every policy that differs on this machine.

use crate::joint_search::Arm;
use pinwise_measure::MemoryPolicy;
use pinwise_topology::{Assignment, Machine, Policy, SharingTree};
use std::collections::{BTreeSet, HashSet};

/// Something that can be measured: a program with a number, and where its threads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyCandidate {
    /// The parameter of the program: the number of threads, or what that follows from.
    pub number: u32,
    /// The policy that places its threads; `None`: the operating system places them.
    pub policy: Option<Policy>,
    /// The arm of the joint search that stands for it.
    pub arm: Arm,
}

/// The candidates for numbers and the threads that each makes, at least 1. For each number, the one
/// left to the operating system comes first. None if the tree has no contexts.
pub fn candidates(tree: &SharingTree, numbers: &[(u32, u32)]) -> Vec<PolicyCandidate> {
    let of = |&(number, threads): &(u32, u32)| {
        let candidate = |policy: Option<Policy>, assignment: &Assignment| {
            let used = tree.footprint(assignment);
            let (cores, packages, free) = (used.cores, used.packages, policy.is_none());
            let arm = Arm { threads, cores, packages, free, memory: MemoryPolicy::Leave };
            PolicyCandidate { number, policy, arm }
        };
        // Load balancers of operating systems spread what nobody pins.
        let free = candidate(None, &Policy::Scatter.assign(tree, threads as usize));
        let placed = Policy::different(tree, threads as usize);
        let placed = placed.iter().map(|(policy, assignment)| candidate(Some(*policy), assignment));
        std::iter::once(free).chain(placed).collect::<Vec<PolicyCandidate>>()
    };
    if tree.leaves().is_empty() { Vec::new() } else { numbers.iter().flat_map(of).collect() }
}

/// The same candidates, and each that is placed also with memory by one of `policies`. Memory can
/// only follow threads that are on one node. It is spread if they are on several. A machine with
/// one node has nothing to choose.
pub fn with_memory(
    candidates: Vec<PolicyCandidate>,
    tree: &SharingTree,
    machine: &Machine,
    policies: &[MemoryPolicy],
) -> Vec<PolicyCandidate> {
    if machine.memory_nodes().len() < 2 {
        return candidates;
    }
    let moved = |candidate: &PolicyCandidate| {
        let assignment = candidate.policy?.assign(tree, candidate.arm.threads as usize);
        let cpu = |&leaf: &u32| tree.leaves().get(leaf as usize).copied();
        let nodes = machine.nearest_memory(&assignment.leaves().iter().filter_map(cpu).collect());
        let memory = if nodes.len() == 1 { MemoryPolicy::Follow } else { MemoryPolicy::Interleave };
        let arm = Arm { memory, ..candidate.arm };
        policies.contains(&memory).then_some(PolicyCandidate { arm, ..*candidate })
    };
    let each = |candidate| [Some(candidate), moved(&candidate)].into_iter().flatten();
    candidates.into_iter().flat_map(each).collect()
}

/// Numbers of threads that fill a part of the machine, anywhere in it. They have one thread on each
/// of its contexts, or on each of its cores. Ascending. The cores of a kind, with those of faster
/// kinds, are a part, too.
pub fn filling_numbers(tree: &SharingTree) -> Vec<u32> {
    // Around different contexts, such as those of large and of small cores, parts differ. Most
    // parts are around many of them.
    let leaves = 0..tree.leaves().len() as u32;
    let mut parts: HashSet<Vec<u32>> =
        leaves.clone().flat_map(|leaf| tree.around(leaf)).map(|(_, part)| part.collect()).collect();
    let kinds: BTreeSet<usize> = tree.core_kinds().iter().copied().collect();
    for slower in kinds.into_iter().skip(1) {
        parts.insert(leaves.clone().filter(|&leaf| tree.core_kind(leaf) < slower).collect());
    }
    let mut full = BTreeSet::new();
    for part in parts {
        full.insert(part.len() as u32);
        full.insert(tree.footprint(&Assignment::new(part)).cores);
    }
    full.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{Alike, CpuSet, Machine};

    fn tree(shape: &str) -> SharingTree {
        SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ExceptNuma)
    }

    #[test]
    fn every_number_is_left_alone_and_placed_in_as_many_ways_as_differ() {
        let candidates = candidates(&tree("2x2x2"), &[(1, 1), (3, 4), (8, 8)]);
        let told =
            |one: &PolicyCandidate| (one.number, one.policy.map_or("free", Policy::name), one.arm);
        let (free, memory) = (false, MemoryPolicy::Leave);
        let arm = |threads, cores, packages| Arm { threads, cores, packages, free, memory };
        assert_eq!(
            candidates.iter().map(told).collect::<Vec<_>>(),
            [
                (1, "free", Arm { free: true, ..arm(1, 1, 1) }),
                (1, "compact", arm(1, 1, 1)),
                (3, "free", Arm { free: true, ..arm(4, 4, 2) }),
                (3, "compact", arm(4, 2, 1)),
                (3, "cores", arm(4, 4, 2)),
                (8, "free", Arm { free: true, ..arm(8, 4, 2) }),
                (8, "compact", arm(8, 4, 2)),
            ]
        );
        let nothing = SharingTree::over(
            &Machine::from_shape("2").unwrap(),
            &CpuSet::default(),
            Alike::ExceptNuma,
        );
        assert_eq!(
            (super::candidates(&nothing, &[(1, 1)]), filling_numbers(&nothing)),
            (Vec::new(), Vec::new())
        );
    }

    #[test]
    fn memory_follows_threads_on_one_node_and_is_spread_under_those_on_several() {
        let machine = Machine::from_shape("numa:2 core:2").unwrap();
        let tree = SharingTree::new(&machine, Alike::ExceptNuma);
        let plain = candidates(&tree, &[(2, 2), (4, 4)]);
        let tried = |policies: &[MemoryPolicy]| -> Vec<(u32, &str, &str)> {
            let all = with_memory(plain.clone(), &tree, &machine, policies);
            let moved = all.iter().filter(|one| !one.arm.memory.is_leave());
            let told = |one: &PolicyCandidate| {
                (one.number, one.policy.map_or("free", Policy::name), one.arm.memory.name())
            };
            moved.map(told).collect()
        };
        let followed = (2, "compact", "follow");
        let spread = [(2, "scatter", "interleave"), (4, "compact", "interleave")];
        assert_eq!(tried(&MemoryPolicy::ALL), [&[followed][..], &spread].concat());
        assert_eq!(tried(&[MemoryPolicy::Follow]), [followed]);
        assert_eq!(tried(&[]), []);
        let one = Machine::from_shape("2x2x2").unwrap();
        let tree = SharingTree::new(&one, Alike::ExceptNuma);
        let plain = candidates(&tree, &[(2, 2)]);
        assert_eq!(with_memory(plain.clone(), &tree, &one, &MemoryPolicy::ALL), plain);
    }

    #[test]
    fn boundaries_are_where_parts_of_the_machine_are_full() {
        assert_eq!(filling_numbers(&tree("4x12x2")), [1, 2, 12, 24, 48, 96]);
        assert_eq!(filling_numbers(&tree("2")), [2]);
        assert_eq!(filling_numbers(&tree("package:1 l3:4 core:4 pu:2")), [1, 2, 4, 8, 16, 32]);
        assert_eq!(filling_numbers(&tree("1")), Vec::<u32>::new());
    }

    #[test]
    fn boundaries_are_those_of_small_cores_too() {
        // Eight cores of two contexts, and sixteen of one in clusters of four.
        let mut machine = Machine::from_shape("package:1 cluster:5 core:8 pu:2").unwrap();
        let of = |machine: &Machine| filling_numbers(&SharingTree::new(machine, Alike::ExceptNuma));
        machine.allowed =
            CpuSet::parse_list("0-15,16,18,20,22,32,34,36,38,48,50,52,54,64,66,68,70").unwrap();
        assert_eq!(of(&machine), [1, 2, 4, 8, 16, 24, 32]);
        machine.allowed = CpuSet::parse_list("0-15").unwrap();
        assert_eq!(of(&machine), [1, 2, 8, 16], "the four were those of a cluster of small cores");
    }

    #[test]
    fn the_fast_cores_are_a_part_also_where_they_are_no_domain() {
        let mut machine = Machine::from_shape("8").unwrap();
        for (index, context) in machine.contexts.iter_mut().enumerate() {
            context.kind = usize::from(index % 3 != 0);
        }
        assert_eq!(filling_numbers(&SharingTree::new(&machine, Alike::ExceptNuma)), [3, 8]);
    }
}

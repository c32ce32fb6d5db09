//! Tests of the policies.

use super::*;
use crate::{Alike, CoreKind, CpuId, CpuSet, Machine, random_machine};
use proptest::prelude::*;

fn tree(shape: &str) -> SharingTree {
    SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure)
}

fn leaves(policy: Policy, shape: &str, threads: usize) -> Vec<u32> {
    policy.assign(&tree(shape), threads).leaves().to_vec()
}

#[test]
fn the_orders_are_those_of_the_drawing() {
    assert_eq!(leaves(Policy::Compact, "2x2x2", 8), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(leaves(Policy::Cores, "2x2x2", 8), [0, 2, 4, 6, 1, 3, 5, 7]);
    assert_eq!(leaves(Policy::Scatter, "2x2x2", 8), [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(leaves(Policy::Scatter, "2x2x2", 10)[8..], [0, 4], "then all hold two");
    assert!(leaves(Policy::Compact, "2", 0).is_empty());
}

/// Three fast cores of two contexts and two slow cores in one package. The slow ones come first.
fn hybrid() -> SharingTree {
    let mut machine = Machine::from_shape("5x2").unwrap();
    machine.allowed = [0, 2, 4, 5, 6, 7, 8, 9].map(CpuId).into_iter().collect();
    let kind =
        |cpus: &str| CoreKind { name: cpus.into(), cpus: cpus.parse().unwrap(), capacity: None };
    machine.set_kinds(vec![kind("4-9"), kind("0-3")]);
    SharingTree::new(&machine, Alike::ByStructure)
}

#[test]
fn fast_cores_are_taken_first() {
    let tree = hybrid();
    let cpus = |policy: Policy, threads: usize| -> Vec<u32> {
        let placed = policy.assign(&tree, threads);
        placed.leaves().iter().map(|&leaf| tree.leaves()[leaf as usize].0).collect()
    };
    assert_eq!(cpus(Policy::Compact, 8), [4, 5, 6, 7, 8, 9, 0, 2]);
    assert_eq!(cpus(Policy::Cores, 8), [4, 6, 8, 0, 2, 5, 7, 9]);
    assert_eq!(cpus(Policy::Scatter, 8), [4, 6, 8, 0, 2, 5, 7, 9]);
    assert_eq!(cpus(Policy::Fast, 7), [4, 6, 8, 5, 7, 9, 4], "never a slow one");
    let names = |threads: usize| -> Vec<&str> {
        Policy::different(&tree, threads).iter().map(|(policy, _)| policy.name()).collect()
    };
    assert_eq!(names(1), ["compact"]);
    assert_eq!(names(2), ["compact", "cores"]);
    assert_eq!(names(4), ["compact", "cores", "fast"], "two, four and three cores");
    assert_eq!(names(5), ["compact", "cores"], "compact has no slow core either");
    assert_eq!(names(7), ["compact", "cores"], "there are six fast contexts");
}

#[test]
fn a_core_of_two_pipes_is_a_core() {
    let t2 = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
    let placed = |policy: Policy, threads: usize| policy.assign(&t2, threads).leaves().to_vec();
    assert_eq!(
        placed(Policy::Cores, 10),
        [0, 8, 16, 24, 32, 40, 48, 56, 4, 12],
        "the second thread has another pipe"
    );
    assert_eq!(t2.footprint(&Policy::Compact.assign(&t2, 10)), Footprint { cores: 2, packages: 1 });
}

#[test]
fn threads_use_as_much_of_the_machine_as_the_policy_says() {
    // Four packages of twelve cores of two contexts.
    let tree = tree("4x12x2");
    let used = |policy: Policy, threads: usize| {
        let Footprint { cores, packages } = tree.footprint(&policy.assign(&tree, threads));
        (cores, packages)
    };
    for (threads, compact, cores, scatter) in [
        (1, (1, 1), (1, 1), (1, 1)),
        (3, (2, 1), (3, 1), (3, 3)),
        (12, (6, 1), (12, 1), (12, 4)),
        (24, (12, 1), (24, 2), (24, 4)),
        (48, (24, 2), (48, 4), (48, 4)),
        (96, (48, 4), (48, 4), (48, 4)),
        (500, (48, 4), (48, 4), (48, 4)),
    ] {
        assert_eq!(
            Policy::ALL.map(|policy| used(policy, threads)),
            [compact, cores, scatter, cores],
            "{threads} threads"
        );
    }
}

#[test]
fn where_there_is_one_package_its_caches_stand_for_packages() {
    let used = |shape: &str| {
        let tree = tree(shape);
        tree.footprint(&Policy::Scatter.assign(&tree, 4)).packages
    };
    assert_eq!(used("package:1 l3:4 core:4 pu:2"), 4);
    assert_eq!(used("package:2 l3:4 core:4 pu:2"), 2);
    assert_eq!(used("group:2 package:2 core:4 pu:2"), 4, "nor do groups of packages");
    assert_eq!(used("package:1 core:4 pu:2"), 1, "cores are none");
    assert_eq!(used("package:1 l2:4 core:1 pu:2"), 1, "nor is a core's own cache");
    assert_eq!(used("4"), 1);
}

#[test]
fn policies_that_do_the_same_are_one() {
    let names = |shape: &str, threads: usize| -> Vec<&str> {
        Policy::different(&tree(shape), threads).iter().map(|(policy, _)| policy.name()).collect()
    };
    assert_eq!(names("2", 2), ["compact"]);
    assert_eq!(names("8", 3), ["compact"], "all contexts are alike");
    assert_eq!(
        names("4x2", 3),
        ["compact", "cores"],
        "one package: a core each is as far as threads get"
    );
    assert_eq!(names("package:2 core:4", 3), ["compact", "scatter"], "one context a core");
    assert_eq!(names("2x2x2", 2), ["compact", "cores", "scatter"]);
    assert_eq!(
        names("2x2x2", 4),
        ["compact", "cores"],
        "a thread on each core, whichever came first"
    );
    for threads in [1, 8, 16] {
        assert_eq!(names("2x2x2", threads), ["compact"], "{threads} threads");
    }
    let nothing = SharingTree::over(
        &Machine::from_shape("2").unwrap(),
        &CpuSet::default(),
        Alike::ByStructure,
    );
    assert!(Policy::different(&nothing, 2).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_thread_has_a_context_of_its_own_while_there_are_enough(
        seed in any::<u64>(),
        threads in 0usize..40,
    ) {
        let machine = random_machine::machine(seed, 12);
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let contexts = tree.leaves().len();
        prop_assume!(contexts > 0);
        for policy in Policy::ALL.into_iter().filter(|policy| *policy != Policy::Fast) {
            let placed = policy.assign(&tree, threads);
            prop_assert_eq!(placed.threads(), threads);
            let mut held = vec![0; contexts];
            placed.leaves().iter().for_each(|&leaf| held[leaf as usize] += 1);
            let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}: {:?}", policy, held);
            // One thread more moves none of the others.
            let more = policy.assign(&tree, threads + 1);
            prop_assert_eq!(placed.leaves(), &more.leaves()[..threads]);
        }
        let used = Policy::ALL.map(|policy| tree.footprint(&policy.assign(&tree, threads)));
        let most = used.map(|used| used.cores).into_iter().max();
        prop_assert_eq!(Some(used[1].cores), most, "none has more cores than one thread a core");
        prop_assert!(used[2].packages >= used[0].packages && used[2].packages >= used[1].packages);
        prop_assert!(used[0].cores <= used[1].cores);
    }
}

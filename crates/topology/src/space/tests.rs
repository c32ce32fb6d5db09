//! Tests of the space of assignments.

use super::*;
use crate::{Alike, Machine, random_machine};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn space(shape: &str, threads: usize, per_context: PerContext) -> Space {
    let machine = Machine::from_shape(shape).unwrap();
    Space::new(SharingTree::new(&machine, Alike::ByStructure), threads, per_context).unwrap()
}

fn assignment(leaves: &[u32]) -> Assignment {
    Assignment::new(leaves.to_vec())
}

/// The number of assignments to an UltraSPARC T2, exact below 1e12. One source is table 1 of
/// Radojković et al., *Optimal task assignment in multithreaded processors: a statistical approach*
/// (ASPLOS 2012). The other is the base time table of the BlackBox scheduler.
const PUBLISHED: [(usize, &str); 12] = [
    (3, "11"),
    (4, "49"),
    (6, "1526"),
    (8, "74376"),
    (9, "592573"),
    (12, "459946355"),
    (15, "600985034650"),
    (18, "1.159e15"),
    (24, "8.236e21"),
    (32, "1.431e31"),
    (60, "5.517e58"),
    (64, "1.015e60"),
];

#[test]
fn the_published_numbers_of_assignments_to_a_t2_are_reproduced() {
    let t2 = Machine::model("ultrasparc-t2").unwrap();
    for (threads, expected) in PUBLISHED {
        let space =
            Space::new(SharingTree::new(&t2, Alike::ByStructure), threads, PerContext::AtMost(1))
                .unwrap()
                .count();
        let digits = space.to_string();
        let shown = if digits.len() <= 12 {
            digits
        } else {
            let mantissa = (digits[..5].parse::<f64>().unwrap() / 10.0).round() / 1e3;
            format!("{mantissa:.3}e{}", digits.len() - 1)
        };
        assert_eq!(shown, expected, "{threads} threads");
    }
}

#[test]
fn a_full_machine_has_as_many_classes_as_placements_per_symmetry() {
    // 64! placements, and 8! (2! (4!)^2)^8 symmetries that fix none of them.
    let factorial = |n: u32| (1..=n).map(BigUint::from).product::<BigUint>();
    let space = space("8x2x4", 64, PerContext::AtMost(1));
    assert_eq!(
        space.count(),
        factorial(64) / (factorial(8) * BigUint::from(2u32 * 24 * 24).pow(8))
    );
    assert_eq!(space.labelled(), factorial(64));
}

#[test]
fn the_largest_machine_of_the_benchmark_counts_right() {
    // 256 threads on 256 contexts of 2 x 64 x 2.
    let factorial = |n: u32| (1..=n).map(BigUint::from).product::<BigUint>();
    let count = space("2x64x2", 256, PerContext::AtMost(1)).count();
    assert_eq!(
        count,
        factorial(256) / (2u32 * factorial(64).pow(2) * BigUint::from(2u32).pow(128))
    );
}

#[test]
fn a_space_needs_contexts_and_room() {
    let machine = Machine::from_shape("2x2").unwrap();
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    let nothing = SharingTree::over(&machine, &Default::default(), Alike::ByStructure);
    assert_eq!(Space::new(nothing, 0, PerContext::Any).unwrap_err(), SpaceError::NoContexts);
    let full = Space::new(tree.clone(), 9, PerContext::AtMost(2)).unwrap_err();
    assert_eq!(full, SpaceError::TooManyThreads { threads: 9, contexts: 4, per_context: 2 });
    assert!(Space::new(tree.clone(), 1, PerContext::AtMost(0)).is_err());
    assert!(Space::new(tree, 8, PerContext::AtMost(2)).is_ok());
}

#[test]
fn no_threads_have_one_assignment() {
    for per_context in [PerContext::AtMost(0), PerContext::AtMost(1), PerContext::Any] {
        let space = space("2x2", 0, per_context);
        assert_eq!(space.count(), BigUint::from(1u32));
        assert_eq!(space.classes().collect::<Vec<_>>(), [assignment(&[])]);
        assert_eq!(space.sample(&mut Random::new(1)), assignment(&[]));
    }
}

#[test]
fn a_machine_of_one_context_has_one_assignment() {
    let space = space("1", 3, PerContext::Any);
    assert_eq!(space.count(), BigUint::from(1u32));
    assert_eq!(space.classes().collect::<Vec<_>>(), [assignment(&[0, 0, 0])]);
}

#[test]
fn canonical_fills_alike_domains_in_the_order_of_their_smallest_thread() {
    let space = space("2x2x2", 3, PerContext::AtMost(1));
    assert_eq!(space.canonical(&assignment(&[7, 2, 6])), assignment(&[0, 4, 1]));
    assert_eq!(space.class_size(&assignment(&[7, 2, 6])), BigUint::from(8u32 * 4));
}

#[test]
fn sampling_draws_every_class_in_proportion_to_its_size() {
    for (shape, threads, per_context) in [
        ("2x2x2", 3, PerContext::AtMost(1)),
        ("2x2x2", 4, PerContext::AtMost(2)),
        ("3x2", 5, PerContext::AtMost(3)),
        ("2x2", 4, PerContext::Any),
    ] {
        let space = space(shape, threads, per_context);
        let mut random = Random::new(2026);
        let draws = 40_000;
        let mut seen: BTreeMap<Assignment, f64> = BTreeMap::new();
        for _ in 0..draws {
            *seen.entry(space.sample(&mut random)).or_default() += 1.0;
        }
        let total = u64::try_from(space.labelled()).unwrap() as f64;
        let mut chi_square = 0.0;
        let mut classes = 0.0;
        for class in space.classes() {
            let expected =
                u64::try_from(space.class_size(&class)).unwrap() as f64 / total * f64::from(draws);
            chi_square += (seen.remove(&class).unwrap_or(0.0) - expected).powi(2) / expected;
            classes += 1.0;
        }
        assert!(seen.is_empty(), "drawn, but no class: {seen:?}");
        // Mean and standard deviation of chi-square with k degrees of freedom are k and sqrt(2 k);
        // 4 deviations. The seed is fixed.
        let freedom: f64 = classes - 1.0;
        assert!(
            chi_square < freedom + 4.0 * (2.0 * freedom).sqrt(),
            "{shape}: {chi_square} with {freedom}"
        );
    }
}

#[test]
fn labelled_assignments_of_partly_shared_contexts_are_uniform() {
    // Not only classes: each of the 540 functions from 4 threads to 5 contexts with at most 2 on
    // each.
    let space = space("5", 4, PerContext::AtMost(2));
    let placements = u64::try_from(space.labelled()).unwrap();
    assert_eq!(placements, 540);
    let mut random = Random::new(7);
    let mut seen: BTreeMap<Assignment, f64> = BTreeMap::new();
    for _ in 0..54_000 {
        *seen.entry(space.sample_labelled(&mut random)).or_default() += 1.0;
    }
    assert_eq!(seen.len(), 540);
    let chi_square: f64 = seen.values().map(|n| (n - 100.0_f64).powi(2) / 100.0).sum();
    assert!(chi_square < 539.0 + 4.0 * (2.0 * 539.0_f64).sqrt(), "{chi_square}");
}

/// Masks as lists of CPUs; "" is none.
fn masks(lists: &[&str]) -> Vec<Option<CpuSet>> {
    let mask = |list: &&str| (!list.is_empty()).then(|| CpuSet::parse_list(list).unwrap());
    lists.iter().map(mask).collect()
}

fn masked(shape: &str, lists: &[&str], per_context: PerContext) -> Result<Space, SpaceError> {
    let machine = Machine::from_shape(shape).unwrap();
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    Space::masked(tree, &masks(lists), per_context)
}

#[test]
fn contexts_that_only_some_threads_may_use_are_unlike_the_others() {
    // Two cores of two contexts. The last thread keeps to the second core.
    let space = masked("2x2", &["", "2-3"], PerContext::AtMost(1)).unwrap();
    let classes = [assignment(&[0, 2]), assignment(&[2, 3])];
    assert_eq!(space.classes().collect::<Vec<_>>(), classes);
    assert_eq!((space.count(), space.labelled()), (BigUint::from(2u32), BigUint::from(6u32)));
    assert_eq!(space.canonical(&assignment(&[1, 3])), classes[0]);
    assert_eq!(space.class_size(&classes[0]), BigUint::from(4u32));
    assert!(space.allows(&classes[0]) && !space.allows(&assignment(&[2, 0])));
    assert!(!space.allows(&assignment(&[2, 2])), "one per context");
    assert_eq!(space.tree().marked(&[0; 4]), *space.tree());
}

#[test]
fn threads_that_keep_to_too_few_contexts_have_no_space() {
    let refused = |lists: &[&str], per_context| masked("2x2", lists, per_context).unwrap_err();
    let one = PerContext::AtMost(1);
    let narrow = SpaceError::TooNarrow { per_context: 1 };
    assert_eq!(refused(&["0-1", "0-1", "0-1"], one), narrow);
    assert_eq!(refused(&["3", "3"], one), narrow);
    assert_eq!(refused(&["", "8-9"], one), SpaceError::Elsewhere { cpus: "8,9".into() });
    assert!(masked("2x2", &["0-1"; 3], PerContext::AtMost(2)).is_ok());
    assert!(masked("2x2", &["0-1"; 3], PerContext::Any).is_ok());
    // Each of 16 threads has its own pair of contexts, that of the next one overlaps.
    let pairs: Vec<String> = (0..16).map(|thread| format!("{thread}-{}", thread + 1)).collect();
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    assert_eq!(masked("20", &pairs, one).unwrap_err(), SpaceError::TooManyMasks);
    assert!(!are_countable(masks(&pairs).iter().flatten()));
    assert!(are_countable(masks(&pairs[..5]).iter().flatten()));
    // As in DPDK: threads with one context each are not counted.
    let each: Vec<String> = (0..16).map(|thread| thread.to_string()).collect();
    let mut each: Vec<&str> = each.iter().map(String::as_str).collect();
    each.push("");
    assert_eq!(masked("20", &each, one).unwrap().count(), BigUint::from(1u32));
}

#[test]
fn the_nearest_assignment_moves_only_threads_that_may_not_be_where_they_are() {
    let space = masked("2x2", &["", "2-3", "2-3"], PerContext::AtMost(1)).unwrap();
    assert_eq!(space.nearest(&assignment(&[1, 2, 3])), assignment(&[1, 2, 3]));
    assert_eq!(space.nearest(&assignment(&[0, 1, 2])), assignment(&[0, 3, 2]));
    // The first thread leaves the room that the others need.
    assert_eq!(space.nearest(&assignment(&[2, 2, 2])), assignment(&[0, 2, 3]));
    let crowd = masked("2x2", &["", "0-1", "0-1"], PerContext::Any).unwrap();
    assert_eq!(crowd.nearest(&assignment(&[0, 2, 3])), assignment(&[0, 1, 0]));
}

#[test]
fn masked_assignments_are_drawn_uniformly() {
    for (lists, per_context) in [
        (&["", "2-3", "2-3"][..], PerContext::AtMost(1)),
        (&["", "1-2", "2-4", "4"], PerContext::AtMost(1)),
        (&["", "1-2", "2-4", "4"], PerContext::AtMost(2)),
        (&["0-1", "1-2", "3"], PerContext::Any),
    ] {
        let space = masked("2x3", lists, per_context).unwrap();
        let placements = u64::try_from(space.labelled()).unwrap() as f64;
        let mut random = Random::new(11);
        let mut seen: BTreeMap<Assignment, f64> = BTreeMap::new();
        for _ in 0..(100.0 * placements) as usize {
            let drawn = space.sample_labelled(&mut random);
            assert!(space.allows(&drawn), "{drawn:?} of {lists:?}");
            *seen.entry(drawn).or_default() += 1.0;
        }
        assert_eq!(seen.len() as f64, placements);
        let chi_square: f64 = seen.values().map(|n| (n - 100.0_f64).powi(2) / 100.0).sum();
        let freedom = placements - 1.0;
        assert!(chi_square < freedom + 4.0 * (2.0 * freedom).sqrt(), "{lists:?}: {chi_square}");
    }
}

/// Every function from threads to contexts that respects the limit.
fn functions(contexts: u32, threads: usize, capacity: usize) -> Vec<Vec<u32>> {
    (0..threads).fold(vec![Vec::new()], |shorter, _| {
        let extended = |leaves: &Vec<u32>| {
            let room = |leaf: &u32| leaves.iter().filter(|other| *other == leaf).count() < capacity;
            (0..contexts)
                .filter(room)
                .map(|leaf| [&leaves[..], &[leaf]].concat())
                .collect::<Vec<_>>()
        };
        shorter.iter().flat_map(extended).collect()
    })
}

/// Every exchange of contexts that a sequence of `exchanges` makes.
fn compositions(exchanges: &[Vec<u32>], contexts: u32) -> BTreeSet<Vec<u32>> {
    let identity: Vec<u32> = (0..contexts).collect();
    let mut all = BTreeSet::from([identity.clone()]);
    let mut pending = vec![identity];
    while let Some(one) = pending.pop() {
        for next in exchanges {
            let next: Vec<u32> = one.iter().map(|&leaf| next[leaf as usize]).collect();
            if all.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    all
}

fn may(tree: &SharingTree, mask: &Option<CpuSet>, leaf: u32) -> bool {
    mask.as_ref().is_none_or(|mask| mask.contains(tree.leaves()[leaf as usize]))
}

/// The functions that keep to the masks.
fn kept(tree: &SharingTree, masks: &[Option<CpuSet>], capacity: usize) -> BTreeSet<Vec<u32>> {
    let fits =
        |leaves: &Vec<u32>| leaves.iter().zip(masks).all(|(&leaf, mask)| may(tree, mask, leaf));
    functions(tree.leaves().len() as u32, masks.len(), capacity).into_iter().filter(fits).collect()
}

/// The classes by their definition: orbits of all functions that keep to the masks. Only exchanges
/// that keep the masks count.
fn orbits(space: &Space, masks: &[Option<CpuSet>]) -> Vec<BTreeSet<Vec<u32>>> {
    let (tree, contexts) = (space.tree(), space.tree().leaves().len() as u32);
    let keeps = |moved: &Vec<u32>| {
        let same = |(leaf, &to): (usize, &u32)| {
            masks.iter().all(|mask| may(tree, mask, leaf as u32) == may(tree, mask, to))
        };
        moved.iter().enumerate().all(same)
    };
    let mut exchanges = compositions(&random_machine::exchanges(tree), contexts);
    exchanges.retain(keeps);
    let mut left = kept(tree, masks, space.capacity());
    let mut orbits = Vec::new();
    while let Some(start) = left.pop_first() {
        let image = |moved: &Vec<u32>| start.iter().map(|&leaf| moved[leaf as usize]).collect();
        let orbit: BTreeSet<Vec<u32>> = exchanges.iter().map(image).collect();
        left.retain(|leaves| !orbit.contains(leaves));
        orbits.push(orbit);
    }
    orbits
}

/// For some of the threads a random part of the contexts.
fn random_masks(tree: &SharingTree, threads: usize, random: &mut Random) -> Vec<Option<CpuSet>> {
    let mut some = || tree.leaves().iter().filter(|_| random.below(2) > 0).copied().collect();
    let [one, other]: [CpuSet; 2] = [some(), some()];
    let mask = |_| match random.below(4) {
        0 => Some(one.clone()),
        1 => Some(other.clone()),
        _ => None,
    };
    (0..threads).map(mask).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_agrees_with_brute_force(
        seed: u64,
        threads in 0usize..5,
        per_context in 0usize..4,
        numa: bool,
        open: bool,
    ) {
        let machine = random_machine::machine(seed, 6);
        let alike = if numa { Alike::ByStructure } else { Alike::ExceptNuma };
        let tree = SharingTree::new(&machine, alike);
        let per_context = match per_context {
            0 => PerContext::Any,
            most => PerContext::AtMost(most),
        };
        let masks = match open {
            true => vec![None; threads],
            false => random_masks(&tree, threads, &mut Random::new(seed)),
        };
        let space = match Space::masked(tree.clone(), &masks, per_context) {
            Err(SpaceError::TooNarrow { per_context }) => {
                prop_assert!(kept(&tree, &masks, per_context).is_empty());
                return Ok(());
            }
            Err(_) => return Ok(()),
            Ok(space) => space,
        };
        let orbits = orbits(&space, &masks);
        let classes: Vec<Assignment> = space.classes().collect();

        prop_assert_eq!(space.count(), BigUint::from(orbits.len()));
        let labelled: usize = orbits.iter().map(BTreeSet::len).sum();
        prop_assert_eq!(space.labelled(), BigUint::from(labelled));
        // Orbits were found in the order of their smallest members, and these are the
        // representatives.
        let smallest: Vec<Assignment> =
            orbits.iter().map(|orbit| assignment(orbit.first().unwrap())).collect();
        prop_assert_eq!(&classes, &smallest);
        for (class, orbit) in classes.iter().zip(&orbits) {
            prop_assert_eq!(space.class_size(class), BigUint::from(orbit.len()));
            for member in orbit {
                prop_assert!(space.allows(&assignment(member)));
                prop_assert_eq!(&space.canonical(&assignment(member)), class);
            }
        }
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let drawn = space.sample(&mut random);
            prop_assert!(classes.binary_search(&drawn).is_ok());
            prop_assert_eq!(space.nearest(&drawn), drawn);
        }
        let contexts = space.tree().leaves().len() as u64;
        let anywhere =
            Assignment::new((0..threads).map(|_| random.below(contexts) as u32).collect());
        prop_assert!(space.allows(&space.nearest(&anywhere)));
    }
}

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

/// The classes as the definition has them: orbits of all functions under all exchanges.
fn orbits(space: &Space) -> Vec<BTreeSet<Vec<u32>>> {
    let exchanges = random_machine::exchanges(space.tree());
    let mut left: BTreeSet<Vec<u32>> =
        functions(space.tree().leaves().len() as u32, space.threads(), space.capacity())
            .into_iter()
            .collect();
    let mut orbits = Vec::new();
    while let Some(start) = left.pop_first() {
        let mut orbit = BTreeSet::from([start.clone()]);
        let mut pending = vec![start];
        while let Some(leaves) = pending.pop() {
            for moved in &exchanges {
                let next: Vec<u32> = leaves.iter().map(|&leaf| moved[leaf as usize]).collect();
                if orbit.insert(next.clone()) {
                    left.remove(&next);
                    pending.push(next);
                }
            }
        }
        orbits.push(orbit);
    }
    orbits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_agrees_with_brute_force(
        seed: u64,
        threads in 0usize..5,
        per_context in 0usize..4,
        numa: bool,
    ) {
        let machine = random_machine::machine(seed, 7);
        let alike = if numa { Alike::ByStructure } else { Alike::ExceptNuma };
        let tree = SharingTree::new(&machine, alike);
        let per_context = match per_context {
            0 => PerContext::Any,
            most => PerContext::AtMost(most),
        };
        let Ok(space) = Space::new(tree, threads, per_context) else { return Ok(()) };
        let orbits = orbits(&space);
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
                prop_assert_eq!(&space.canonical(&assignment(member)), class);
            }
        }
        let mut random = Random::new(seed);
        for _ in 0..20 {
            prop_assert!(classes.binary_search(&space.sample(&mut random)).is_ok());
        }
    }
}

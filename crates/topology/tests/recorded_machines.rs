//! Machines read from recorded `/sys` and `/proc` trees, against what hwloc's authors expect of
//! them.

mod recorded;

use pinwise_synthetic::shared_data;
use pinwise_topology::{Machine, Snapshot};
use recorded::{Case, Item, cases, items};
use std::sync::OnceLock;

/// Every case and its machine, unpacked once for all tests.
fn machines() -> &'static [(Case, Machine)] {
    static MACHINES: OnceLock<Vec<(Case, Machine)>> = OnceLock::new();
    MACHINES.get_or_init(|| {
        let cases = shared_data("hwloc").map(|folder| cases(&folder)).unwrap_or_default();
        cases
            .into_iter()
            .map(|case| (machine(&case), case))
            .map(|(machine, case)| (case, machine))
            .collect()
    })
}

fn machine(case: &Case) -> Machine {
    let archive = std::fs::read(&case.archive).unwrap();
    let snapshot =
        Snapshot::from_tar(&archive).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    Machine::from_snapshot(&snapshot).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

fn compare(case: &str, ours: &[Item], theirs: &[Item]) {
    let without = |items: &[Item], others: &[Item]| -> Vec<String> {
        let only = items.iter().filter(|item| !others.contains(item)).take(8);
        only.map(|item| format!("{} [{}] {:?} {:?}", item.kind, item.cpus, item.number, item.size))
            .collect()
    };
    let (missing, extra) = (without(theirs, ours), without(ours, theirs));
    assert!(ours == theirs, "{case}: missing {missing:#?}, too much {extra:#?}");
}

/// Two notions that differ on purpose, applied to what hwloc expects.
fn in_our_terms(case: &Case, theirs: &mut [Item], ours: &[Item]) {
    for item in theirs.iter_mut().filter(|item| item.kind == "NUMA") {
        // The text rounds memory; take the exact figure.
        let same = ours.iter().find(|own| own.kind == "NUMA" && own.number == item.number);
        if item.size.is_none() {
            item.size = same.and_then(|own| own.size);
        }
        // hwloc attaches a node without contexts to those nearest by distance; here it stays
        // without.
        if case.name == "fakeheterocpunuma" && item.number == Some(2) {
            item.cpus = Default::default();
        }
    }
    theirs.sort();
}

#[test]
fn every_recorded_machine_has_the_domains_and_caches_that_hwloc_expects() {
    for (case, machine) in machines() {
        let ours = items(machine, case.whole(), case.instruction_caches());
        let mut theirs = case.expected().items;
        in_our_terms(case, &mut theirs, &ours);
        compare(&case.name, &ours, &theirs);
        assert_eq!(machine.notes, [], "{}", case.name);
    }
}

#[test]
fn distances_core_kinds_offline_and_disallowed_contexts_agree() {
    for (case, machine) in machines() {
        let expected = case.expected();
        if !expected.distances.is_empty() {
            let keep: Vec<usize> = (0..machine.numa.len())
                .filter(|&node| case.whole() || machine.numa[node].allowed)
                .collect();
            let all = &machine.distances.as_ref().expect(&case.name).0;
            let ours: Vec<Vec<u32>> = keep
                .iter()
                .map(|&row| keep.iter().map(|&column| all[row][column]).collect())
                .collect();
            assert_eq!(ours, expected.distances, "{}", case.name);
        }
        if !expected.kinds.is_empty() {
            let ours = machine.kinds.iter().map(|kind| kind.cpus.clone()).collect();
            assert_eq!(expected.kinds, ours, "{}", case.name);
        }
        let hidden = machine.online().difference(&machine.allowed);
        let absent =
            if case.whole() { machine.offline.clone() } else { machine.offline.union(&hidden) };
        assert_eq!(absent, expected.absent, "{}", case.name);
        if case.whole() {
            assert_eq!(hidden, expected.disallowed, "{}", case.name);
        }
    }
}

#[test]
fn a_machine_survives_json() {
    for (case, machine) in machines() {
        let text = serde_json::to_string(machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), *machine, "{}", case.name);
    }
}

#[test]
fn hwloc_xml_gives_the_machine_that_its_recording_gives() {
    for (case, machine) in
        machines().iter().filter(|(case, _)| case.target.extension().unwrap() == "xml")
    {
        let text = std::fs::read_to_string(&case.target).unwrap();
        let exported = Machine::from_hwloc_xml(&text).unwrap();
        compare(&case.name, &items(&exported, true, true), &case.expected().items);
        // And against our own reading of the recording, in what the export keeps: the allowed part.
        assert_eq!(exported.allowed, machine.allowed, "{}", case.name);
        let sets = |machine: &Machine| -> std::collections::BTreeSet<_> {
            machine.kinds.iter().map(|kind| kind.cpus.intersection(&machine.allowed)).collect()
        };
        assert_eq!(sets(&exported), sets(machine), "{}", case.name);
        assert_eq!(
            exported.distances.map_or(vec![], |distances| distances.0),
            case.expected().distances,
            "{}",
            case.name
        );
    }
}

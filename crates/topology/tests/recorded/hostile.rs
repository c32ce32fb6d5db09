//! Recorded machines and exports with random damage. Every answer is a machine or an error, never a
//! panic, and a machine's tree still holds together.

use super::cases;
use pinwise_synthetic::shared_data;
use pinwise_topology::{CpuSet, Domain, Machine, Snapshot};
use proptest::prelude::*;
use std::sync::OnceLock;

/// The smaller recorded machines, unpacked, and the exports.
fn originals() -> &'static (Vec<Snapshot>, Vec<String>) {
    static ORIGINALS: OnceLock<(Vec<Snapshot>, Vec<String>)> = OnceLock::new();
    ORIGINALS.get_or_init(|| {
        let cases = shared_data("hwloc").map(|folder| cases(&folder)).unwrap_or_default();
        let archives = cases
            .iter()
            .map(|case| std::fs::read(&case.archive).unwrap())
            .filter(|bytes| bytes.len() < 20_000);
        let exports = cases.iter().filter(|case| case.target.extension().unwrap() == "xml");
        (
            archives.map(|bytes| Snapshot::from_tar(&bytes).unwrap()).collect(),
            exports.map(|case| std::fs::read_to_string(&case.target).unwrap()).collect(),
        )
    })
}

fn holds_together(domain: &Domain) -> bool {
    let children = || domain.children.iter();
    let union = children().fold(CpuSet::new(), |all, child| all.union(&child.cpus));
    let disjoint = children().map(|child| child.cpus.len()).sum::<usize>() == union.len();
    (domain.children.is_empty() || disjoint && union == domain.cpus)
        && children().all(holds_together)
}

/// What may stand in a damaged file.
fn damage() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        Just(None),
        Just(Some(Vec::new())),
        "[0-9]{1,2}-[0-9]{1,2}".prop_map(|text| Some(text.into_bytes())),
        "[0-9a-f]{1,4}".prop_map(|text| Some(text.into_bytes())),
        "-1|0|3|65535|99999999999|0-65535".prop_map(|text| Some(text.into_bytes())),
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(Some),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_recording_gives_a_machine_or_an_error(
        machine in any::<prop::sample::Index>(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), damage()), 1..12),
    ) {
        let (snapshots, _) = originals();
        if snapshots.is_empty() { return Ok(()) }
        let owned = |(path, bytes): (&str, &[u8])| (path.to_owned(), bytes.to_vec());
        let mut files: Vec<(String, Vec<u8>)> =
            machine.get(snapshots).files().map(owned).collect();
        for (place, damage) in damages {
            let place = place.index(files.len());
            match damage {
                Some(bytes) => files[place].1 = bytes,
                None if files.len() > 1 => drop(files.remove(place)),
                None => {}
            }
        }
        let mut snapshot = Snapshot::default();
        for (path, bytes) in files {
            snapshot.insert(&path, bytes).unwrap();
        }
        if let Ok(machine) = Machine::from_snapshot(&snapshot) {
            prop_assert!(holds_together(&machine.root));
            prop_assert!(machine.allowed.is_subset(machine.online()));
            prop_assert!(machine.offline.is_disjoint(machine.online()));
            prop_assert_eq!(machine.contexts.len(), machine.online().len());
        }
    }

    #[test]
    fn a_damaged_export_gives_a_machine_or_an_error(
        export in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0usize..40, "[0-9a-fx\"<>/ -]{0,6}"),
            1..6,
        ),
    ) {
        let (_, exports) = originals();
        if exports.is_empty() { return Ok(()) }
        let mut text = export.get(exports).clone();
        for (place, length, put) in cuts {
            let start = place.index(text.len());
            let end = (start + length).min(text.len());
            // The exports are ASCII.
            text.replace_range(start..end, &put);
        }
        if let Ok(machine) = Machine::from_hwloc_xml(&text) {
            prop_assert!(holds_together(&machine.root));
        }
    }

    #[test]
    fn damaged_archives_are_refused_or_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..2048),
    ) {
        let _ = Snapshot::from_tar(&bytes);
        let mut packed = b"BZh9".to_vec();
        packed.extend(bytes);
        let _ = Snapshot::from_tar(&packed);
    }
}

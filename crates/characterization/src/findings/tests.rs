//! Tests of the findings of a characterization.

use super::*;
use crate::round_plan::RoundPlan;

fn benchmark(name: &str, level: DomainKind) -> Microbenchmark {
    Microbenchmark { name: name.into(), resource: "unit".into(), level, pipelined: true }
}

fn slowdown(
    reference: &str,
    stressor: &str,
    place: &str,
    slowdown: f64,
    half: Option<f64>,
) -> Slowdown {
    Slowdown {
        reference: reference.into(),
        stressor: stressor.into(),
        count: 1,
        place: place.into(),
        core_kind: None,
        slowdown,
        low: half.map(|half| slowdown - half),
        high: half.map(|half| slowdown + half),
        rounds: vec![slowdown],
        repetitions: 5,
        steady: true,
    }
}

/// What follows on two packages of two cores of two contexts.
fn findings(benchmarks: &[Microbenchmark], slowdowns: &[Slowdown]) -> Findings {
    let machine = Machine::from_shape("2x2x2").unwrap();
    let references = RoundPlan::new(&machine, benchmarks, &[], 8).unwrap().references;
    Findings::new(&machine, &references, benchmarks, slowdowns, &[])
}

#[test]
fn every_benchmark_is_in_one_list_and_doubt_has_its_reason() {
    let benchmarks = [
        benchmark("unit", DomainKind::Core),
        benchmark("clock", DomainKind::Core),
        benchmark("cache", DomainKind::L3),
        benchmark("mem", DomainKind::Numa),
        benchmark("bus", DomainKind::Numa),
    ];
    let rows = [
        slowdown("unit", "unit", "chip", 1.01, Some(0.02)),
        slowdown("clock", "unit", "chip", 1.2, Some(0.02)),
        slowdown("cache", "cache", "chip", 1.3, Some(0.1)),
        // Little, but certainly little: it does not matter, although memory is shared.
        slowdown("mem", "cache", "chip", 1.02, Some(0.01)),
        slowdown("bus", "mem", "chip", 1.02, Some(0.01)),
        slowdown("bus", "bus", "chip", 1.04, Some(0.09)),
    ];
    let remote = findings(&benchmarks, &rows).remote.unwrap();
    assert_eq!(remote.independent, ["unit", "mem"]);
    assert_eq!(
        (remote.dependent, remote.shared),
        (vec!["clock".to_owned()], vec!["cache".to_owned()])
    );
    let [undecided] = &remote.undecided[..] else { panic!("{:?}", remote.undecided) };
    assert_eq!(undecided.benchmark, "bus");
    let Doubt::Interval { low, high, count: 1, .. } = &undecided.reason else {
        panic!("{undecided:?}")
    };
    assert!((low - 0.95).abs() < 1e-9 && (high - 1.13).abs() < 1e-9, "{undecided:?}");
    let mut stored = serde_json::to_value(undecided).unwrap();
    assert_eq!(serde_json::from_value::<Undecided>(stored.clone()).unwrap(), *undecided);
    let text = "1.04 (0.95 to 1.13) next to 1 bus (chip)".to_owned();
    stored["reason"] = text.clone().into();
    let before: Undecided = serde_json::from_value(stored).unwrap();
    assert_eq!(before.reason, Doubt::Text { text }, "as versions before stored it");
}

#[test]
fn a_shared_cache_is_critical_where_those_that_pass_through_it_slow_its_users() {
    let benchmarks = [
        benchmark("unit", DomainKind::Core),
        benchmark("cache", DomainKind::L3),
        benchmark("mem", DomainKind::Numa),
        benchmark("flood", DomainKind::Numa),
    ];
    let rows = [
        // What a private unit suffers from memory's users is no fight over the unit.
        slowdown("unit", "flood", "chip", 1.3, Some(0.1)),
        slowdown("cache", "cache", "chip", 1.01, Some(0.02)),
        slowdown("cache", "mem", "chip", 1.1, Some(0.02)),
        slowdown("cache", "flood", "chip", 1.2, Some(0.02)),
        // A user of the cache that does not come to memory.
        slowdown("mem", "cache", "chip", 1.2, Some(0.02)),
        slowdown("mem", "flood", "chip", 1.2, Some(0.3)),
        // Equals speak for themselves.
        slowdown("flood", "flood", "chip", 1.06, Some(0.02)),
        slowdown("flood", "mem", "chip", 1.4, Some(0.02)),
    ];
    let critical = findings(&benchmarks, &rows).critical;
    let found: Vec<(&str, &str)> =
        critical.iter().map(|row| (&row.benchmark[..], &row.stressor[..])).collect();
    assert_eq!(found, [("cache", "flood"), ("flood", "flood")]);
}

#[test]
fn the_local_level_is_the_innermost_outside_of_which_places_do_not_matter() {
    let benchmarks = [benchmark("unit", DomainKind::Core), benchmark("mem", DomainKind::Numa)];
    let certain = Some(0.01);
    let of = |rows: &[Slowdown]| findings(&benchmarks, rows).local;
    let unit = |core, chip, machine| {
        ["core", "chip", "machine"]
            .into_iter()
            .zip([core, chip, machine])
            .map(|(place, factor)| slowdown("unit", "unit", place, factor, certain))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&unit(1.0, 1.0, 1.0)), Some(DomainKind::Pu));
    assert_eq!(of(&unit(2.0, 1.0, 1.0)), Some(DomainKind::Core));
    // Memory may be as slow next to another package as next to another core of this one. That is no
    // reason to look further.
    let mem = |chip, machine| {
        [("core", chip), ("chip", chip), ("machine", machine)]
            .map(|(place, factor)| slowdown("mem", "mem", place, factor, certain))
            .to_vec()
    };
    assert_eq!(of(&[unit(2.0, 1.0, 1.0), mem(1.5, 1.5)].concat()), Some(DomainKind::Core));
    assert_eq!(of(&[unit(2.0, 1.0, 1.0), mem(1.5, 1.0)].concat()), Some(DomainKind::Package));
    assert_eq!(
        of(&[unit(2.0, 1.5, 1.5), mem(1.5, 1.5)].concat()),
        None,
        "a unit that all cores share is no core's own"
    );
}

#[test]
fn a_full_inner_level_beside_others_counts_for_the_outer_one_by_what_they_add() {
    let benchmarks = [benchmark("unit", DomainKind::Core), benchmark("fetch", DomainKind::Core)];
    let row = |name: &str, place: &str, count, factor| Slowdown {
        count,
        ..slowdown(name, name, place, factor, None)
    };
    let rows = [
        // A unit takes one operation a cycle of threads that ask every fifth. Three of a core leave
        // enough, seven do not.
        row("unit", "pipe", 3, 1.0),
        row("unit", "core", 4, 1.0),
        row("unit", "pipe+core", 7, 1.6),
        // A stressor in the same pipe costs the same with and without others in the rest of the
        // core.
        row("fetch", "pipe", 3, 4.0),
        row("fetch", "core", 4, 1.0),
        row("fetch", "pipe+core", 7, 4.05),
    ];
    let machine = Machine::from_shape("package:1 core:4 pipe:2 pu:4").unwrap();
    let references = RoundPlan::new(&machine, &benchmarks, &[], 8).unwrap().references;
    let found = Findings::new(&machine, &references, &benchmarks, &rows, &[]);
    let critical: Vec<_> =
        found.critical.iter().map(|row| (&row.benchmark[..], &row.level[..], row.count)).collect();
    assert_eq!(critical, [("fetch", "pipe", 3), ("unit", "core", 7)]);
    let up_to: Vec<_> = found.sensitivity.iter().map(|row| row.up_to.as_deref()).collect();
    assert_eq!(up_to, [Some("core"), Some("pipe")]);
}

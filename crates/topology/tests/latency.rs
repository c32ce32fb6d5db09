//! Latency matrices of machines: synthetic ones, whose tree is known, and those that MCTOP's
//! authors measured.

use pinwise_synthetic::shared_data;
use pinwise_topology::{
    CpuId, CpuSet, DomainKind, LatencyComparison, LatencyLevels, LatencyMatrix, LatencyUnit,
    Machine, MctFile, Oddity, Random,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A matrix over the contexts of `machine`: `near` within its innermost domains, `ratio` times more
/// for each level outwards. Each direction of each pair differs from that by up to `noise`, either
/// way. Rows are in the order of `order`.
fn matrix(
    machine: &Machine,
    near: f64,
    ratio: f64,
    noise: f64,
    order: &[CpuId],
    random: &mut Random,
) -> LatencyMatrix {
    let mut depths: Vec<BTreeSet<&CpuSet>> = Vec::new();
    // A domain with the same contexts as its only child is no separate level.
    for domain in machine.root.walk().filter(|domain| domain.children.len() > 1) {
        let height =
            domain.walk().filter(|inner| inner.children.len() > 1).map(|inner| inner.cpus.len());
        let height = height.collect::<BTreeSet<usize>>().len() - 1;
        depths.resize(depths.len().max(height + 1), BTreeSet::new());
        depths[height].insert(&domain.cpus);
    }
    let distance = |a: CpuId, b: CpuId| {
        let together = |groups: &BTreeSet<&CpuSet>| {
            groups.iter().any(|group| group.contains(a) && group.contains(b))
        };
        let height = depths.iter().position(together).expect("the root has every context");
        near * ratio.powi(height as i32)
    };
    let cells = order.iter().flat_map(|&a| order.iter().map(move |&b| (a, b))).map(|(a, b)| {
        let noise = 1.0 + noise * (2.0 * random.unit() - 1.0);
        (a != b).then(|| distance(a, b) * noise)
    });
    let cells = cells.collect();
    LatencyMatrix::new(order.to_vec(), LatencyUnit::Ns, cells).unwrap()
}

fn contexts(machine: &Machine) -> Vec<CpuId> {
    machine.contexts.iter().map(|context| context.cpu).collect()
}

/// The groupings that the domains of a machine make, innermost first.
fn declared(machine: &Machine) -> Vec<BTreeSet<CpuSet>> {
    let mut kinds: Vec<DomainKind> = machine.root.walk().map(|domain| domain.kind).collect();
    kinds.sort();
    kinds.dedup();
    let groupings = kinds
        .iter()
        .rev()
        .map(|&kind| machine.domains(kind).map(|domain| domain.cpus.clone()).collect());
    let mut groupings: Vec<BTreeSet<CpuSet>> = groupings.collect();
    groupings.retain(|groups| groups.iter().any(|group| group.len() > 1));
    groupings.dedup();
    groupings
}

fn implied(levels: &LatencyLevels) -> Vec<BTreeSet<CpuSet>> {
    levels.levels.iter().map(|level| level.groups.iter().cloned().collect()).collect()
}

proptest! {
    #[test]
    fn a_noisy_matrix_gives_its_tree_back_in_any_order(
        shape in proptest::collection::vec(1usize..5, 1..4),
        ratio in 1.5f64..4.0,
        noise in 0.0f64..0.08,
        seed in any::<u64>(),
    ) {
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        let machine = Machine::from_shape(&shape.join("x")).unwrap();
        prop_assume!(machine.contexts.len() >= 2);
        let mut random = Random::new(seed);
        let mut order = contexts(&machine);
        random.shuffle(&mut order);
        let matrix = matrix(&machine, 8.0, ratio, noise, &order, &mut random);
        let levels = LatencyLevels::of(&matrix);
        prop_assert_eq!(implied(&levels), declared(&machine));
        prop_assert!(levels.levels.iter().all(|level| level.size().is_some()));
        prop_assert!(levels.levels.iter().all(|level| level.contradictions.is_empty()));
        let comparison = LatencyComparison::new(&matrix, &levels, &machine);
        prop_assert!(comparison.agrees() && comparison.unseen.is_empty(), "{:?}", comparison);
    }

    #[test]
    fn levels_nest_and_cover_every_context_whatever_the_values(
        n in 2usize..14,
        values in proptest::collection::vec(proptest::option::of(0.0f64..400.0), 13 * 13),
        exponent in -3.0f64..5.0,
    ) {
        let bent = |value: &Option<f64>| value.map(|value| value.powf(exponent.max(0.1)));
        let cells = values.iter().take(n * n).map(bent).collect();
        let contexts = (0..n as u32).map(CpuId).collect();
        let matrix = LatencyMatrix::new(contexts, LatencyUnit::Ns, cells).unwrap();
        let levels = LatencyLevels::of(&matrix).levels;
        let all: CpuSet = (0..n as u32).map(CpuId).collect();
        for level in &levels {
            let union = level.groups.iter().fold(CpuSet::new(), |union, group| union.union(group));
            prop_assert_eq!(&union, &all);
            prop_assert_eq!(level.groups.iter().map(CpuSet::len).sum::<usize>(), n);
        }
        for pair in levels.windows(2) {
            let outer = &pair[1].groups;
            let nested = |inner: &CpuSet| outer.iter().any(|outer| inner.is_subset(outer));
            prop_assert!(pair[0].groups.iter().all(nested));
            prop_assert!(pair[1].groups.len() < pair[0].groups.len());
        }
        prop_assert_eq!(levels.last().unwrap().groups.len(), 1);
    }
}

/// As [`matrix`], then some cells changed.
fn spoilt(shape: &str, changes: &[(usize, usize, f64)]) -> (Machine, LatencyMatrix) {
    let machine = Machine::from_shape(shape).unwrap();
    let n = machine.contexts.len();
    let clean = matrix(&machine, 10.0, 5.0, 0.02, &contexts(&machine), &mut Random::new(1));
    let mut cells: Vec<Option<f64>> =
        (0..n * n).map(|cell| clean.get(cell / n, cell % n)).collect();
    for &(from, to, value) in changes {
        cells[from * n + to] = Some(value);
    }
    (machine, LatencyMatrix::new(clean.contexts().to_vec(), LatencyUnit::Ns, cells).unwrap())
}

#[test]
fn spoilt_values_are_named_and_do_not_change_the_levels() {
    // Cores 0 and 1 of package 0 seem far apart in both directions. Contexts of two packages seem
    // near. One value is impossible.
    let changes =
        [(0, 3, 240.0), (3, 0, 245.0), (1, 9, 48.0), (9, 1, 47.0), (2, 15, 199_768_580.0)];
    let (machine, matrix) = spoilt("2x8x2", &changes);
    let levels = LatencyLevels::of(&matrix);
    assert_eq!(implied(&levels), declared(&machine));
    let odd = Oddity::Impossible { from: CpuId(2), to: CpuId(15), value: 199_768_580.0 };
    assert_eq!(levels.oddities, [odd]);
    // 0 and 9, of one package of 16 contexts, are as near as they should be.
    assert_eq!(levels.levels[1].contradictions, [(CpuId(0), CpuId(3), 240.0)]);
    let (machine, matrix) = spoilt("2x8x2", &[(1, 19, 48.0), (19, 1, 47.0)]);
    let levels = LatencyLevels::of(&matrix);
    assert_eq!(implied(&levels), declared(&machine));
    assert_eq!(levels.levels[1].contradictions, [(CpuId(1), CpuId(19), 47.0)]);
}

#[test]
fn values_that_stray_into_the_gap_between_levels_do_not_hide_it() {
    // One pair in sixty of those between packages is anything between the two levels.
    let changes: Vec<(usize, usize, f64)> = (0..4)
        .flat_map(|i| {
            let value = 70.0 + 40.0 * i as f64;
            [(i, 16 + 3 * i, value), (16 + 3 * i, i, value)]
        })
        .collect();
    let (machine, matrix) = spoilt("2x8x2", &changes);
    assert_eq!(implied(&LatencyLevels::of(&matrix)), declared(&machine));
}

#[test]
fn distances_that_are_no_tree_are_classes_of_one_level() {
    // Eight nodes of six contexts: pairs of nodes share a package; between packages one hop or two,
    // as on HyperTransport.
    let distance = |a: u32, b: u32| match (a / 6, b / 6) {
        (x, y) if x == y => 117.0,
        (x, y) if x / 2 == y / 2 => 197.0,
        (x, y) if x % 2 == y % 2 => 217.0,
        _ => 300.0,
    };
    let cells = (0..48 * 48).map(|cell| Some(distance(cell / 48, cell % 48))).collect();
    let matrix =
        LatencyMatrix::new((0..48).map(CpuId).collect(), LatencyUnit::Cycles, cells).unwrap();
    let levels = LatencyLevels::of(&matrix).levels;
    let told: Vec<(usize, Option<usize>)> =
        levels.iter().map(|level| (level.groups.len(), level.size())).collect();
    assert_eq!(told, [(8, Some(6)), (4, Some(12)), (1, Some(48))]);
    let hops: Vec<(f64, usize)> =
        levels[2].classes.iter().map(|class| (class.median, class.pairs)).collect();
    assert_eq!(hops, [(217.0, 432), (300.0, 432)]);
    assert!(levels[..2].iter().all(|level| level.classes.is_empty()));
}

#[test]
fn a_hybrid_machine_has_groups_of_unequal_size() {
    // Eight cores of two contexts and eight of one, on one ring.
    let distance = |a: u32, b: u32| {
        if a < 16 && a / 2 == b / 2 { 5.0 } else { 32.0 + f64::from((a * 7 + b * 7) % 9) }
    };
    let cells = (0..24 * 24).map(|cell| Some(distance(cell / 24, cell % 24))).collect();
    let matrix = LatencyMatrix::new((0..24).map(CpuId).collect(), LatencyUnit::Ns, cells).unwrap();
    let levels = LatencyLevels::of(&matrix).levels;
    assert_eq!(levels.iter().map(|level| level.groups.len()).collect::<Vec<_>>(), [16, 1]);
    assert_eq!(levels[0].size(), None);
}

#[test]
fn chance_groupings_of_few_contexts_are_no_levels() {
    // Of four equal cores the two fastest pairs happen to be disjoint, and 4 % faster than the
    // rest.
    let distance = |a: u32, b: u32| if a / 2 == b / 2 { 48.0 } else { 50.0 + f64::from(a % 2) };
    let cells = (0..16).map(|cell| Some(distance(cell / 4, cell % 4))).collect();
    let matrix = LatencyMatrix::new((0..4).map(CpuId).collect(), LatencyUnit::Ns, cells).unwrap();
    assert_eq!(LatencyLevels::of(&matrix).levels.len(), 1);
}

#[test]
fn noise_alone_makes_no_level() {
    let mut random = Random::new(3);
    for round in 0..3000 {
        let machine = Machine::from_shape(&(3 + round % 10).to_string()).unwrap();
        let matrix = matrix(&machine, 50.0, 1.0, 0.1, &contexts(&machine), &mut random);
        assert_eq!(LatencyLevels::of(&matrix).levels.len(), 1, "round {round}: {matrix:?}");
    }
}

#[test]
fn the_place_of_a_difference_from_the_declaration_is_shown() {
    let declared = Machine::from_shape("2x4").unwrap();
    // Measured: 0,2,4,6 and 1,3,5,7 are near.
    let distance = |a: u32, b: u32| if a % 2 == b % 2 { 40.0 } else { 120.0 };
    let cells = (0..64).map(|cell| Some(distance(cell / 8, cell % 8))).collect();
    let matrix = LatencyMatrix::new((0..8).map(CpuId).collect(), LatencyUnit::Ns, cells).unwrap();
    let comparison = LatencyComparison::new(&matrix, &LatencyLevels::of(&matrix), &declared);
    assert!(!comparison.agrees());
    let difference = comparison.levels[0].difference.as_ref().unwrap();
    assert_eq!(difference.implied.to_string(), "0,2,4,6");
    assert_eq!(
        difference.declared.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["0-3", "4-7"]
    );
    // Each grouping has 12 pairs. The 4 pairs that they have in common do not differ.
    assert_eq!(difference.pairs, 12 + 12 - 2 * 4);
    assert!(comparison.levels[1].difference.is_none());
    let unseen = &comparison.unseen[0];
    assert_eq!((unseen.groups, unseen.inside, unseen.outside), (2, Some(120.0), Some(120.0)));
}

#[test]
fn declared_levels_that_no_latency_shows_are_listed_with_figures() {
    let declared = Machine::from_shape("package:2 l2:2 core:2").unwrap();
    let distance = |a: u32, b: u32| if a / 4 == b / 4 { 40.0 } else { 120.0 };
    let cells = (0..64).map(|cell| Some(distance(cell / 8, cell % 8))).collect();
    let matrix = LatencyMatrix::new((0..8).map(CpuId).collect(), LatencyUnit::Ns, cells).unwrap();
    let comparison = LatencyComparison::new(&matrix, &LatencyLevels::of(&matrix), &declared);
    assert!(comparison.agrees());
    assert_eq!(comparison.levels[0].declared, [DomainKind::Package]);
    let [unseen] = comparison.unseen.as_slice() else { panic!("{comparison:?}") };
    assert_eq!((&unseen.kinds[..], unseen.groups), (&[DomainKind::L2][..], 4));
    assert_eq!((unseen.inside, unseen.outside), (Some(40.0), Some(40.0)));
}

#[test]
fn contexts_of_one_side_only_are_listed() {
    let declared = Machine::from_shape("4").unwrap();
    let cells = vec![Some(40.0); 4];
    let matrix = LatencyMatrix::new(vec![CpuId(3), CpuId(9)], LatencyUnit::Ns, cells).unwrap();
    let comparison = LatencyComparison::new(&matrix, &LatencyLevels::of(&matrix), &declared);
    assert_eq!(
        (comparison.unknown.to_string(), comparison.unmeasured.to_string()),
        ("9".into(), "0-2".into())
    );
    assert!(!comparison.agrees());
}

#[test]
fn contexts_have_an_order_a_level_and_a_place() {
    let machine = Machine::from_shape("2x2x2").unwrap();
    let order: Vec<CpuId> = [6, 0, 3, 5, 1, 2, 7, 4].map(CpuId).to_vec();
    let matrix = matrix(&machine, 10.0, 4.0, 0.0, &order, &mut Random::new(1));
    let levels = LatencyLevels::of(&matrix);
    let ordered: Vec<u32> = levels.order(&order).into_iter().map(|index| order[index].0).collect();
    assert_eq!(ordered, [0, 1, 2, 3, 4, 5, 6, 7]);
    let level = |a, b| levels.together(CpuId(a), CpuId(b));
    assert_eq!([level(0, 1), level(0, 2), level(0, 7), level(0, 99)], [0, 1, 2, 2]);
    // 10, 40 and 160 ns on a logarithmic scale.
    assert_eq!(
        [10.0, 40.0, 160.0].map(|value| (levels.place(value) * 100.0).round()),
        [0.0, 50.0, 100.0]
    );
}

/// For each machine its levels, and the group of context 0. A level has the number of groups, their
/// size, and the latency in cycles.
type Facts = (&'static str, &'static [(usize, usize, f64, &'static str)]);
const MACHINES: [Facts; 4] = [
    ("lpdpc34", &[(4, 2, 28.0, "0,4"), (1, 8, 104.0, "0-7")]),
    ("lpdpc4", &[(4, 2, 28.0, "0,4"), (1, 8, 88.0, "0-7")]),
    ("lpdxeon2680", &[(20, 2, 28.0, "0,20"), (2, 20, 112.0, "0-9,20-29"), (1, 40, 308.0, "0-39")]),
    (
        "lpdquad",
        &[
            (48, 2, 24.0, "0,48"),
            (4, 24, 135.0, "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60,64,68,72,76,80,84,88,92"),
            (1, 96, 338.0, "0-95"),
        ],
    ),
];

#[test]
fn the_levels_of_measured_machines_are_those_that_they_declare() {
    let Some(folder) = shared_data("mctop") else { return };
    for (name, facts) in MACHINES {
        let text = std::fs::read_to_string(folder.join(name).with_extension("mct")).unwrap();
        let file = MctFile::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(file.name, name);
        let levels = LatencyLevels::of(&file.matrix);
        let told: Vec<(usize, usize, f64, String)> = levels
            .levels
            .iter()
            .map(|level| {
                let size = level.size().expect("equal sizes");
                (
                    level.groups.len(),
                    size,
                    level.latency.unwrap().median,
                    level.groups[0].to_string(),
                )
            })
            .collect();
        let facts: Vec<(usize, usize, f64, String)> = facts
            .iter()
            .map(|&(groups, size, cycles, first)| (groups, size, cycles, first.to_owned()))
            .collect();
        assert_eq!(told, facts, "{name}");
        assert!(
            levels
                .levels
                .iter()
                .all(|level| level.contradictions.is_empty() && level.classes.is_empty())
        );
        assert!(levels.oddities.is_empty());
        let checks = file.check(&levels);
        assert!(checks.iter().all(|check| check.agrees), "{name}: {checks:?}");
        assert_eq!(checks.len(), if file.nodes > 1 { 3 } else { 2 }, "{name}");
    }
}

#[test]
fn a_measured_machine_with_the_known_corrupt_value_and_noise_keeps_its_levels() {
    let Some(folder) = shared_data("mctop") else { return };
    for (name, facts) in MACHINES {
        let text = std::fs::read_to_string(folder.join(name).with_extension("mct")).unwrap();
        let file = MctFile::parse(&text).unwrap();
        let n = file.matrix.contexts().len();
        let mut random = Random::new(7);
        let mut order: Vec<usize> = (0..n).collect();
        random.shuffle(&mut order);
        let mut cells: Vec<Option<f64>> = (0..n * n)
            .map(|cell| {
                file.matrix
                    .get(order[cell / n], order[cell % n])
                    .map(|value| value * (1.0 + 0.1 * random.unit()))
            })
            .collect();
        cells[n + 3] = Some(199_768_580.0);
        let contexts = order.iter().map(|&context| CpuId(context as u32)).collect();
        let noisy = LatencyMatrix::new(contexts, LatencyUnit::Cycles, cells).unwrap();
        let levels = LatencyLevels::of(&noisy);
        assert_eq!(implied(&levels), implied(&LatencyLevels::of(&file.matrix)), "{name}");
        assert_eq!(levels.levels.len(), facts.len());
        assert_eq!(levels.oddities.len(), 1);
    }
}

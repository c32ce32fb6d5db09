//! Which sets of programs to run, and where.
//!
//! The reference runs on the first context of each kind of core. The plan adds stressors, all of
//! one kind, level by level, the innermost first, in growing number. Domains near the reference are
//! filled one after the other (*packed*), as in the paper. On an UltraSPARC T2, `pipe` is 1 to 3
//! stressors in the reference's pipe. `core` is 1 to 4 in the other pipe of its core. `pipe+core`
//! fills the reference's pipe and puts 1 to 4 in the other. `chip` is up to 8 on another core.
//! Levels within a core are also combined, because groups and not threads share units within a
//! core. In section 4.2, 4 stressors slow FPdiv down 4 times in its own pipe. From the other pipe
//! it is 1.9 times, and from both 7.6 times.
//!
//! The plan also asks whether it matters *how* remote stressors are arranged. It packs them on one
//! remote core, or spreads as many over several (section 4.3, thread assignments 1 to 3).

use crate::level::{self, Absent, Level};
use pinwise_measure::{Microbenchmark, Seat};
use pinwise_topology::{Alike, Machine, SharingTree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stressors that are spread over remote cores, at most.
const SPREAD: usize = 4;
/// Up to here numbers of stressors grow by one, beyond they double.
const ONE_BY_ONE: usize = 4;

/// Why there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoundPlanError {
    /// A benchmark the bench does not have.
    #[error("there is no benchmark '{name}' here; there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No context.
    #[error(
        "no hardware context is allowed: check the cpuset and the affinity mask (taskset -p $$)"
    )]
    NoContexts,
}

/// Where the reference sits: the first context of a kind of core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The kind of core; none is named where all are of one kind.
    pub core_kind: Option<String>,
    /// Its leaf.
    pub leaf: u32,
    /// The levels around it, innermost first.
    pub levels: Vec<Level>,
    /// Levels that are not there.
    pub absent: Vec<Absent>,
}

/// One set of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedExperiment {
    /// Index into [`RoundPlan::references`].
    pub reference: usize,
    /// The program of the reference: index into the bench's benchmarks.
    pub benchmark: usize,
    /// The program of all stressors; `None` for the reference alone.
    pub stressor: Option<usize>,
    /// How many stressors.
    pub count: usize,
    /// Which levels they are at: `pipe`, `pipe+core`; empty for none.
    pub place: String,
    /// Whether they are spread over remote cores instead of packed.
    pub spread: bool,
    /// All programs, the reference first.
    pub layout: Vec<Seat>,
}

/// All that is to be run once in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundPlan {
    /// Where references sit.
    pub references: Vec<Reference>,
    /// The benchmarks that take part.
    pub benchmarks: Vec<usize>,
    /// The sets; those of the reference alone first.
    pub experiments: Vec<PlannedExperiment>,
}

/// Where stressors sit, for any reference and stressor.
struct Arrangement {
    place: String,
    spread: bool,
    leaves: Vec<u32>,
}

impl RoundPlan {
    /// The plan for `machine` with those of `benchmarks` named in `chosen` (all, if none is). Each
    /// remote level has at most `most` stressors.
    ///
    /// # Errors
    /// A name that is not there; a machine without contexts.
    pub fn new(
        machine: &Machine,
        benchmarks: &[Microbenchmark],
        chosen: &[String],
        most: usize,
    ) -> Result<Self, RoundPlanError> {
        let tree = SharingTree::new(machine, Alike::ByStructure);
        if tree.leaves().is_empty() {
            return Err(RoundPlanError::NoContexts);
        }
        let find = |name: &String| {
            benchmarks.iter().position(|benchmark| benchmark.name == *name).ok_or_else(|| {
                RoundPlanError::Unknown {
                    name: name.clone(),
                    known: benchmarks
                        .iter()
                        .map(|benchmark| benchmark.name.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                }
            })
        };
        let mut benchmarks = match chosen {
            [] => (0..benchmarks.len()).collect(),
            names => names.iter().map(find).collect::<Result<Vec<_>, _>>()?,
        };
        benchmarks.sort_unstable();
        benchmarks.dedup();
        let references = references(machine, &tree);
        let mut plan = Self { references, benchmarks, experiments: Vec::new() };
        for reference in 0..plan.references.len() {
            plan.add_alone(reference);
        }
        for reference in 0..plan.references.len() {
            plan.add_beside(reference, &tree, most);
        }
        Ok(plan)
    }

    fn add_alone(&mut self, reference: usize) {
        let leaf = self.references[reference].leaf;
        for &benchmark in &self.benchmarks {
            let layout = vec![Seat { leaf, benchmark }];
            let place = String::new();
            self.experiments.push(PlannedExperiment {
                reference,
                benchmark,
                stressor: None,
                count: 0,
                place,
                spread: false,
                layout,
            });
        }
    }

    fn add_beside(&mut self, reference: usize, tree: &SharingTree, most: usize) {
        let Reference { leaf, levels, .. } = &self.references[reference];
        let arrangements = arrangements(tree, *leaf, levels, most);
        for &benchmark in &self.benchmarks {
            for &stressor in &self.benchmarks {
                for arrangement in &arrangements {
                    let others =
                        arrangement.leaves.iter().map(|&leaf| Seat { leaf, benchmark: stressor });
                    self.experiments.push(PlannedExperiment {
                        reference,
                        benchmark,
                        stressor: Some(stressor),
                        count: arrangement.leaves.len(),
                        place: arrangement.place.clone(),
                        spread: arrangement.spread,
                        layout: std::iter::once(Seat { leaf: *leaf, benchmark })
                            .chain(others)
                            .collect(),
                    });
                }
            }
        }
    }
}

/// The first context of each kind of core among those that may be used.
fn references(machine: &Machine, tree: &SharingTree) -> Vec<Reference> {
    let mut first: BTreeMap<usize, u32> = BTreeMap::new();
    for (leaf, cpu) in (0..).zip(tree.leaves()) {
        let kind = machine
            .contexts
            .iter()
            .find(|context| context.cpu == *cpu)
            .map_or(0, |context| context.kind);
        first.entry(kind).or_insert(leaf);
    }
    let several = first.len() > 1;
    let named =
        |kind: usize| machine.kinds.get(kind).filter(|_| several).map(|kind| kind.name.clone());
    first
        .into_iter()
        .map(|(kind, leaf)| {
            let levels = level::levels(machine, tree, leaf);
            let absent = level::absent(machine, &levels);
            Reference { core_kind: named(kind), leaf, levels, absent }
        })
        .collect()
}

fn arrangements(tree: &SharingTree, leaf: u32, levels: &[Level], most: usize) -> Vec<Arrangement> {
    let mut arrangements = Vec::new();
    let mut inner: Vec<u32> = Vec::new();
    let mut inner_name = String::new();
    let mut inside = leaf..leaf + 1;
    for level in levels {
        // Those after the reference first, then around to those before it.
        let packed: Vec<u32> =
            (inside.end..level.leaves.end).chain(level.leaves.start..inside.start).collect();
        let limit = if level.is_remote() { packed.len().min(most) } else { packed.len() };
        for count in growing(limit) {
            let leaves = packed[..count].to_vec();
            arrangements.push(Arrangement { place: level.name.clone(), spread: false, leaves });
        }
        if level.is_remote() {
            arrangements.extend(spread(tree, level, &packed, limit));
        } else {
            let name = if inner.is_empty() {
                level.name.clone()
            } else {
                format!("{inner_name}+{}", level.name)
            };
            for count in growing(limit).into_iter().filter(|_| !inner.is_empty()) {
                let leaves = inner.iter().chain(&packed[..count]).copied().collect();
                arrangements.push(Arrangement { place: name.clone(), spread: false, leaves });
            }
            inner.extend(&packed);
            inner_name = name;
        }
        inside = level.leaves.clone();
    }
    arrangements
}

/// 1, 2, 3, 4, then doubling, and `most` itself.
fn growing(most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (1..=most.min(ONE_BY_ONE)).collect();
    while let Some(&last) = counts.last().filter(|&&last| last < most) {
        counts.push((2 * last).min(most));
    }
    counts
}

/// The stressors that a packed set is compared with. There are as many, one on each of several
/// siblings of the reference's domain. `None` if packing gives the same set, because siblings have
/// one context or there is only one.
fn spread(tree: &SharingTree, level: &Level, packed: &[u32], limit: usize) -> Option<Arrangement> {
    let sibling = |leaf: u32| {
        let inner =
            tree.around(leaf).into_iter().filter(|(_, leaves)| leaves.len() < level.leaves.len());
        inner.max_by_key(|(_, leaves)| leaves.len()).map_or(leaf..leaf + 1, |(_, leaves)| leaves)
    };
    let mut firsts: Vec<u32> = Vec::new();
    let mut seen = Vec::new();
    for &leaf in packed {
        let sibling = sibling(leaf);
        if !seen.contains(&sibling) {
            seen.push(sibling);
            firsts.push(leaf);
        }
    }
    let count = limit.min(SPREAD);
    let leaves: Vec<u32> = firsts.into_iter().take(count).collect();
    let differs = leaves.len() == count && count > 1 && leaves != packed[..count];
    differs.then(|| Arrangement { place: level.name.clone(), spread: true, leaves })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::DomainKind;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn benchmarks(names: &[&str]) -> Vec<Microbenchmark> {
        let one = |name: &&str| Microbenchmark {
            name: (*name).into(),
            resource: "unit".into(),
            level: DomainKind::Core,
            pipelined: true,
        };
        names.iter().map(one).collect()
    }

    fn plan(machine: &Machine, most: usize) -> RoundPlan {
        RoundPlan::new(machine, &benchmarks(&["a", "b"]), &[], most).unwrap()
    }

    /// `place count`, spread ones marked, of one pair.
    fn places(plan: &RoundPlan, reference: usize) -> Vec<String> {
        let of = |experiment: &&PlannedExperiment| {
            experiment.reference == reference
                && experiment.benchmark == 0
                && experiment.stressor == Some(1)
        };
        let show = |experiment: &PlannedExperiment| {
            let mark = if experiment.spread { " spread" } else { "" };
            format!("{} {}{mark}", experiment.place, experiment.count)
        };
        plan.experiments.iter().filter(of).map(show).collect()
    }

    #[test]
    fn the_t2_gets_the_layouts_of_the_paper() {
        let plan = plan(&Machine::model("ultrasparc-t2").unwrap(), 8);
        assert_eq!(
            places(&plan, 0),
            [
                "pipe 1",
                "pipe 2",
                "pipe 3",
                "core 1",
                "core 2",
                "core 3",
                "core 4",
                "pipe+core 4",
                "pipe+core 5",
                "pipe+core 6",
                "pipe+core 7",
                "chip 1",
                "chip 2",
                "chip 3",
                "chip 4",
                "chip 8",
                "chip 4 spread"
            ]
        );
        // Alone, then 17 layouts for each pair.
        assert_eq!(plan.experiments.len(), 2 + 4 * 17);
        let of = |place: &str, count, spread| {
            let found = plan
                .experiments
                .iter()
                .find(|e| e.place == place && e.count == count && e.spread == spread);
            found.unwrap().layout.iter().map(|seat| seat.leaf).collect::<Vec<_>>()
        };
        assert_eq!(of("core", 4, false), [0, 4, 5, 6, 7]);
        assert_eq!(of("pipe+core", 5, false), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of("chip", 8, false), [0, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(of("chip", 4, true), [0, 8, 16, 24, 32]);
    }

    #[test]
    fn machines_of_other_shapes() {
        let shape = |shape: &str| Machine::from_shape(shape).unwrap();
        let two =
            ["core 1", "chip 1", "chip 2", "machine 1", "machine 2", "machine 3", "machine 4"];
        assert_eq!(places(&plan(&shape("2x2x2"), 8), 0), two);
        assert_eq!(places(&plan(&shape("package:1 core:2 pu:1"), 8), 0), ["chip 1"]);
        let places_of_16 = places(&plan(&shape("package:1 core:16 pu:1"), 15), 0);
        assert_eq!(places_of_16, ["chip 1", "chip 2", "chip 3", "chip 4", "chip 8", "chip 15"]);
        assert!(places(&plan(&shape("1"), 8), 0).is_empty());
    }

    #[test]
    fn each_kind_of_core_has_a_reference() {
        let files = ["0-1", "2-3"].map(|cpus| cpus.parse().unwrap());
        let mut machine = Machine::from_shape("package:1 core:4 pu:1").unwrap();
        machine.kinds = ["P", "E"]
            .into_iter()
            .zip(files)
            .map(|(name, cpus)| pinwise_topology::CoreKind {
                name: name.into(),
                cpus,
                capacity: None,
            })
            .collect();
        for index in 0..4 {
            machine.contexts[index].kind = index / 2;
        }
        let plan = plan(&machine, 8);
        let kinds: Vec<_> = plan
            .references
            .iter()
            .map(|reference| reference.core_kind.as_deref().unwrap())
            .collect();
        assert_eq!(kinds, ["P", "E"]);
        assert_eq!(plan.references[1].leaf, 2);
        assert_eq!(places(&plan, 1), ["chip 1", "chip 2", "chip 3"]);
    }

    #[test]
    fn benchmarks_can_be_chosen_by_name() {
        let machine = Machine::from_shape("2").unwrap();
        let all = benchmarks(&["a", "b", "c"]);
        let plan =
            RoundPlan::new(&machine, &all, &["c".into(), "a".into(), "c".into()], 8).unwrap();
        assert_eq!(plan.benchmarks, [0, 2]);
        let error = RoundPlan::new(&machine, &all, &["d".into()], 8).unwrap_err().to_string();
        assert_eq!(error, "there is no benchmark 'd' here; there are a, b, c");
    }

    proptest! {
        #[test]
        fn no_context_holds_two_programs_and_no_layout_comes_twice(
            packages in 1u32..4, cores in 1u32..5, contexts in 1u32..5, most in 1usize..20
        ) {
            let machine = Machine::from_shape(&format!("{packages}x{cores}x{contexts}")).unwrap();
            let plan = plan(&machine, most);
            let mut layouts = BTreeSet::new();
            for experiment in &plan.experiments {
                let leaves: BTreeSet<u32> =
                    experiment.layout.iter().map(|seat| seat.leaf).collect();
                prop_assert_eq!(leaves.len(), experiment.count + 1);
                prop_assert!(leaves.iter().all(|&leaf| (leaf as usize) < machine.contexts.len()));
                prop_assert!(layouts.insert(experiment.layout.clone()), "{:?}", experiment);
            }
        }
    }
}

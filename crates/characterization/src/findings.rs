//! The findings that follow from the tables. They name critical resources, sensitive programs, and
//! programs that suit each other as co-runners. They also say whether remote cores matter.
//!
//! The thresholds follow the paper's words. Up to 5 % is *negligible*. Its "moderate" slowdowns are
//! 11 to 44 %, and its "significant" ones begin at 1.5 times. A slowdown counts only if its
//! interval also excludes 1.

use crate::{Arranged, Level, Reference, Slowdown, SpaceSizes, scope};
use pinwise_measure::{Microbenchmark, value_or_text};
use pinwise_topology::{DomainKind, Machine};
use serde::{Deserialize, Serialize};

/// Below this a slowdown is negligible.
const NEGLIGIBLE: f64 = 1.05;
/// From here on it is high.
const HIGH: f64 = 1.5;
/// Tasks for which the size of the space is printed, as in section 4.4. A machine with fewer
/// contexts has fewer.
const TASKS: usize = 9;

/// All that follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The resources whose users suffer most from each other, level by level, the worst first.
    pub critical: Vec<Critical>,
    /// How sensitive each benchmark is, and up to which level.
    pub sensitivity: Vec<Sensitivity>,
    /// For each benchmark and level the stressors from best to worst.
    pub co_runners: Vec<CoRunners>,
    /// Whether remote cores matter; none if there is no remote core.
    pub remote: Option<Remote>,
    /// The smallest domains that can be looked at one at a time. What happens within one of them
    /// does not depend on how threads are placed outside. None where that is true of nothing below
    /// the whole machine, and where there is one core only.
    #[serde(default)]
    pub local: Option<DomainKind>,
    /// What looking at one core at a time would save; none if no context has a core.
    pub scope: Option<SpaceSizes>,
}

/// A resource that its users fight over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Critical {
    /// The outermost level at which they still do: that of the resource.
    pub level: String,
    /// The resource.
    pub resource: String,
    /// The benchmark that uses it.
    pub benchmark: String,
    /// The benchmark that ran with it: the same, or one whose loads and stores go the same way and
    /// farther. Empty in documents of earlier versions.
    #[serde(default)]
    pub stressor: String,
    /// How many of them ran at that level.
    pub count: usize,
    /// Its slowdown then.
    pub slowdown: f64,
}

/// How much a benchmark minds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitivityClass {
    /// Never slowed down by more than 5 %.
    Insensitive,
    /// Below 1.5 times.
    Moderate,
    /// 1.5 times and more.
    High,
}

/// The class of a slowdown.
fn class(slowdown: &Slowdown) -> SensitivityClass {
    match slowdown {
        slowdown if !slowed(slowdown) => SensitivityClass::Insensitive,
        slowdown if slowdown.slowdown < HIGH => SensitivityClass::Moderate,
        _ => SensitivityClass::High,
    }
}

/// Beyond the negligible, and beyond doubt.
fn slowed(slowdown: &Slowdown) -> bool {
    slowdown.slowdown >= NEGLIGIBLE && slowdown.low.is_none_or(|low| low > 1.0)
}

/// A benchmark's sensitivity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The benchmark.
    pub benchmark: String,
    /// How much it minds the worst stressor at its worst level.
    pub class: SensitivityClass,
    /// Its largest slowdown.
    pub most: f64,
    /// By which stressor.
    pub stressor: Option<String>,
    /// At which level.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The outermost level at which anything slows it down.
    pub up_to: Option<String>,
}

/// Stressors of one benchmark at one level, full: from best to worst in each class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoRunners {
    /// The reference.
    pub benchmark: String,
    /// The level.
    #[serde(rename = "where")]
    pub place: String,
    /// How many stressors.
    pub count: usize,
    /// Low interaction: negligible slowdown.
    pub low: Vec<String>,
    /// In between.
    pub moderate: Vec<String>,
    /// High interaction.
    pub high: Vec<String>,
}

/// Whether what runs on other cores matters. Every benchmark is in one of the four lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remote {
    /// Benchmarks that nothing on another core slows down by 5 % or more, whatever they use.
    pub independent: Vec<String>,
    /// Benchmarks of core-private resources that something does slow down: core-local scope fails
    /// for them.
    pub dependent: Vec<String>,
    /// Benchmarks of shared resources that are slowed down by what runs elsewhere.
    pub shared: Vec<String>,
    /// Benchmarks whose intervals leave it open.
    #[serde(default)]
    pub undecided: Vec<Undecided>,
    /// The largest change by another arrangement of the same remote stressors (spread / packed -
    /// 1). Only changes beyond doubt count. `None` if no other arrangement exists.
    pub arrangement: Option<f64>,
    /// The reference and the stressor that showed it.
    pub arrangement_of: Option<(String, String)>,
    /// Where a thread sits among remote cores does not matter: a scheduler may look at one core at
    /// a time.
    pub core_local: bool,
}

/// A benchmark for which the measurements do not show whether other cores matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    /// The benchmark.
    pub benchmark: String,
    /// The set that leaves it open.
    #[serde(deserialize_with = "value_or_text")]
    pub reason: Doubt,
}

/// What leaves it open whether other cores matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// The interval of a slowdown.
    Interval {
        /// The slowdown.
        slowdown: f64,
        /// The lower end of its interval.
        low: f64,
        /// The upper end.
        high: f64,
        /// How many stressors ran.
        count: usize,
        /// The stressor.
        stressor: String,
        /// The level.
        #[serde(rename = "where")]
        place: String,
    },
    /// Text: from a store that was written before these reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(Doubt);

impl Findings {
    /// The critical resource with the largest slowdown.
    pub fn worst(&self) -> Option<&Critical> {
        self.critical.iter().max_by(|a, b| a.slowdown.total_cmp(&b.slowdown))
    }

    pub(crate) fn new(
        machine: &Machine,
        references: &[Reference],
        benchmarks: &[Microbenchmark],
        slowdowns: &[Slowdown],
        arrangements: &[Arranged],
    ) -> Self {
        // The kind of core named first stands for the machine; tables of the others are in the
        // slowdowns.
        let kind = references.first().and_then(|reference| reference.core_kind.clone());
        let levels = references.first().map_or(&[][..], |reference| &reference.levels);
        let full: Vec<&Slowdown> = slowdowns
            .iter()
            .filter(|row| row.core_kind == kind)
            .filter(|row| {
                let most = slowdowns
                    .iter()
                    .filter(|other| other.place == row.place && other.core_kind == kind);
                most.map(|other| other.count).max() == Some(row.count)
            })
            .collect();
        let names: Vec<String> = levels.iter().map(|level| level.name.clone()).collect();
        let remote_names: Vec<&String> =
            levels.iter().filter(|level| level.is_remote()).map(|level| &level.name).collect();
        let of_kind: Vec<&Slowdown> =
            slowdowns.iter().filter(|row| row.core_kind == kind).collect();
        let arranged: Vec<&Arranged> =
            arrangements.iter().filter(|row| row.core_kind == kind).collect();
        let local =
            Tables { benchmarks, slowdowns: &of_kind, arrangements: &arranged }.local(levels);
        let remote = (!remote_names.is_empty())
            .then(|| remote(&remote_names, benchmarks, &of_kind, &arranged, local));
        let tasks = TASKS.min(machine.allowed.len());
        Self {
            critical: critical(&names, benchmarks, &full),
            sensitivity: benchmarks
                .iter()
                .map(|benchmark| sensitivity(&names, &benchmark.name, slowdowns, &kind))
                .collect(),
            co_runners: co_runners(benchmarks, &full),
            remote,
            local,
            scope: scope(machine, tasks),
        }
    }
}

fn critical(names: &[String], benchmarks: &[Microbenchmark], full: &[&Slowdown]) -> Vec<Critical> {
    let mut critical = Vec::new();
    for benchmark in benchmarks {
        let slowed_by = |stressor: &Microbenchmark| {
            // The outermost level at which they still meet is that of the resource.
            let of_both =
                |row: &&&Slowdown| row.reference == benchmark.name && row.stressor == stressor.name;
            let rows: Vec<&Slowdown> = full.iter().filter(of_both).copied().collect();
            names.iter().rev().find_map(|level| slowed_at(&rows, level).map(|row| (level, row)))
        };
        // One that waits for each load may be too slow to disturb its equal. It can still suffer
        // from stressors that go the same way. Kinds of domains come outermost first.
        let same_way = |other: &&Microbenchmark| {
            benchmark.level < DomainKind::Core && other.level <= benchmark.level
        };
        let by_others = || {
            let rows = benchmarks.iter().filter(same_way).filter_map(slowed_by);
            rows.max_by(|(_, one), (_, other)| one.slowdown.total_cmp(&other.slowdown))
        };
        if let Some((level, row)) = slowed_by(benchmark).or_else(by_others) {
            critical.push(Critical {
                level: level.clone(),
                resource: benchmark.resource.clone(),
                benchmark: benchmark.name.clone(),
                stressor: row.stressor.clone(),
                count: row.count,
                slowdown: row.slowdown,
            });
        }
    }
    let rank = |critical: &Critical| names.iter().position(|name| *name == critical.level);
    critical.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.slowdown.total_cmp(&a.slowdown)));
    critical
}

fn sensitivity(
    names: &[String],
    benchmark: &str,
    slowdowns: &[Slowdown],
    kind: &Option<String>,
) -> Sensitivity {
    let rows: Vec<&Slowdown> = slowdowns
        .iter()
        .filter(|row| row.reference == benchmark && row.core_kind == *kind)
        .collect();
    let worst =
        rows.iter().filter(|row| slowed(row)).max_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
    let largest = rows.iter().map(|row| row.slowdown).fold(1.0, f64::max);
    let up_to = names.iter().rev().find(|level| slowed_at(&rows, level).is_some());
    Sensitivity {
        benchmark: benchmark.to_owned(),
        class: worst.map_or(SensitivityClass::Insensitive, |row| class(row)),
        most: worst.map_or(largest, |row| row.slowdown),
        stressor: worst.map(|row| row.stressor.clone()),
        place: worst.map(|row| row.place.clone()),
        up_to: up_to.cloned(),
    }
}

/// The largest slowdown of a reference, among its rows, that stressors at `level` are the cause of.
/// Levels inside may be full as well (`pipe+core`). The outer one then counts only if it adds to
/// the slowdown of those inside alone. The addition must be beyond doubt and not negligible.
fn slowed_at<'a>(rows: &[&'a Slowdown], level: &str) -> Option<&'a Slowdown> {
    let added = |row: &Slowdown, inside: &str| {
        let same = |other: &&&Slowdown| other.stressor == row.stressor && other.place == inside;
        let without = rows.iter().filter(same).max_by_key(|other| other.count);
        without.is_none_or(|without| {
            let apart = row.low.zip(without.high).is_none_or(|(low, high)| low > high);
            row.slowdown >= without.slowdown * NEGLIGIBLE && apart
        })
    };
    let caused = |row: &&&Slowdown| {
        slowed(row)
            && match row.place.rsplit_once('+') {
                Some((inside, outermost)) => outermost == level && added(row, inside),
                None => row.place == level,
            }
    };
    rows.iter().filter(caused).copied().max_by(|one, other| one.slowdown.total_cmp(&other.slowdown))
}

fn co_runners(benchmarks: &[Microbenchmark], full: &[&Slowdown]) -> Vec<CoRunners> {
    let mut places: Vec<&str> = Vec::new();
    for row in full {
        if !places.contains(&row.place.as_str()) {
            places.push(&row.place);
        }
    }
    let mut found = Vec::new();
    for benchmark in benchmarks {
        for &place in &places {
            let mut rows: Vec<&&Slowdown> = full
                .iter()
                .filter(|row| row.reference == benchmark.name && row.place == place)
                .collect();
            rows.sort_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
            let of = |wanted: SensitivityClass| {
                rows.iter()
                    .filter(|row| class(row) == wanted)
                    .map(|row| row.stressor.clone())
                    .collect()
            };
            found.push(CoRunners {
                benchmark: benchmark.name.clone(),
                place: place.to_owned(),
                count: rows.first().map_or(0, |row| row.count),
                low: of(SensitivityClass::Insensitive),
                moderate: of(SensitivityClass::Moderate),
                high: of(SensitivityClass::High),
            });
        }
    }
    found
}

fn remote(
    names: &[&String],
    benchmarks: &[Microbenchmark],
    slowdowns: &[&Slowdown],
    arrangements: &[&Arranged],
    local: Option<DomainKind>,
) -> Remote {
    let mut remote = Remote {
        independent: Vec::new(),
        dependent: Vec::new(),
        shared: Vec::new(),
        undecided: Vec::new(),
        arrangement: None,
        arrangement_of: None,
        core_local: local.is_some_and(|kind| kind >= DomainKind::Core),
    };
    for benchmark in benchmarks {
        let rows: Vec<&&Slowdown> = slowdowns
            .iter()
            .filter(|row| row.reference == benchmark.name && names.contains(&&row.place))
            .collect();
        // The rows that are undecided: neither slowed down beyond doubt nor not. The one that may
        // be worst counts.
        let open = rows.iter().filter(|row| most(row) >= NEGLIGIBLE && !slowed(row));
        let name = benchmark.name.clone();
        if rows.iter().any(|row| slowed(row)) {
            let private = benchmark.level >= DomainKind::Core;
            if private { &mut remote.dependent } else { &mut remote.shared }.push(name);
        } else if let Some(row) = open.max_by(|a, b| most(a).total_cmp(&most(b))) {
            let reason = Doubt::Interval {
                slowdown: row.slowdown,
                low: row.low.unwrap_or(row.slowdown),
                high: most(row),
                count: row.count,
                stressor: row.stressor.clone(),
                place: row.place.clone(),
            };
            remote.undecided.push(Undecided { benchmark: name, reason });
        } else {
            remote.independent.push(name);
        }
    }
    let worst = arrangements
        .iter()
        .filter(|row| certain(row))
        .max_by(|a, b| change(a).total_cmp(&change(b)));
    remote.arrangement =
        worst.map(|row| row.ratio - 1.0).or((!arrangements.is_empty()).then_some(0.0));
    remote.arrangement_of = worst.map(|row| (row.reference.clone(), row.stressor.clone()));
    remote
}

/// The largest slowdown that the interval allows.
fn most(row: &Slowdown) -> f64 {
    row.high.unwrap_or(row.slowdown)
}

/// Whether both arrangements differ beyond doubt.
fn certain(row: &Arranged) -> bool {
    row.low.zip(row.high).is_none_or(|(low, high)| low > 1.0 || high < 1.0)
}

fn change(row: &Arranged) -> f64 {
    (row.ratio - 1.0).abs()
}

/// What was measured on one kind of core.
struct Tables<'a> {
    benchmarks: &'a [Microbenchmark],
    slowdowns: &'a [&'a Slowdown],
    arrangements: &'a [&'a Arranged],
}

impl Tables<'_> {
    /// The innermost of `levels`, or a context itself, that can be looked at alone.
    fn local(&self, levels: &[Level]) -> Option<DomainKind> {
        // A core with one context is no separate level.
        let innermost = if levels.iter().any(|level| !level.is_remote()) {
            DomainKind::Pu
        } else {
            DomainKind::Core
        };
        let kinds = std::iter::once(innermost).chain(levels.iter().map(|level| level.kind));
        let outside = (0..levels.len())
            .map(|inside| levels[inside..].iter().map(|level| level.name.as_str()).collect());
        kinds
            .zip(outside)
            .find(|(kind, outside)| self.is_local(*kind, outside))
            .map(|(kind, _)| kind)
    }

    /// Whether domains of `kind`, with the levels `outside` around them, can be looked at alone.
    /// Then nothing outside slows down users of what is inside. For users of shared resources it
    /// matters how many of each kind are outside, not where.
    fn is_local(&self, kind: DomainKind, outside: &Vec<&str>) -> bool {
        let there = |place: &str| place.split('+').all(|level| outside.contains(&level));
        let uses =
            |name: &str| self.benchmarks.iter().any(|one| one.name == name && one.level >= kind);
        let rows: Vec<&&Slowdown> = self.slowdowns.iter().filter(|row| there(&row.place)).collect();
        let alike = |one: &Slowdown, other: &Slowdown| {
            let apart = one.low.zip(other.high).is_none_or(|(low, high)| low > high);
            one.slowdown < other.slowdown * NEGLIGIBLE || !apart
        };
        let same = |one: &Slowdown, other: &Slowdown| {
            (&one.reference, &one.stressor, one.count)
                == (&other.reference, &other.stressor, other.count)
        };
        rows.iter().all(|row| !(uses(&row.reference) && slowed(row)))
            && rows
                .iter()
                .all(|one| rows.iter().all(|other| !same(one, other) || alike(one, other)))
            && self
                .arrangements
                .iter()
                .all(|row| !there(&row.place) || change(row) < NEGLIGIBLE - 1.0 || !certain(row))
    }
}

#[cfg(test)]
mod tests;

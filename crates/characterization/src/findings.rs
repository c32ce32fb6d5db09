//! What follows from the tables: which resources are critical, who is sensitive, whom to run beside whom, and whether remote cores matter.
//!
//! Thresholds are those the paper's words imply: up to 5 % is *negligible*, its "moderate" slowdowns are 11 to 44 %, its "significant"
//! ones begin with 1.5 times. A slowdown counts only if its interval excludes 1 as well.

use crate::{Arranged, Reference, Scope, Slowdown, scope};
use pinwise_testbed::Microbenchmark;
use pinwise_topology::{DomainKind, Machine};
use serde::{Deserialize, Serialize};

/// Below this a slowdown is negligible.
const NEGLIGIBLE: f64 = 1.05;
/// From here on it is high.
const HIGH: f64 = 1.5;
/// Tasks for which the size of the space is told, as in section 4.4, or as many as there are contexts.
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
    /// Whether remote cores matter; none where there is no remote core.
    pub remote: Option<Remote>,
    /// What looking at one core at a time would save; none where no context has a core.
    pub scope: Option<Scope>,
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
    /// How many more of them ran at that level.
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

/// Whether what runs on other cores matters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remote {
    /// Benchmarks of core-private resources that nothing on another core slows down.
    pub independent: Vec<String>,
    /// Benchmarks of core-private resources that something does slow down: core-local scope fails for them.
    pub dependent: Vec<String>,
    /// Benchmarks of shared resources that are slowed down by what runs elsewhere.
    pub shared: Vec<String>,
    /// The largest change by another arrangement of the same remote stressors (spread / packed - 1), among those that
    /// are beyond doubt; none where no other arrangement exists.
    pub arrangement: Option<f64>,
    /// Whom it was seen on, beside whom.
    pub arrangement_of: Option<(String, String)>,
    /// Where a thread sits among remote cores does not matter: a scheduler may look at one core at a time.
    pub core_local: bool,
}

impl Findings {
    pub(crate) fn new(
        machine: &Machine,
        references: &[Reference],
        benchmarks: &[Microbenchmark],
        slowdowns: &[Slowdown],
        arrangements: &[Arranged],
    ) -> Self {
        // The kind of core named first stands for the machine; tables of the others are in the slowdowns.
        let kind = references.first().and_then(|reference| reference.core_kind.clone());
        let levels = references.first().map_or(&[][..], |reference| &reference.levels);
        let full: Vec<&Slowdown> = slowdowns
            .iter()
            .filter(|row| row.core_kind == kind)
            .filter(|row| {
                let most = slowdowns.iter().filter(|other| other.place == row.place && other.core_kind == kind);
                most.map(|other| other.count).max() == Some(row.count)
            })
            .collect();
        let names: Vec<String> = levels.iter().map(|level| level.name.clone()).collect();
        let remote_names: Vec<&String> =
            levels.iter().filter(|level| level.is_remote()).map(|level| &level.name).collect();
        let remote = (!remote_names.is_empty()).then(|| {
            let of_kind: Vec<&Slowdown> = slowdowns.iter().filter(|row| row.core_kind == kind).collect();
            remote(&remote_names, benchmarks, &of_kind, arrangements)
        });
        let tasks = TASKS.min(machine.allowed.len());
        Self {
            critical: critical(&names, benchmarks, &full),
            sensitivity: benchmarks
                .iter()
                .map(|benchmark| sensitivity(&names, &benchmark.name, slowdowns, &kind))
                .collect(),
            co_runners: co_runners(benchmarks, &full),
            remote,
            scope: scope(machine, tasks),
        }
    }
}

fn critical(names: &[String], benchmarks: &[Microbenchmark], full: &[&Slowdown]) -> Vec<Critical> {
    let mut critical = Vec::new();
    for benchmark in benchmarks {
        let with_itself = |level: &&String| {
            full.iter().find(|row| {
                row.place == **level && row.reference == benchmark.name && row.stressor == benchmark.name && slowed(row)
            })
        };
        // The outermost level at which equals still meet is that of the resource.
        if let Some(row) = names.iter().rev().find_map(|level| with_itself(&level)) {
            critical.push(Critical {
                level: row.place.clone(),
                resource: benchmark.resource.clone(),
                benchmark: benchmark.name.clone(),
                count: row.count,
                slowdown: row.slowdown,
            });
        }
    }
    let rank = |critical: &Critical| names.iter().position(|name| *name == critical.level);
    critical.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.slowdown.total_cmp(&a.slowdown)));
    critical
}

fn sensitivity(names: &[String], benchmark: &str, slowdowns: &[Slowdown], kind: &Option<String>) -> Sensitivity {
    let rows: Vec<&Slowdown> =
        slowdowns.iter().filter(|row| row.reference == benchmark && row.core_kind == *kind).collect();
    let worst = rows.iter().filter(|row| slowed(row)).max_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
    let largest = rows.iter().map(|row| row.slowdown).fold(1.0, f64::max);
    let up_to = names.iter().rev().find(|level| rows.iter().any(|row| row.place == **level && slowed(row)));
    Sensitivity {
        benchmark: benchmark.to_owned(),
        class: worst.map_or(SensitivityClass::Insensitive, |row| class(row)),
        most: worst.map_or(largest, |row| row.slowdown),
        stressor: worst.map(|row| row.stressor.clone()),
        place: worst.map(|row| row.place.clone()),
        up_to: up_to.cloned(),
    }
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
            let mut rows: Vec<&&Slowdown> =
                full.iter().filter(|row| row.reference == benchmark.name && row.place == place).collect();
            rows.sort_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
            let of = |wanted: SensitivityClass| {
                rows.iter().filter(|row| class(row) == wanted).map(|row| row.stressor.clone()).collect()
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
    arrangements: &[Arranged],
) -> Remote {
    let affected = |benchmark: &Microbenchmark| {
        slowdowns.iter().any(|row| row.reference == benchmark.name && names.contains(&&row.place) && slowed(row))
    };
    let private = |benchmark: &Microbenchmark| benchmark.level >= DomainKind::Core;
    let named = |wanted: &dyn Fn(&Microbenchmark) -> bool| -> Vec<String> {
        benchmarks.iter().filter(|benchmark| wanted(benchmark)).map(|benchmark| benchmark.name.clone()).collect()
    };
    let certain = |row: &&Arranged| row.low.zip(row.high).is_none_or(|(low, high)| low > 1.0 || high < 1.0);
    let change = |row: &Arranged| (row.ratio - 1.0).abs();
    let worst = arrangements.iter().filter(certain).max_by(|a, b| change(a).total_cmp(&change(b)));
    let arrangement = worst.map(|row| row.ratio - 1.0).or((!arrangements.is_empty()).then_some(0.0));
    let dependent = named(&|benchmark| private(benchmark) && affected(benchmark));
    Remote {
        independent: named(&|benchmark| private(benchmark) && !affected(benchmark)),
        shared: named(&|benchmark| !private(benchmark) && affected(benchmark)),
        core_local: dependent.is_empty() && arrangement.is_none_or(|change| change.abs() < NEGLIGIBLE - 1.0),
        dependent,
        arrangement,
        arrangement_of: worst.map(|row| (row.reference.clone(), row.stressor.clone())),
    }
}

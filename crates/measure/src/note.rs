//! What to know about a program and its measurements, as values. The text is made where it is
//! shown.

use crate::CounterEvent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Why a thread is not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftAlone {
    /// It would use less than [`Self::HARDLY_RUNS`] of a CPU.
    HardlyRuns,
    /// Its name is not among those to place.
    NotIncluded,
    /// Its name is among those not to place.
    Excluded,
    /// It runs, but was not placed when the campaign began.
    Unknown,
    /// Its own affinity has no context of the search, or there are too many different ones.
    Confined,
}

impl LeftAlone {
    /// A thread runs if it could use this share of a CPU.
    pub const HARDLY_RUNS: f64 = 0.01;
}

/// What probably changed the affinity of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pinner {
    /// A program that runs and is known to set affinities.
    Program {
        /// Its name.
        name: String,
        /// The number of its process.
        pid: i32,
    },
    /// What changed the cpuset: systemd, or a container manager.
    Cpuset,
    /// Nothing else is known.
    #[default]
    Unknown,
}

impl fmt::Display for Pinner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { name, pid } => write!(f, "{name} (process {pid})"),
            Self::Cpuset => f.write_str("a change of its cpuset"),
            Self::Unknown => f.write_str("the program or another user"),
        }
    }
}

/// Something to know about a program or its measurements that no performance shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProgramNote {
    /// Other programs used the contexts.
    Busy {
        /// Share of the contexts' time that they took.
        share: f64,
    },
    /// Placed threads ended, and new ones of their names took their places.
    ThreadsReplaced {
        /// How often.
        times: u64,
    },
    /// Threads or child processes appeared after the thread scan. They were not placed.
    ThreadsAppeared {
        /// How many.
        threads: u64,
    },
    /// Something else gave placed threads other CPUs while they were measured. These windows do not
    /// count.
    ThreadsMoved {
        /// How many threads.
        threads: u64,
        /// The first one.
        name: String,
        /// The CPUs that it was given.
        cpus: String,
        /// What probably did it.
        by: Pinner,
    },
    /// The rule of a co-scheduler goes without these events, because nothing counts them.
    WithoutEvents {
        /// The events.
        events: Vec<CounterEvent>,
    },
    /// Something else moved threads while they were co-scheduled. They were left alone since.
    ThreadsLeftToOthers {
        /// How many.
        threads: u64,
        /// What probably moved the first of them; not known in older stores.
        #[serde(default)]
        by: Pinner,
    },
    /// Of several programs fewer than two still ran, so that nothing more was measured.
    ProgramsEnded,
    /// CPUs of the search went away and came back. It waited for them.
    CpusAway {
        /// The CPUs that went away last.
        cpus: String,
        /// How long was waited, all times together.
        seconds: f64,
    },
    /// In some runs a thread that has a place did not appear.
    ThreadMissing {
        /// The runs without it.
        runs: u64,
        /// All runs.
        of: u64,
    },
    /// In some runs a thread was busy that the first run did not have. It was not placed.
    ThreadUnknown {
        /// The runs with it.
        runs: u64,
        /// All runs.
        of: u64,
    },
    /// After its number was changed to n, the rate of the program never became steady.
    NotSteady {
        /// The number.
        n: u32,
    },
    /// With n the program fell below the floor. It got its own number back at once.
    BelowFloor {
        /// The number.
        n: u32,
    },
    /// The metric never fell, so it may be a total and not a rate.
    MaybeTotal,
    /// How the number of the metric is read, if the user did not say it.
    MetricRead {
        /// As a counter, whose rate is measured. Otherwise it is a value, whose mean is measured.
        counter: bool,
        /// Its name says so, or its source. Otherwise its changes show it.
        by_name: bool,
    },
    /// The metric comes in reports of several lines, whose numbers are added up.
    LinesAdded {
        /// Lines of a report.
        lines: usize,
        /// From one report to the next.
        seconds: f64,
    },
    /// The program prints the metric so rarely that measurements wait for it.
    MetricRare {
        /// From one number to the next.
        seconds: f64,
    },
    /// To read the metric takes long.
    MetricSlow {
        /// The least that a reading takes.
        seconds: f64,
    },
    /// The metric did not change before it was measured.
    MetricStill,
    /// The metric changes at its own pace, so shorter windows are stretched.
    MetricRenewed {
        /// From one change to the next.
        seconds: f64,
    },
    /// A measurement takes longer than was asked, because of the metric.
    PeriodStretched {
        /// What it takes.
        seconds: f64,
        /// What was asked.
        asked: f64,
    },
    /// Threads that are not placed.
    LeftAlone {
        /// Why.
        reason: LeftAlone,
        /// How many have which name.
        names: BTreeMap<String, usize>,
    },
    /// Threads that are placed only on some of the contexts: they have no others.
    KeepsTo {
        /// How many have which name.
        names: BTreeMap<String, usize>,
        /// The CPUs that one or another of them has.
        cpus: String,
    },
    /// The measuring thread is not SCHED_FIFO, so windows are less punctual.
    NotPunctual {
        /// Why not, as the system says it.
        error: String,
    },
    /// Instructions cannot be counted.
    NoInstructions {
        /// Why not, as the system says it.
        error: String,
    },
    /// How long threads wait for each other is not visible, and counts as 0.
    LockUnseen,
    /// Threads had affinities of their own before the search: unpinned, they have these.
    PinnedBefore {
        /// How many.
        threads: u64,
        /// All threads that are placed.
        of: u64,
    },
    /// Threads may also use CPUs that are offline. The kernel drops these when it gives the
    /// affinities back.
    OfflineForgotten {
        /// They.
        cpus: String,
    },
    /// Nothing could be kept for the next start, in case pinwise and its guardian are both killed.
    NothingKept {
        /// Why not, as the system says it.
        error: String,
    },
    /// The workers of a run ended between two looks: their number is taken from n.
    ThreadsMissed,
    /// The kernel does not report migrations. They count as 0.
    MigrationsUnseen,
    /// The machine has one node with memory, so that nothing can be moved.
    OneMemoryNode,
    /// Memory lies on nodes on which the threads of the best assignment do not run.
    MemoryRemote {
        /// Its share of all memory.
        share: f64,
    },
    /// Memory should have gone with the threads and could not be moved.
    MemoryNotMoved {
        /// Its share of all memory.
        share: f64,
    },
    /// After the search memory lies on other nodes than before.
    MemoryNotReturned {
        /// Its share of all memory.
        share: f64,
    },
    /// Automatic NUMA balancing moved pages of some program meanwhile.
    NumaBalancing {
        /// How many.
        pages: u64,
        /// How many the measured program had; 0 in older stores.
        #[serde(default)]
        of: u64,
    },
    /// A node of several did not measure, or not to the end.
    NodeLost {
        /// Its name.
        node: String,
        /// Why, with the remedy, as the error says it.
        error: String,
    },
    /// A node differs from the others. Its results are put on their scale.
    NodeScaled {
        /// Its name.
        node: String,
        /// What its performance is multiplied by.
        factor: f64,
        /// By which share of itself the factor may be wrong.
        error: f64,
    },
    /// Several nodes measured the same setting, and none of those that were kept differs.
    NodesAlike {
        /// How many nodes.
        nodes: u64,
        /// The measurements of each at the last check.
        references: u64,
        /// How many checks there were.
        checks: u64,
        /// The share by which a node may differ without being noticed.
        missed: f64,
    },
    /// A sentence that begins small and has no full stop. It comes from a store that was written
    /// before notes had kinds, or from a source with only text.
    Text {
        /// The sentence.
        text: String,
    },
}

/// Makes a type's variant `Text { text }` of the text that stood for its values in earlier
/// versions.
#[macro_export]
macro_rules! text_in_old_stores {
    ($type:ty) => {
        impl From<String> for $type {
            fn from(text: String) -> Self {
                Self::Text { text }
            }
        }
    };
}

text_in_old_stores!(ProgramNote);

/// A value, or the text that stood for it in earlier versions.
#[derive(Deserialize)]
#[serde(untagged)]
enum ValueOrText<T> {
    Text(String),
    Value(T),
}

impl<T: From<String>> ValueOrText<T> {
    fn value(self) -> T {
        match self {
            Self::Text(text) => text.into(),
            Self::Value(value) => value,
        }
    }
}

/// Reads a value that was plain text in earlier versions.
///
/// # Errors
/// It is of a kind that this version does not know.
pub fn value_or_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + From<String>,
    D: Deserializer<'de>,
{
    ValueOrText::deserialize(deserializer).map(ValueOrText::value)
}

/// Reads a value that was plain text in earlier versions, or that is not there.
///
/// # Errors
/// It is of a kind that this version does not know.
pub fn optional_value_or_text<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned + From<String>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.map(ValueOrText::value))
}

/// Reads a list of values that were plain text in earlier versions. An item is a text or a value.
///
/// # Errors
/// It is neither, or a value is of a kind that this version does not know.
pub fn values_or_text<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned + From<String>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredNotes<T> {
        Text(String),
        List(Vec<ValueOrText<T>>),
    }
    Ok(match StoredNotes::deserialize(deserializer)? {
        StoredNotes::Text(text) => vec![text.into()],
        StoredNotes::List(list) => list.into_iter().map(ValueOrText::value).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disturbances;

    #[test]
    fn notes_carry_their_kind_and_those_of_earlier_versions_are_text() {
        let busy = ProgramNote::Busy { share: 0.25 };
        let written = serde_json::to_value(&busy).unwrap();
        assert_eq!(written, serde_json::json!({ "kind": "busy", "share": 0.25 }));
        let met = |notes| Disturbances { others: None, notes };
        let old: Disturbances = serde_json::from_str(r#"{"notes": ["a thread came"]}"#).unwrap();
        assert_eq!(old, met(vec![ProgramNote::Text { text: "a thread came".into() }]));
        let new =
            met(vec![busy, ProgramNote::MaybeTotal, ProgramNote::ThreadMissing { runs: 1, of: 9 }]);
        let again: Disturbances =
            serde_json::from_value(serde_json::to_value(&new).unwrap()).unwrap();
        assert_eq!(again, new);
        assert!(
            serde_json::from_str::<Disturbances>(r#"{"notes": [{"kind": "unheard of"}]}"#).is_err()
        );
    }
}

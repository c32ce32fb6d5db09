//! The rows of the tables of a characterization.

use serde::{Deserialize, Serialize};

/// A benchmark alone. Intervals are 95 % and there are none after a single round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Isolated {
    /// Its name.
    pub benchmark: String,
    /// The kind of core, if there are several.
    pub core_kind: Option<String>,
    /// Cycles per instruction, where the clock is known: on models.
    pub cpi: Option<f64>,
    /// Nanoseconds per operation: on hosts.
    pub ns: Option<f64>,
    /// Lower end of the interval, in the same unit.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs alone.
    pub runs: usize,
    /// Repetitions in all of them.
    pub repetitions: usize,
}

/// A reference with stressors. Intervals are 95 % and there are none after a single round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// The benchmark that was timed.
    pub reference: String,
    /// The benchmark that ran with it.
    pub stressor: String,
    /// How many of them.
    pub count: usize,
    /// At which level: `pipe`, `core`, `chip`, `pipe+core`.
    #[serde(rename = "where")]
    pub place: String,
    /// The kind of core the reference ran on, if there are several.
    pub core_kind: Option<String>,
    /// Time per operation with them over that alone: geometric mean over the rounds.
    pub slowdown: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The slowdown in each round.
    pub rounds: Vec<f64>,
    /// Repetitions of the reference in all rounds.
    pub repetitions: usize,
    /// Whether every program of the set reached its steady state in every round.
    pub steady: bool,
}

/// Remote stressors arranged in two ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arranged {
    /// The benchmark that was timed.
    pub reference: String,
    /// The benchmark that ran with it.
    pub stressor: String,
    /// How many of them.
    pub count: usize,
    /// At which level.
    #[serde(rename = "where")]
    pub place: String,
    /// The kind of core the reference ran on, if there are several.
    pub core_kind: Option<String>,
    /// The slowdown with all on one neighbour.
    pub packed: f64,
    /// The slowdown with one on each of several.
    pub spread: f64,
    /// spread / packed, with the interval of the ratio.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

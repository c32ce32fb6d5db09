//! One trial and what came of it.

use pinwise_measure::{Effort, MeasureError, Measurement, Setting};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why a trial is made. Only fresh windows decide what is announced, so they are kept apart from
/// those that searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The unpinned baseline.
    Baseline,
    /// Part of a uniform random sample; the bound is computed from it where nothing better is
    /// known.
    Sample,
    /// Part of a block that a predictor steered towards good assignments, which shows how wrong the
    /// predictor is there.
    Steered,
    /// Directed search, which is no sample (climbing, what a predictor favours).
    Climb,
    /// A part of the workload, measured to learn what threads do to each other
    /// ([`Setting::Profile`]).
    Profile,
    /// The reference assignment, measured again through the run to see drift.
    Reference,
    /// Fresh windows for the winner, its rivals and the baseline.
    Final,
    /// A number of threads, a pair of contexts or a set of microbenchmarks.
    Probe,
}

/// What to measure next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// How the threads are placed.
    pub setting: Setting,
    /// Why.
    pub purpose: Purpose,
    /// How long.
    pub effort: Effort,
}

/// A trial and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the campaign, from 0.
    pub number: u64,
    /// What was tried.
    pub trial: Trial,
    /// What came of it.
    pub outcome: Result<Measurement, MeasureError>,
    /// Time since the campaign's first measurement began until this one ended, what deciding and
    /// storing took in between included, pauses between resumptions excluded.
    pub elapsed: Duration,
}

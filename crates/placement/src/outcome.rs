//! The answer, with everything needed to judge it.

use pinwise_testbed::Unit;
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean performance.
    pub mean: f64,
    /// Lower end of the interval; not finite from fewer than 2 values.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many measurements.
    pub n: usize,
    /// Of the interval.
    pub confidence: f64,
    /// Standard deviation of the measurements.
    pub spread: f64,
}

/// An assignment and how it performed on fresh windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// In canonical form, leaf indices of the sharing tree.
    pub assignment: Assignment,
    /// On fresh windows.
    pub performance: Estimate,
}

/// What is known of the best possible performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Estimate of the best possible performance; `None` when the sample supports none (`reason` says why).
    pub upb: Option<f64>,
    /// Lower end: the best itself.
    pub upb_low: Option<f64>,
    /// Upper end at `confidence`.
    pub upb_high: Option<f64>,
    /// (upb - best) / upb.
    pub gap: Option<f64>,
    /// (upb_high - best) / upb_high.
    pub gap_high: Option<f64>,
    /// Of the upper end.
    pub confidence: f64,
    /// `exact` when every class was measured, else the estimator.
    pub method: String,
    /// Number of sampled assignments it rests on.
    pub n: usize,
    /// Diagnostics in words, and the reason where there is no bound.
    pub notes: Vec<String>,
}

/// How a reference assignment changed through the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Relative change from the first to the last third of its measurements.
    pub change: f64,
    /// Whether it is more than its noise explains.
    pub significant: bool,
    /// How many measurements.
    pub n: usize,
}

/// What it cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Measurements made, failed ones included.
    pub measurements: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Different classes measured.
    pub classes: u64,
    /// Time measuring.
    pub time: Duration,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// The best beats the baseline beyond both intervals.
    Pin,
    /// Nothing beats the default beyond the intervals.
    KeepDefault,
    /// No assignment could be measured well enough to say.
    Undecided,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What to do.
    pub advice: Advice,
    /// What performance is counted in.
    pub unit: Unit,
    /// The best assignment.
    pub best: Option<Best>,
    /// The unpinned baseline on fresh windows of the same length.
    pub baseline: Option<Estimate>,
    /// best / baseline - 1 with its interval, where both exist: (estimate, low, high).
    pub gain: Option<(f64, f64, f64)>,
    /// Every other assignment that fresh windows cannot tell from the best.
    pub ties: Vec<Best>,
    /// The bound on the best possible.
    pub bound: Bound,
    /// Number of classes in the space (decimal, exact).
    pub assignments: String,
    /// How a reference changed through the run, where it was measured often enough.
    pub drift: Option<Drift>,
    /// What it cost.
    pub cost: Cost,
    /// The strategy used and why it was chosen.
    pub strategy: String,
    /// Why the search stopped.
    pub stopped_because: String,
}

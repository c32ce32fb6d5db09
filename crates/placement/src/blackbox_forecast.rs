//! What BlackBox predicted, from which profile, and how measurements compare with it.

use crate::statistics::{mean, t_quantile, variance};
use crate::statistics::{no_high, no_low};
use crate::{LevelSource, ProfilingEnd};
use pinwise_measure::value_or_text;
use pinwise_prediction::{Checked, CoreLocal};
use pinwise_topology::{Assignment, SharingTree};
use serde::{Deserialize, Serialize};

/// Predictions that differ by less, relative to them, differ by rounding.
const ALIKE: f64 = 1e-9;

/// The predictions of [`crate::StrategyName::Blackbox`], with what they rest on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlackboxForecast {
    /// The level within whose domains threads are taken to interfere.
    pub core_local: String,
    /// The source of that level.
    #[serde(deserialize_with = "value_or_text")]
    pub because: LevelSource,
    /// Entries of the base time tables that were measured: all, unless `sampled` says otherwise.
    pub base: usize,
    /// The assignments of an instance alone, as a decimal number, for each program that has too
    /// many to measure all. A model forecasts those that were not sampled.
    #[serde(default)]
    pub sampled: Vec<String>,
    /// Entries of the slowdown table that the workload has threads for.
    pub slowdown: usize,
    /// How many of these were measured. The others are interpolated.
    pub measured: usize,
    /// Why profiling ended.
    #[serde(deserialize_with = "value_or_text")]
    pub ended: ProfilingEnd,
    /// Entries drawn by chance that were forecast before they were measured.
    pub checked: usize,
    /// How many of these had a stated 95 % interval that held the measurement.
    pub held: usize,
    /// Root mean square of their relative errors.
    pub error: f64,
    /// The assignments chosen by prediction, as many as were measured: first the best predicted,
    /// or one predicted nearly alike.
    pub finalists: Vec<PredictedAssignment>,
    /// Proven: no assignment is predicted above this. `None` if nothing was predicted yet.
    pub upper: Option<f64>,
    /// Proven: the best prediction found is the best there is.
    #[serde(default)]
    pub exact: bool,
    /// The sum over the instances of the best each did alone: what no assignment exceeds if
    /// co-runners never help.
    pub solo: f64,
    /// Its upper end, by the noise of a measurement; infinity if nothing bounds it (`null` in
    /// JSON).
    #[serde(deserialize_with = "no_high")]
    pub solo_high: f64,
}

/// An assignment, predicted and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedAssignment {
    /// In canonical form.
    pub assignment: Assignment,
    /// The performance predicted.
    pub predicted: f64,
    /// The lower end of what the prediction would be if every entry of the tables were measured. It
    /// is negative infinity if nothing bounds it (`null` in JSON).
    #[serde(deserialize_with = "no_low")]
    pub low: f64,
    /// The upper end; infinity if an entry may be 0 (`null` in JSON).
    #[serde(deserialize_with = "no_high")]
    pub high: f64,
    /// The performance measured; `None` before, or if that failed.
    pub measured: Option<f64>,
}

impl BlackboxForecast {
    pub(crate) fn new(local: &CoreLocal, because: &LevelSource, checked: Checked) -> Self {
        Self {
            core_local: local.level().name().to_owned(),
            because: because.clone(),
            base: 0,
            sampled: Vec::new(),
            slowdown: 0,
            measured: 0,
            ended: ProfilingEnd::Unended,
            checked: checked.drawn,
            held: checked.held,
            error: checked.error,
            finalists: Vec::new(),
            upper: None,
            exact: false,
            solo: 0.0,
            solo_high: 0.0,
        }
    }

    /// Proven upper limit: by what share any prediction may exceed that of the first of
    /// [`BlackboxForecast::finalists`]. `None` before there is one.
    pub fn gap(&self) -> Option<f64> {
        let first = self.finalists.first()?.predicted;
        self.upper.map(|upper| (upper / first - 1.0).max(0.0))
    }

    /// Proven: the first of [`BlackboxForecast::finalists`] is the best predicted there is.
    pub fn first_is_best(&self) -> bool {
        self.exact && self.gap().is_some_and(|gap| gap < ALIKE)
    }

    /// Mean and standard deviation of measured / predicted over the finalists; `None` from fewer
    /// than two.
    pub fn ratio(&self) -> Option<(f64, f64)> {
        let ratio = |finalist: &PredictedAssignment| Some(finalist.measured? / finalist.predicted);
        let ratios: Vec<f64> = self.finalists.iter().filter_map(ratio).collect();
        (ratios.len() > 1).then(|| (mean(&ratios), variance(&ratios).sqrt()))
    }
}

/// The least prediction with which an assignment may still be the best. `measured` has two or more
/// pairs (predicted, measured). An assignment's performance is expected at its prediction times the
/// mean of measured / predicted, within t standard deviations. The upper end of that has to reach
/// the best measured. An error that all predictions share cancels out.
pub(crate) fn reach(measured: &[(f64, f64)], confidence: f64) -> Option<f64> {
    let ratios: Vec<f64> =
        measured.iter().map(|(predicted, measured)| measured / predicted).collect();
    if ratios.len() < 2 {
        return None;
    }
    let best = measured.iter().map(|(_, measured)| *measured).fold(f64::NEG_INFINITY, f64::max);
    let spread = variance(&ratios).sqrt() * (1.0 + 1.0 / ratios.len() as f64).sqrt();
    Some(best / (mean(&ratios) + t_quantile(confidence, (ratios.len() - 1) as f64) * spread))
}

/// Threads allowed per context. It is `asked`, else 1 if the threads fit, else twice the average
/// load, so that there is a choice.
pub(crate) fn blackbox_per_context(
    tree: &SharingTree,
    threads: usize,
    asked: Option<usize>,
) -> usize {
    let contexts = tree.leaves().len().max(1);
    asked
        .unwrap_or(if threads <= contexts {
            1
        } else {
            (2 * threads.div_ceil(contexts)).min(threads)
        })
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{Alike, Machine};

    #[test]
    fn what_predictions_have_in_common_does_not_widen_the_reach() {
        // All measured a tenth below what was predicted.
        let exact = reach(&[(100.0, 90.0), (99.0, 89.1), (98.0, 88.2)], 0.95).unwrap();
        assert!((exact - 100.0).abs() < 1e-9, "{exact}");
        // By hand: ratios 0.9, 1.0: mean 0.95, s = 0.0707, t(0.975, 1) = 12.706: all may be the
        // best.
        let wide = reach(&[(100.0, 90.0), (99.0, 99.0)], 0.95).unwrap();
        assert!(
            (wide - 99.0 / (0.95 + 12.7062 * 0.070_710_7 * 1.5f64.sqrt())).abs() < 1e-3,
            "{wide}"
        );
        assert_eq!(reach(&[(1.0, 1.0)], 0.95), None);
    }

    #[test]
    fn a_prediction_that_nothing_bounds_can_be_stored_and_read() {
        // A slowdown whose interval reaches 0.
        let finalist = PredictedAssignment {
            assignment: Assignment::new(vec![0, 1]),
            predicted: 2.0,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            measured: None,
        };
        let stored = serde_json::to_value(&finalist).unwrap();
        assert_eq!(serde_json::from_value::<PredictedAssignment>(stored).unwrap(), finalist);
    }

    #[test]
    fn a_context_holds_more_than_its_part_where_threads_share() {
        let tree = SharingTree::new(&Machine::from_shape("2").unwrap(), Alike::ByStructure);
        assert_eq!([2, 3, 6].map(|threads| blackbox_per_context(&tree, threads, None)), [1, 3, 6]);
        assert_eq!(blackbox_per_context(&tree, 6, Some(3)), 3);
    }
}

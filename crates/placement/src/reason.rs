//! Why a search uses its strategy, and why it stopped, as values. The crate `present` makes the
//! text.

use crate::{BoundMethod, LevelSource};
use pinwise_campaign::CampaignId;
use pinwise_measure::value_or_text;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Why a placement search stopped, or went on from searching to fresh windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StopReason {
    /// After repeated rounds over all assignments, few can still be the best.
    FewLeft {
        /// The assignments that are left.
        left: u64,
        /// All assignments.
        of: u64,
        /// Rounds.
        rounds: u64,
    },
    /// The best assignments tie.
    Tied {
        /// The assignments that are left.
        left: u64,
        /// All assignments.
        of: u64,
        /// To within this share.
        within: f64,
    },
    /// The best came near the bound.
    NearBound {
        /// The upper end of the gap.
        gap: f64,
        /// The gap asked for.
        within: f64,
        /// The method of the bound.
        method: BoundMethod,
    },
    /// The best of a random sample came near the bound.
    SampleNearBound {
        /// The size of the sample.
        drawn: u64,
        /// The gap by which the method decides.
        gap: f64,
        /// The gap asked for.
        within: f64,
    },
    /// A random sample is complete.
    Sampled {
        /// Its size.
        drawn: u64,
    },
    /// Many random assignments in a row could not be measured.
    SampleFailed {
        /// The number of these assignments.
        last: u64,
    },
    /// Climbing found nothing better.
    Fruitless {
        /// The last climbs, all without success.
        climbs: u64,
    },
    /// There is no assignment left to climb from.
    NoStartLeft {
        /// Assignments climbed from.
        climbs: u64,
    },
    /// There was too little to learn a predictor from.
    NoPredictor,
    /// None of the experiments of the profile could be made.
    NoProfile,
    /// The assignments of the best predictions were measured.
    Predicted {
        /// The number of these assignments.
        measured: u64,
        /// Their number follows from how far predictions were off, and was not given.
        by_error: bool,
    },
    /// Instances were measured alone.
    MeasuredAlone,
    /// Searching used its share of the budget.
    SearchShareUsed {
        /// The share used.
        share: f64,
        /// The rest remains for fresh windows.
        rest: bool,
    },
    /// The budget is used up.
    BudgetUsed {
        /// Seconds that another measurement takes, if much time is left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        another_seconds: Option<f64>,
        /// Seconds that are left, if they are many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_seconds: Option<f64>,
    },
    /// The fresh windows are as precise as asked.
    Precise {
        /// Fresh windows of each assignment.
        windows: u64,
        /// To within this share.
        precision: f64,
    },
    /// No assignment could be measured.
    NoAssignment,
    /// With every assignment that was tried last the program fell below the floor.
    BelowFloor {
        /// The last error.
        error: String,
    },
    /// Not even the unpinned program could be measured.
    NothingMeasured {
        /// The last error.
        error: String,
    },
    /// The campaign is still running.
    Running,
    /// The campaign was stopped.
    Stopped {
        /// The campaign, which can be resumed.
        campaign: CampaignId,
        /// Its store, if a command has to name it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        store: Option<PathBuf>,
    },
    /// The campaign was killed.
    Killed {
        /// The campaign, which can be resumed.
        campaign: CampaignId,
        /// Its store, if a command has to name it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        store: Option<PathBuf>,
    },
    /// Text: from a store that was written before reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

/// Why a search is made the way it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StrategyReason {
    /// Not chosen yet.
    NotChosen,
    /// Every assignment is measured, since the budget allows it.
    Exhaustive {
        /// All assignments, as a decimal number.
        assignments: String,
        /// How often the budget allows it, at least.
        times: u64,
    },
    /// Every assignment is measured, as asked.
    ExhaustiveAsked {
        /// All assignments, as a decimal number.
        assignments: String,
        /// The budget allows it.
        fits: bool,
    },
    /// A predictor that is learned chooses what to measure.
    Guided {
        /// Random assignments that it is first learned from.
        uniform: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// A random sample, then climbing: the budget is too small to learn from.
    SampleThenClimb {
        /// Measurements that searching has room for.
        room: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// The same: there are too many threads to learn from.
    SampleOfMany {
        /// Threads of the workload.
        threads: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// A random sample, as asked.
    RandomAsked {
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// Climbing from the best of a random sample, as asked.
    ClimbAsked {
        /// Size of the sample.
        start: u64,
        /// All assignments, as a decimal number.
        assignments: String,
    },
    /// BlackBox, as asked.
    BlackBoxAsked {
        /// Experiments with one instance alone.
        base: u64,
        /// The sharing level up to which threads are measured with others.
        level: String,
        /// Why that level.
        #[serde(deserialize_with = "value_or_text")]
        because: LevelSource,
        /// Upper limit of the experiments with a thread and others.
        most: u64,
        /// All such experiments.
        of: u64,
        /// The assignments of an instance alone, as a decimal number, for each program that has too
        /// many to measure all: a sample is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sampled: Vec<String>,
    },
    /// Any number of threads may share a context, since all such assignments fit the budget.
    AnyPerContext,
    /// At most one thread has a context.
    OnePerContext,
    /// Instances are measured alone, too: that bounds what they do together.
    AloneFirst,
    /// Text: from a store that was written before reasons had kinds.
    Text {
        /// The text.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(StopReason);

pinwise_measure::text_in_old_stores!(StrategyReason);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_stored_with_its_kind_and_values_and_read_back() {
        let precise = StopReason::Precise { windows: 6, precision: 0.01 };
        let written = serde_json::to_value(&precise).unwrap();
        assert_eq!(
            written,
            serde_json::json!({ "kind": "precise", "windows": 6, "precision": 0.01 })
        );
        assert_eq!(serde_json::from_value::<StopReason>(written).unwrap(), precise);
    }
}

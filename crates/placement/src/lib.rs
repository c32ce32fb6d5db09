#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blackbox_forecast;
mod bound;
mod bound_method;
mod bound_note;
mod compare;
mod export;
#[cfg(test)]
mod fixture;
mod fresh_windows;
mod last_comparison;
mod last_comparison_note;
mod outcome;
mod plan;
mod question;
mod reason;
mod search;
mod selection;
mod signed_rank;
mod statistics;
mod tune_part;

pub use blackbox_forecast::{BlackboxForecast, PredictedAssignment};
pub use bound::Bound;
pub use bound_method::BoundMethod;
pub use bound_note::BoundNote;
pub use compare::{
    BeforeRounds, BoundClaim, ClaimVerdict, ComparedWays, Comparison, ComparisonRow,
    ComparisonStrategy, Contender, JudgedClaim, LeadingWay, LeftOut, LeftOutReason, Loss,
    OpenComparison, WayResult, WayStanding,
};
pub use export::{Export, ExportError, ExportNote, FORMATS, Format, LeftOutBy};
pub use last_comparison::{ComparedRounds, Gain, GainRule, LastComparisonVerdict, Way};
pub use last_comparison_note::{LastComparisonNote, Unmeasured};
pub use outcome::{Drift, Outcome, OutcomeNote, PlacedAssignment, PlacementVerdict, SearchCost};
pub use pinwise_prediction::ProfilingEnd;
pub use plan::{
    MachineCondition, Plan, PlanDifference, PlanError, PlanEvidence, PlanNote, PlanOrigin,
    PlannedMemory, PlannedNumber, PlannedThread,
};
pub use question::{
    BlackboxOptions, Budget, FinalistRule, LevelSource, PlacementQuestion, StrategyName,
    TestbedAbilities,
};
pub use reason::{StopReason, StrategyReason};
pub use search::{PlacementSearch, SearchError, core_local};
pub use selection::{
    DrawnSelection, PlacedSelection, SelectionError, SelectionOutcome, SelectionQuestion,
    SelectionSearch,
};
pub use statistics::Estimate;
pub use tune_part::TunePart;

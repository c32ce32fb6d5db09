#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bound;
mod bound_note;
mod compare;
mod confirmation;
mod contest;
mod export;
#[cfg(test)]
mod fixture;
mod forecast;
mod outcome;
mod plan;
mod question;
mod reason;
mod search;
mod selection;
mod statistics;
mod tune_note;
mod tune_step;

pub use bound::Bound;
pub use bound_note::BoundNote;
pub use compare::{
    BeforeRounds, BoundClaim, ClaimVerdict, ComparedWays, Comparison, ComparisonStrategy,
    Contender, Entry, JudgedClaim, Leader, LeftOut, LeftOutReason, Loss, Row, Standing, Unclear,
};
pub use contest::{Choice, Contest, Gain, Way};
pub use export::{Export, ExportError, FORMATS, Format};
pub use forecast::{Finalist, Forecast, room};
pub use outcome::{Advice, Best, Cost, Drift, Estimate, Outcome, OutcomeNote};
pub use pinwise_prediction::ProfilingEnd;
pub use plan::{Measured, Number, Origin, Plan, PlanError, PlanNote, PlannedThread};
pub use question::{BlackboxOptions, Budget, LevelSource, Question, StrategyName};
pub use reason::{StopReason, StrategyReason};
pub use search::{Search, SearchError, core_local};
pub use selection::{
    DrawnSelection, PlacedSelection, SelectionError, SelectionOutcome, SelectionQuestion,
    SelectionSearch,
};
pub use tune_note::{TuneNote, Unmeasured};
pub use tune_step::TuneStep;

#![doc = include_str!("../README.md")]
//!
//! # What is here
//!
//! - [`SpeedSearch`]: the search by progress, from scalability laws ([`Law`]), with its answer
//!   ([`Advice`]). [`Objective`] is the quantity it maximises.
//! - [`Reinforcer`]: the published search (K. K. Pusukuri, R. Gupta, L. N. Bhuyan, "Thread
//!   Reinforcer: Dynamically determining number of threads via OS level monitoring", IISWC 2011)
//!   as a state machine. Its [`Thresholds`] come from example programs ([`calibrate`]).
//! - [`NumberSearch`]: the question of a campaign, by one of these or by a [`Sweep`] that tries
//!   every number. [`Searcher`] is its strategy, and [`NumberSearch::answer`] computes the answer
//!   from records.
//! - [`JointSearch`]: number and placement together. Its arms are numbers under policies of
//!   placement ([`candidates()`]). A [`Shortlist`] has the numbers whose placement is worth a
//!   search.
//! - [`ThreadRange`]: the numbers to search. [`Formula`]: how many threads a program makes for its
//!   parameter. [`ThreadCeiling`]: the number from which it makes no more. [`PhaseChange`]: the
//!   program changed between two probes.

#![forbid(unsafe_code)]

mod advice;
mod candidates;
mod cholesky;
#[cfg(test)]
mod fixture;
mod formula;
mod joint_search;
mod note;
mod objective;
mod phase_change;
mod posterior;
mod reinforcer;
mod scalability_law;
mod search;
mod shortlist;
mod speed_search;
mod sweep;
mod thread_ceiling;
mod thread_range;
mod thresholds;
mod work_units;

pub use advice::{Advice, Ended, Interval};
pub use candidates::{Candidate, boundaries, candidates};
pub use formula::{Formula, FormulaError};
pub use joint_search::{Arm, JointSearch};
pub use note::Note;
pub use objective::Objective;
pub use phase_change::{PhaseChange, Sign};
pub use reinforcer::{Next, Reason, Reinforcer, ReinforcerChoice};
pub use scalability_law::Law;
pub use search::{
    Attempt, FoundNumber, Method, NumberSearch, ProbeStage, Progressed, Published, Runs, Searcher,
    Stopped, Unfound,
};
pub use shortlist::Shortlist;
pub use speed_search::{
    SHARE, SpeedQuestion, SpeedSample, SpeedSearch, SpeedSearchError, SpeedSearchStep,
};
pub use sweep::{Sweep, Swept};
pub use thread_ceiling::ThreadCeiling;
pub use thread_range::{ThreadRange, ThreadRangeError, standing};
pub use thresholds::{CalibrationError, Curve, Example, ThresholdError, Thresholds, calibrate};

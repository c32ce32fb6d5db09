#![doc = include_str!("../README.md")]
//!
//! # What is here
//!
//! - [`SpeedSearch`]: the search behind `--method survey`. It fits scalability laws ([`Law`]) to
//!   the speeds of probes. Its answer is a [`NumberAdvice`]. [`Objective`] is what it maximises.
//! - [`Reinforcer`]: the published search (K. K. Pusukuri, R. Gupta, L. N. Bhuyan, "Thread
//!   Reinforcer: Dynamically determining number of threads via OS level monitoring", IISWC 2011)
//!   as a state machine. Its [`Thresholds`] come from example programs ([`calibrate`]).
//! - [`NumberQuestion`]: the question of a campaign, by one of these or by a [`SweepQuestion`]
//!   that tries every number. Its strategy is [`NumberSearch`], and [`NumberQuestion::answer`]
//!   computes the answer from records.
//! - [`JointSearch`] chooses which numbers and policies `tune` measures before it places any. Its
//!   arms are numbers under policies of placement ([`candidates()`]). A [`Shortlist`] has the
//!   numbers that get a placement search.
//! - [`ThreadRange`]: the numbers to search.
//! - [`ThreadsPerN`]: how many threads a program makes for its parameter.
//! - [`ThreadCeiling`]: the number from which it makes no more.
//! - [`PhaseChange`]: the program changed between two probes.

#![forbid(unsafe_code)]

mod advice;
mod cholesky;
mod equal_pieces;
#[cfg(test)]
mod fixture;
mod joint_search;
mod note;
mod number_search;
mod objective;
mod phase_change;
mod policy_candidates;
mod posterior;
mod reinforcer;
mod scalability_law;
mod shortlist;
mod speed_search;
mod sweep;
mod thread_ceiling;
mod thread_range;
mod threads_per_n;
mod thresholds;

pub use advice::{Interval, NumberAdvice, SpeedSearchEnd};
pub use joint_search::{Arm, JointSearch};
pub use note::ThreadsNote;
pub use number_search::{
    Attempt, FoundNumber, Jump, NumberQuestion, NumberSearch, NumberSearchEnd, NumberSearchError,
    ProbeStage, PublishedQuestion, SearchMethod, SearchPosition, SetAside, Unfound, WholeRuns,
};
pub use objective::Objective;
pub use phase_change::{PhaseChange, Sign};
pub use policy_candidates::{PolicyCandidate, candidates, filling_numbers, with_memory};
pub use reinforcer::{Reinforcer, ReinforcerChoice, ReinforcerEnd, ReinforcerStep};
pub use scalability_law::Law;
pub use shortlist::Shortlist;
pub use speed_search::{
    PROBE_SHARE, SpeedQuestion, SpeedSample, SpeedSearch, SpeedSearchError, SpeedSearchStep,
};
pub use sweep::{SweepQuestion, SweepResult};
pub use thread_ceiling::{CountedProbe, ThreadCeiling};
pub use thread_range::{ThreadRange, ThreadRangeError, counted_threads};
pub use threads_per_n::{ThreadsPerN, ThreadsPerNError};
pub use thresholds::{
    CalibrationError, Characteristic, Example, Knee, ProfilesByNumber, ThresholdError, Thresholds,
    calibrate,
};

//! How many threads a program should run.
//!
//! [`Reinforcer`] is the published search (K. K. Pusukuri, R. Gupta, L. N. Bhuyan, "Thread
//! Reinforcer: Dynamically determining number of threads via OS level monitoring", IISWC 2011) as a
//! state machine: it says which number to try, is told what a probe of it saw, and ends with a
//! choice and its reason. What counts as high is in [`Thresholds`], which [`calibrate`] finds from
//! example programs. [`find()`] drives a search with anything that can be probed, [`sweep()`] tries
//! every number; a [`Formula`] says how many threads a program makes for its parameter. A [`Shift`]
//! says that the program came into another phase between two probes, a [`Cap`] that it makes no
//! more threads from some number on.
//!
//! [`Surveyor`] is the search for programs whose progress can be seen: it believes in several
//! scalability laws at once ([`Law`]), probes where that tells most, and ends with a number, its
//! interval and what it gains ([`Advice`]). [`survey()`] drives it. [`Objective`] says what is to
//! be great.
//!
//! Where threads run matters together with how many there are: [`Tuner`] searches both, of a table
//! or of a machine, whose arms are numbers under policies of placement ([`candidates`]); a
//! [`Shortlist`] has the numbers whose placement is worth searching for.

#![forbid(unsafe_code)]

mod advice;
mod belief;
mod cap;
mod find;
mod formula;
mod grid;
mod law;
mod matrix;
mod objective;
mod pieces;
mod reinforcer;
mod shift;
mod shortlist;
mod span;
mod survey;
mod surveyor;
mod sweep;
mod thresholds;
mod tuner;

pub use advice::{Advice, Ended, Interval};
pub use cap::Cap;
pub use find::{Attempt, Found, find};
pub use formula::{Formula, FormulaError};
pub use grid::{Candidate, boundaries, candidates};
pub use law::Law;
pub use objective::Objective;
pub use reinforcer::{Choice, Next, Reason, Reinforcer};
pub use shift::{Shift, Sign};
pub use shortlist::Shortlist;
pub use span::{Span, SpanError, standing};
pub use survey::{SurveyFailure, Surveyed, survey};
pub use surveyor::{Question, SHARE, Sample, Step, SurveyError, Surveyor};
pub use sweep::{Sweep, Swept, sweep};
pub use thresholds::{CalibrationError, Curve, Example, ThresholdError, Thresholds, calibrate};
pub use tuner::{Arm, Tuner};

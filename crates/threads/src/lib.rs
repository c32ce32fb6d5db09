//! How many threads a program should run.
//!
//! [`Reinforcer`] is the published search (K. K. Pusukuri, R. Gupta, L. N. Bhuyan, "Thread Reinforcer: Dynamically determining number of
//! threads via OS level monitoring", IISWC 2011) as a state machine: it says which number to try, is told what a probe of it saw, and
//! ends with a choice and its reason. What counts as high is in [`Thresholds`], which [`calibrate`] finds from example programs.
//! [`find()`] drives a search with anything that can be probed; a [`Formula`] says how many threads a program makes for its parameter.

#![forbid(unsafe_code)]

mod find;
mod formula;
mod reinforcer;
mod thresholds;

pub use find::{Attempt, Found, find};
pub use formula::{Formula, FormulaError};
pub use reinforcer::{Choice, Next, Reason, Reinforcer, Span, SpanError};
pub use thresholds::{CalibrationError, Curve, Example, Thresholds, calibrate};

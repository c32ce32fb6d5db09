//! Where each thread should run.
//!
//! A [`Question`] is what the user asks. [`Search`] answers it as a campaign strategy: the unpinned baseline, random sampling,
//! full enumeration or hill climbing, a reference that shows drift, then fresh windows for the winner and its rivals. [`Outcome`]
//! is the answer, a pure function of the question and the records. A [`Plan`] is the part of it that can be kept, applied, and
//! exported to other tools' syntax.

mod bound;
mod export;
mod fresh;
mod outcome;
mod plan;
mod question;
mod search;
mod statistics;

pub use bound::Bound;
pub use export::{Export, ExportError, FORMATS, Format};
pub use outcome::{Advice, Best, Cost, Drift, Estimate, Outcome};
pub use plan::{Measured, Plan, PlanError, PlannedThread};
pub use question::{Budget, Question, StrategyName};
pub use search::{Search, SearchError};

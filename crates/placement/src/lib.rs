//! Where each thread should run.
//!
//! A [`Question`] is what the user asks. [`Search`] answers it as a campaign strategy: the unpinned
//! baseline, random sampling, full enumeration or hill climbing, a reference that shows drift, then
//! fresh windows for the winner and its rivals. [`Outcome`] is the answer, a pure function of the
//! question and the records. A [`Plan`] is the part of it that can be kept, applied, and
//! exported to other tools' syntax.
//!
//! A [`Lineup`] is what several ways of placing came to; [`Judge`] measures them beside one
//! another, [`Comparison`] is what that shows.
//!
//! A [`MixSearch`] decides with the placement which of the ready instances run at all.

mod bound;
mod comparison;
mod contest;
mod export;
mod forecast;
mod fresh;
mod judge;
mod lineup;
mod mix;
mod outcome;
mod plan;
mod question;
mod search;
mod statistics;

pub use bound::Bound;
pub use comparison::{Comparison, Judged, Loss, Row, Standing, Unclear, Verdict};
pub use contest::{Choice, Contest, Gain, Way};
pub use export::{Export, ExportError, FORMATS, Format};
pub use forecast::{Finalist, Forecast, room};
pub use judge::Judge;
pub use lineup::{Claim, Contender, Entry, Lineup};
pub use mix::{DrawnMix, MixError, MixOutcome, MixQuestion, MixSearch, PlacedMix};
pub use outcome::{Advice, Best, Cost, Drift, Estimate, Outcome, sentence};
pub use plan::{Measured, Number, Origin, Plan, PlanError, PlannedThread};
pub use question::{Budget, Profile, Question, StrategyName};
pub use search::{Search, SearchError, core_local};

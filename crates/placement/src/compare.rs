//! Comparing ways of placing: what is compared, the strategy that measures it, and the result.

mod comparison;
mod entrants;
mod runner;

pub use comparison::{ClaimVerdict, Comparison, JudgedClaim, Loss, Row, Standing, Unclear};
pub use entrants::{BoundClaim, Contender, Entry, LeftOut, LeftOutReason, Lineup};
pub use runner::Judge;

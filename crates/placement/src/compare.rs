//! Several ways of placing, measured beside one another.

mod comparison;
mod entrants;
mod runner;

pub use comparison::{ClaimVerdict, Comparison, JudgedClaim, Loss, Row, Standing, Unclear};
pub use entrants::{BoundClaim, Contender, Entry, Lineup};
pub use runner::Judge;

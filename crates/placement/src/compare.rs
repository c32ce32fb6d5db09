//! Several ways of placing, measured beside one another.

mod comparison;
mod entrants;
mod runner;

pub use comparison::{Comparison, Judged, Loss, Row, Standing, Unclear, Verdict};
pub use entrants::{Claim, Contender, Entry, Lineup};
pub use runner::Judge;

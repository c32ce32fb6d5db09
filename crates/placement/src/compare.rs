//! Comparing ways of placing: what is compared, the strategy that measures it, and the result.

mod comparison;
mod strategy;
mod ways;

pub use comparison::{
    BeforeRounds, ClaimVerdict, Comparison, ComparisonRow, JudgedClaim, LeadingWay, Loss,
    OpenComparison, WayStanding,
};
pub use strategy::ComparisonStrategy;
pub use ways::{BoundClaim, ComparedWays, Contender, LeftOut, LeftOutReason, WayResult};

//! Comparing ways of placing: what is compared, the strategy that measures it, and the result.

mod comparison;
mod strategy;
mod ways;

pub use comparison::{
    BeforeRounds, ClaimVerdict, Comparison, JudgedClaim, Leader, Loss, Row, Standing, Unclear,
};
pub use strategy::ComparisonStrategy;
pub use ways::{BoundClaim, ComparedWays, Contender, LeftOut, LeftOutReason, WayResult};

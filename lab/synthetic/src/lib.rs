//! Made-up machines, programs and load with known truth.
//!
//! Tests and studies measure these in place of real ones. [`Contention`] is a machine whose every
//! performance is a formula, [`Replay`] a machine whose performances are looked up. Both take a
//! [`Disturbance`], so that they are as noisy as the test needs. [`waiting`] has programs whose
//! threads wait for each other in a known way. [`load`] has a bounded load for a server. A test
//! that cannot judge anything on this machine says so by [`not_judged`].

#![forbid(unsafe_code)]

mod contention;
mod judged;
pub mod load;
mod replay;
pub mod waiting;

pub use contention::{Contention, Crowding, Demand};
pub use judged::{lacking, not_judged};
pub use replay::{Disturbance, Replay};

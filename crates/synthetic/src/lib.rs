#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod contention;
mod judged;
pub mod load;
mod replay;
pub mod waiting;

pub use contention::{Contention, Crowding, Demand};
pub use judged::{lacking, not_judged};
pub use replay::{Disturbance, Replay};

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod branch_recording;
mod contention;
pub mod load;
mod not_judged;
mod replay;
mod shared;
pub mod waiting;

pub use branch_recording::BranchRecordingWriter;
pub use contention::{Contention, Crowding, Demand, RemoteMemory};
pub use not_judged::{lacking, not_judged};
pub use replay::{Disturbance, Replay};
pub use shared::{published, shared_data};

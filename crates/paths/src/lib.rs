#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address_space;
mod fragments;
mod input;
mod samples;
mod segments;

pub use fragments::{Branch, ELSEWHERE, Fragments, StraightRun};
pub use input::{BranchInputError, read_perf_data};
pub use samples::{Addressing, BinaryBranches, BranchRecording, Dropped, RecordingTotals};
pub use segments::{NotElf, Segments};

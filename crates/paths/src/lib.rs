#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address_space;
mod exports;
mod fragments;
mod input;
mod samples;
mod segments;

pub use exports::{autofdo_text, preaggregated_text};
pub use fragments::{Branch, ELSEWHERE, Fragments, StraightRun};
pub use input::{
    BranchInputError, read_branches, read_brstack_text, read_perf_data, read_preaggregated,
};
pub use samples::{Addressing, BinaryBranches, BranchRecording, Dropped, RecordingTotals};
pub use segments::{NotElf, Segments};

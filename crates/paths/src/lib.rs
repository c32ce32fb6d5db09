#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accuracy;
mod address_space;
mod binary;
mod estimate;
mod exports;
mod fragments;
mod graph;
mod input;
mod jump_table;
mod numbering;
mod path;
mod profile;
mod program_graph;
mod samples;
mod segments;
#[cfg(test)]
mod synthetic_tests;
mod truth;
mod walk;

pub use accuracy::{HOT, weight_matching};
pub use binary::{Binary, BinaryError, Function};
pub use estimate::observation::SampledBy;
pub use exports::{autofdo_text, preaggregated_text};
pub use fragments::{Branch, ELSEWHERE, Fragments, StraightRun};
pub use graph::{BasicBlock, BlockEnd, CallSite, Edge, FunctionGraph, LONGEST_FUNCTION};
pub use input::{
    BranchInputError, read_branches, read_brstack_text, read_perf_data, read_preaggregated,
};
pub use numbering::{Numbering, TooManyPaths};
pub use path::{Path, PathEnd};
pub use profile::{PathCount, PathMethod, PathProfile};
pub use program_graph::ProgramGraph;
pub use samples::{Addressing, BinaryBranches, BranchRecording, Dropped, RecordingTotals};
pub use segments::{NotElf, Segments};
pub use truth::{BranchRecord, PathCounter};

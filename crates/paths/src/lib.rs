#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accuracy;
mod address_space;
mod binary;
mod compressed_section;
mod debug_file;
mod estimate;
mod exports;
mod fragments;
mod graph;
mod input;
mod instruction_set;
mod jump_table;
mod numbering;
mod path;
mod profile;
mod program_graph;
mod readable_name;
mod recorded_profile;
mod samples;
mod segments;
mod source_lines;
#[cfg(test)]
mod synthetic_tests;
mod truth;
mod walk;

pub use accuracy::{HOT, weight_matching};
pub use binary::{Binary, BinaryError, Function};
pub use debug_file::DebugFile;
pub use estimate::observation::SampledBy;
pub use exports::{autofdo_text, folded_text, preaggregated_text};
pub use fragments::{Branch, ELSEWHERE, Fragments, StraightRun};
pub use graph::{BasicBlock, BlockEnd, CallSite, Edge, FunctionGraph, LONGEST_FUNCTION};
pub use input::{
    BranchInputError, read_branches, read_brstack_text, read_perf_data, read_preaggregated,
};
pub use instruction_set::InstructionSet;
pub use numbering::{Numbering, TooManyPaths};
pub use path::{Path, PathEnd};
pub use profile::{PathCount, PathMethod, PathProfile};
pub use program_graph::ProgramGraph;
pub use readable_name::readable_name;
pub use recorded_profile::{
    BinaryFiles, CONFIDENCE, PathBlock, ProfiledBinary, ProfiledPath, RecordedProfile,
    SharedInstruction, UnreadBinary, UnreadReason,
};
pub use samples::{Addressing, BinaryBranches, BranchRecording, Dropped, RecordingTotals};
pub use segments::{NotElf, Segments};
pub use source_lines::{SourceLines, SourceSpan};
pub use truth::{BranchRecord, PathCounter};

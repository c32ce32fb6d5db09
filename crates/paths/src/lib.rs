#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accuracy;
mod binary;
mod estimate;
mod fragments;
mod graph;
mod numbering;
mod path;
mod profile;
mod program_graph;
#[cfg(test)]
mod synthetic_tests;
mod truth;
mod walk;

pub use accuracy::{HOT, weight_matching};
pub use binary::{Binary, BinaryError, Function};
pub use estimate::observation::SampledBy;
pub use fragments::{Branch, Fragments};
pub use graph::{BasicBlock, BlockEnd, CallSite, Edge, FunctionGraph, LONGEST_FUNCTION};
pub use numbering::{Numbering, TooManyPaths};
pub use path::{Path, PathEnd};
pub use profile::{PathCount, PathMethod, PathProfile};
pub use program_graph::ProgramGraph;
pub use truth::{BranchRecord, PathCounter};

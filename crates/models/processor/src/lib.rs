#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bench;
mod chip;
mod code;
mod core;
mod memory;
mod parallel;
mod processor;
pub mod program;
pub mod published_experiments;
mod testbed;

pub use bench::ModelBench;
pub use chip::{Chip, ClockMode, PlacedThread, PlacementError, UnplacedJob};
pub use core::StrandCounters;
pub use memory::CacheTags;
pub use processor::{
    AfterLoad, Arbitration, CachePolicy, Fetch, FetchPolicy, Fpd, Fpx, Integer, InterCore,
    IntraCore, IntraPipe, L1Data, L1Instruction, L2, Lsu, MainMemory, Processor, ProcessorError,
};
pub use program::{ProgramSet, SimulatedProgram};
pub use testbed::{SimulatedTestbed, SimulatedWindow};

//! Cycle-level models of multithreaded processors.
//!
//! A [`Processor`] is a description: levels of sharing, units, caches, memory, read from a text. A [`Program`] is a small stream of
//! typed instructions; a [`Job`] is the programs that run together and the rings between them. docs/SIMULATOR.md explains the model.

#![forbid(unsafe_code)]

mod processor;
pub mod program;

pub use processor::{
    CachePolicy, FetchPolicy, InterCore, IntraCore, IntraPipe, L1Data, L1Instruction, L2, Lsu, Memory, Processor,
    ProcessorError,
};
pub use program::{Job, Program};

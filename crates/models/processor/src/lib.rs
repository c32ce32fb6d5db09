//! Cycle-level models of multithreaded processors.
//!
//! A [`Processor`] is a description: levels of sharing, units, caches, memory, read from a text. A
//! [`Program`] is a small stream of typed instructions; a [`Job`] is the programs that run together
//! and the rings between them. A [`Chip`] is a processor with a job on it; it runs for so many
//! cycles and says what every thread has done. docs/lab/simulator.md explains the model.
//!
//! ```
//! use pinwise_processor::program::Microbenchmark;
//! use pinwise_processor::{Chip, Job, Pace, Placed, Processor};
//!
//! let processor = Processor::model("ultrasparc-t2")?;
//! // Two threads of additions in one pipe: each fetches every other cycle.
//! let job = Job::independent((0..2).map(|instance| Microbenchmark::IntAdd.program(instance)).collect());
//! let placed = [0, 1].map(|context| Placed { context, start: 0, seed: 1 });
//! let mut chip = Chip::new(&processor, &job, &placed, Pace::Events)?;
//! chip.run(100_000);
//! let cpi = chip.now() as f64 / chip.counters()[0].instructions as f64;
//! assert!((cpi - 2.0).abs() < 0.02);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bench;
pub mod characterization;
mod chip;
mod code;
mod core;
mod memory;
mod processor;
pub mod program;
mod testbed;

pub use bench::ModelBench;
pub use chip::{Chip, Pace, Placed, PlacementError, Unplaced};
pub use core::Counters;
pub use processor::{
    AfterLoad, Arbitration, CachePolicy, Fetch, FetchPolicy, Fpd, Fpx, Integer, InterCore,
    IntraCore, IntraPipe, L1Data, L1Instruction, L2, Lsu, Memory, Processor, ProcessorError,
};
pub use program::{Job, Program};
pub use testbed::{SimulatedTestbed, Window};

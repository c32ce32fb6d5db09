#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accounting;
mod kernel;
mod memory;
mod other_programs;
mod platform;
mod prober;
mod program;
mod runqueue;
mod simulation;
mod synchronization;
mod thread;
mod time;
mod timesharing;

pub use accounting::{Account, Accounts, ThreadAccount};
pub use kernel::Stuck;
pub use memory::MemoryStretch;
pub use other_programs::OtherPrograms;
pub use platform::{Costs, Daemons, Platform};
pub use prober::{ModelProber, profile};
pub use program::{
    FittedCosts, ForkJoin, MOST_THREADS, ModelProgram, ModelProgramError, Pipeline, Stage,
    Structure,
};
pub use simulation::{RunError, Simulation, run, speedup};
pub use time::Nanos;

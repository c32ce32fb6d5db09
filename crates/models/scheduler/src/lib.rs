//! A discrete-event model of an operating system's scheduler, and programs described by their
//! structure to run on it.
//!
//! For machines that are not at hand: how a program's speed, its waiting for locks, its switches
//! and migrations change with its number of threads. A [`Platform`] has contexts in packages and
//! the costs of the operating system's actions; a [`Program`] is a description in TOML that keeps
//! what is known apart from what was fitted; a [`Simulation`] runs one on the other, deterministic
//! by seed, and its [`Ledger`] tells where the time of every thread went. [`ModelProber`] lets the
//! search for a number of threads probe it.
//!
//! What is modelled: run queues with priorities and time slices, wake-up placement, preemption,
//! balancing, work taken by idle contexts, the cost of switches and wake-ups and of refilling
//! caches after migrations, mutexes, condition variables, barriers, bounded queues, waits for input
//! and output, and a memory system that saturates. What is not: simultaneous multithreading, cache
//! capacity shared by neighbours, paging, interrupts other than as background threads.

#![forbid(unsafe_code)]

mod accounting;
mod kernel;
mod memory;
mod platform;
mod prober;
mod program;
mod runqueue;
mod simulation;
mod synchronization;
mod thread;
mod time;
mod timesharing;

pub use accounting::{Account, Ledger, ThreadAccount};
pub use kernel::Stuck;
pub use memory::Memory;
pub use platform::{Costs, Daemons, Platform};
pub use prober::{ModelProber, profile};
pub use program::{
    Fitted, ForkJoin, MOST_THREADS, Pipeline, Program, ProgramError, Stage, Structure,
};
pub use simulation::{RunError, Simulation, run, speedup};
pub use time::Nanos;

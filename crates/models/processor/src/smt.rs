//! A core that runs two programs at once: simultaneous multithreading (SMT).
//!
//! **Terms.** A *context* is what a program runs on; the core has two. A *micro-operation* is what
//! the core executes. The front end takes them from the *trace cache*, which holds decoded code.
//! The *window* holds micro-operations that have begun and not retired.
//!
//! **Problem.** Contexts share execution units, caches and the bus. So what a program does beside
//! another depends on both. A co-scheduler needs such a core to be tried on.
//!
//! **Method.** [`SmtCore`] describes a core, [`StreamProgram`] a program as a stream of
//! micro-operations with given statistics. The simulation takes micro-operations in the order in
//! which they enter the window. It computes for each when its operands are there, when a unit is
//! free, and when it retires. Caches, bus and units are those of both contexts; the window is
//! divided if both run. [`events`] returns what both did: a counter sees no more than
//! [`CounterValues`].
//!
//! **Limits.** Branches are mispredicted at a rate of the program, whoever runs beside it. Virtual
//! addresses are physical ones, and there is no TLB. Caches see accesses in the order of the
//! stream, not of the window. A prefetcher knows streams by their description.

mod description;
mod pipeline;
mod program;

pub use description::{SmtCore, SmtError};
pub use pipeline::{CounterValues, events};
pub use program::{AccessPattern, DataSet, ProgramPhase, StreamProgram};

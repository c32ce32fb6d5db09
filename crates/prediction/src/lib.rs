#![doc = include_str!("../README.md")]
//!
//! A [`Predictor`] predicts the performance of an assignment. [`BlackBox`] is the published one: it
//! combines what each instance does alone ([`BaseTable`]) with what each layout of co-runners costs
//! a thread ([`SlowdownTable`]). [`Profiling`] chooses the experiments that fill these tables: all
//! of them, as published, or the few that decide.
//!
//! [`Learned`] needs no profile. From a few hundred measurements it learns what each sharing costs
//! ([`Colocation`]), or how the threads of an instance slow each other down
//! ([`PipelinePredictor`]).
//! [`draw`] draws assignments where a predictor expects good ones.
//!
//! [`BlackBox::optima`] finds the best predicted assignments and proves how good they are;
//! [`BlackBox::selected`] chooses which of them to measure.
//!
//! [`ThreadKinds`] says which threads are interchangeable, [`CoreLocal`] within which part of the
//! machine threads interfere. [`Layouts`] numbers what can be around a thread there, and
//! [`ExperimentCount`] counts the measurements that this takes.
//!
//! Source: *Thread Assignment of Multithreaded Network Applications in Multicore/Multithreaded
//! Processors*, IEEE TPDS (blackbox-scheduler.txt).

#![forbid(unsafe_code)]

mod importance_draws;
mod interchangeable_threads;
mod learned;
mod optimum;
mod predictor;
mod tables;

pub use importance_draws::draw;
pub use interchangeable_threads::{Instance, ThreadKind, ThreadKinds};
pub use learned::{Colocation, Fitted, Learned, PipelinePredictor};
pub use optimum::{Optima, Predicted, ProofProgress};
pub use predictor::{Change, Predictor, Walk};
pub use tables::{
    BaseSpace, BaseTable, BlackBox, Build, Checked, CoreLocal, CoreLocalError, Experiment,
    ExperimentCount, Layouts, PlacedInstance, Profiling, ProfilingEnd, ProfilingError,
    SlowdownTable, Solo, TableEntry,
};

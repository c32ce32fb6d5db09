#![doc = include_str!("../README.md")]
//!
//! A [`Predictor`] predicts the performance of an assignment. The published one is [`BlackBox`]. It
//! combines two tables. The [`BaseTable`] has the performance of each instance alone. The
//! [`SlowdownTable`] has the slowdown of a thread by each layout of co-runners. Experiments fill
//! these tables. [`Profiling`] chooses them: all, as published, or the few that decide.
//!
//! [`Learned`] needs no profile. From a few hundred measurements it learns what each sharing costs
//! ([`Colocation`]). Or it learns how the threads of an instance slow each other down
//! ([`PipelinePredictor`]). The function [`draw`] draws assignments where a predictor expects good
//! ones. The function [`highest`] looks for the best.
//!
//! [`NormalEquations`] are those of ridge regression, for any linear model.
//!
//! [`BlackBox::optima`] finds the best predicted assignments and proves how good they are;
//! [`BlackBox::selected`] chooses which of them to measure.
//!
//! [`ThreadKinds`] says which threads are interchangeable, [`CoreLocal`] within which part of the
//! machine threads interfere. There, [`Layouts`] numbers the possible neighbourhoods of a thread,
//! and [`ExperimentCount`] counts the measurements that these take.
//!
//! Source: *Thread Assignment of Multithreaded Network Applications in Multicore/Multithreaded
//! Processors*, IEEE TPDS (blackbox-scheduler.txt).

#![forbid(unsafe_code)]

mod importance_draws;
mod interchangeable_threads;
mod learned;
mod markov_chain;
mod optimum;
mod predictor;
mod replica_exchange;
mod tables;

pub use importance_draws::{draw, draw_until_still};
pub use interchangeable_threads::{Instance, ThreadKind, ThreadKinds};
pub use learned::{
    Colocation, FittedPipeline, Learned, LinearFit, NormalEquations, PENALTIES, PipelinePredictor,
};
pub use optimum::{Optima, Predicted, ProofProgress};
pub use predictor::{Change, PredictedWalk, Predictor};
pub use replica_exchange::highest;
pub use tables::{
    BaseSpace, BaseTable, BlackBox, Build, Checked, CoreLocal, CoreLocalError, Experiment,
    ExperimentCount, Layouts, PlacedInstance, Profiling, ProfilingEnd, ProfilingError,
    SlowdownTable, Solo, TableEntry,
};

//! From profiles to the predicted performance of any assignment.
//!
//! A [`Predictor`] tells the performance of an assignment without measuring it. [`BlackBox`] is the
//! published one: it knows what each instance does alone ([`BaseTable`]) and what each layout of
//! co-runners does to a thread ([`SlowdownTable`]).
//!
//! [`Learned`] needs no profile: from a few hundred measurements it takes what each sharing of
//! something is worth ([`Colocation`]), or, with the knowledge that an instance is as fast as its
//! slowest thread, how its threads slow each other down ([`Pipeline`]). [`draw`] draws assignments
//! where a predictor expects good ones, so that measurements are spent there.
//!
//! [`BlackBox::optima`] finds the assignments that it predicts best, out of all there are, and says
//! how sure that is; [`BlackBox::selected`] says which of them to measure.
//!
//! [`Profiling`] chooses the experiments that fill the tables: all of them, as published, or the
//! few that decide.
//!
//! A [`Cast`] says which threads are interchangeable, [`Local`] within which part of the machine
//! threads are taken to interfere, [`Layouts`] numbers what can be around a thread there,
//! [`ExperimentCount`] how much measuring that makes.
//!
//! Source: *Thread Assignment of Multithreaded Network Applications in Multicore/Multithreaded
//! Processors*, IEEE TPDS (blackbox-scheduler.txt).

#![forbid(unsafe_code)]

mod base;
mod blackbox;
mod cast;
mod climb;
mod colocation;
mod compiled;
mod experiment;
mod gaussian;
mod layout;
mod levels;
mod local;
mod moving;
mod narrow;
mod optimum;
mod pipeline;
mod predictor;
mod preference;
mod profiling;
mod proof;
mod ridge;
mod slowdown;
mod tilt;

pub use base::{BaseSpace, BaseTable};
pub use blackbox::BlackBox;
pub use cast::{Cast, Instance, Kind};
pub use colocation::{Colocation, Learned};
pub use compiled::Compiled;
pub use experiment::{Experiment, ExperimentCount, Placed};
pub use layout::Layouts;
pub use local::{Build, Local, LocalError};
pub use optimum::{Optima, Predicted, Progress};
pub use pipeline::{Fitted, Pipeline};
pub use predictor::{Change, Predictor, Walk};
pub use profiling::{Checked, Entry, Profiling, ProfilingError, Solo};
pub use slowdown::SlowdownTable;
pub use tilt::draw;

#![doc = include_str!("../README.md")]
//!
//! The *reference* is the program whose time is observed, the *stressors* are the others. Its
//! *slowdown* is its time per operation with them over its time alone.
//!
//! * [`Plan`] (pure): which sets of programs to run where, from the machine's tree of sharing
//!   levels.
//! * [`execute()`]: runs the plan on a [`pinwise_measure::Bench`], in rounds, in random order, with
//!   runs alone in between.
//! * [`estimate()`]: how long that takes.
//! * [`Characterization`]: the result, with intervals, noise and warnings.
//! * [`StoredCharacterization`]: one in a store, where predictors find it later.
//! * [`Findings`] (pure): critical resources, sensitivity, co-runners, and whether remote cores
//!   matter.

#![forbid(unsafe_code)]

mod characterization;
mod estimate;
mod execute;
mod findings;
mod level;
mod plan;
mod scope;
mod statistics;
mod stored;

pub use characterization::{
    Arranged, Characterization, Conditions, Isolated, Noise, Slowdown, Warning,
};
pub use estimate::estimate;
pub use execute::{RunsDone, Task, execute};
pub use findings::{
    CoRunners, Critical, Findings, Remote, Sensitivity, SensitivityClass, Undecided,
};
pub use level::{Absent, Level};
pub use plan::{Experiment, Plan, PlanError, Reference};
pub use scope::{Scope, scope};
pub use stored::StoredCharacterization;

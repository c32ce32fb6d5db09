#![doc = include_str!("../README.md")]
//!
//! The *reference* is the program whose time is observed, the *stressors* are the others. Its
//! *slowdown* is its time per operation with them over its time alone.
//!
//! * [`RoundPlan`] (pure): which sets of programs to run where, from the machine's tree of sharing
//!   levels.
//! * [`Task`]: one run of the plan on a [`pinwise_measure::Bench`]. Runs are made in rounds, in
//!   random order, with runs alone in between.
//! * [`Characterization`]: the result, with intervals, noise and warnings.
//! * [`StoredCharacterization`]: one in a store, where predictors find it later.
//! * [`Findings`] (pure): critical resources, sensitivity, co-runners, and whether remote cores
//!   matter.

#![forbid(unsafe_code)]

mod characterization;
mod core_local_space;
mod findings;
mod level;
mod round_plan;
mod run_order;
mod runs_so_far;
mod statistics;
mod stored;
mod table_rows;

pub use characterization::{Characterization, Conditions, Noise, Warning};
pub use core_local_space::{SpaceSizes, scope};
pub use findings::{
    CoRunners, Critical, Doubt, Findings, Remote, Sensitivity, SensitivityClass, Undecided,
};
pub use level::{AbsenceReason, Absent, Level};
pub use round_plan::{PlannedExperiment, Reference, RoundPlan, RoundPlanError};
pub use run_order::Task;
pub use runs_so_far::RunsSoFar;
pub use stored::{ExcerptReason, StoredCharacterization};
pub use table_rows::{Arranged, Isolated, Slowdown};

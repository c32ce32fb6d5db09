//! Predictors that need no profile: they learn from measurements of whole assignments.
//!
//! Start at `colocation.rs`, the simpler one.

mod colocation;
pub(crate) mod levels;
mod pipeline;
pub(crate) mod ridge;

pub use colocation::{Colocation, Learned};
pub use pipeline::{FittedPipeline, PipelinePredictor};
pub use ridge::{LinearFit, NormalEquations, PENALTIES};

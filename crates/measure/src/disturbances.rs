//! What disturbed measurements.

use crate::note::{ProgramNote, values_or_text};
use serde::{Deserialize, Serialize};

/// CPU time that other programs took of the contexts, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// CPU time that they took. Right on average only; single values may be below 0.
    pub taken: f64,
    /// CPU time of all contexts.
    pub of: f64,
}

/// What disturbed a testbed while it measured. It qualifies every answer from these measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbances {
    /// The load by other programs; `None` if it was not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherLoad>,
    /// What else happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values_or_text")]
    pub notes: Vec<ProgramNote>,
}

//! What disturbed measurements.

use crate::note::{Note, values_or_text};
use serde::{Deserialize, Serialize};

/// CPU time that others took of all there was, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// What they took. Right on average only; single values may be below 0.
    pub taken: f64,
    /// What there was.
    pub of: f64,
}

/// What disturbed a testbed while it measured. It qualifies every answer from these measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbances {
    /// What other programs took of the contexts meanwhile; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherLoad>,
    /// What else happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "values_or_text")]
    pub notes: Vec<Note>,
}

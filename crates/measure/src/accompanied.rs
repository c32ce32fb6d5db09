//! What a program takes beside another one.

use crate::EventCounts;
use serde::{Deserialize, Serialize};

/// The runs of the programs of a [`crate::Setting::Profile`], in its order. Only runs count that
/// the others accompanied from begin to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccompaniedRuns {
    /// The seconds of each run of each program. On a model: of a unit of work, from each start.
    pub seconds: Vec<Vec<f64>>,
    /// What counters saw of each program in all of its runs. Empty if nothing was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<EventCounts>,
}

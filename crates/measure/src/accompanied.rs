//! What a program takes beside another one.

use crate::{CounterQuality, EventCounts};
use serde::{Deserialize, Serialize};

/// The runs of the programs of a [`crate::Setting::Profile`], in its order. Only runs count that
/// the others accompanied from begin to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccompaniedRuns {
    /// The seconds of each run of each program. On a model: of a unit of work, from each start.
    pub seconds: Vec<Vec<f64>>,
    /// What counters saw of each program in all of its runs. Empty if nothing was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<EventCounts>,
    /// How far these counts can be trusted, for each program whose quanta were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterQuality>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_were_stored_before_counts_are_read_and_written_as_they_were() {
        let stored = r#"{"seconds":[[1.5,1.25]]}"#;
        let runs: AccompaniedRuns = serde_json::from_str(stored).unwrap();
        assert!(runs.counts.is_empty());
        assert_eq!(serde_json::to_string(&runs).unwrap(), stored);
    }
}

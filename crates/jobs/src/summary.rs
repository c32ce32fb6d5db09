//! What a campaign concluded, in brief: for lists of campaigns.

use pinwise_placement::{Gain, LastComparisonVerdict, PlacementVerdict};
use serde::Serialize;

/// The answer of a campaign that has one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Summary {
    /// The answer of a placement.
    Place {
        /// The verdict.
        advice: PlacementVerdict,
        /// The best over unpinned, if both had fresh windows.
        gain: Option<Gain>,
    },
    /// The answer of a comparison.
    Compare {
        /// The best known way; `None` if the fresh windows contradict it.
        best: Option<String>,
    },
    /// The answer of a selection.
    Select {
        /// The weighted speedup of the best selection.
        speedup: f64,
    },
    /// The answer of a search for a number of threads.
    Threads {
        /// n.
        n: u32,
        /// The verdict; `None` if nothing was compared.
        choice: Option<LastComparisonVerdict>,
        /// The gain of that number over the program's own; `None` for the program's own.
        gain: Option<Gain>,
    },
    /// The answer of a calibration.
    Calibrate {
        /// From how much LOCK on it counts as high, in percent.
        lock: f64,
    },
    /// The answer of a search for number and placement.
    Tune {
        /// The verdict.
        choice: LastComparisonVerdict,
        /// n; `None`: the program's own.
        n: Option<u32>,
        /// The choice over the default; `None` for the default.
        gain: Option<Gain>,
    },
    /// The answer of microbenchmarks.
    Characterize {
        /// The resource whose users suffer most from each other.
        critical: Option<String>,
    },
    /// The answer of core-to-core latencies.
    Latency {
        /// The levels that they imply.
        levels: usize,
    },
}

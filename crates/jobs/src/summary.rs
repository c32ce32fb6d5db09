//! What a campaign concluded, in brief: for lists of campaigns.

use pinwise_placement::{Advice, Choice, Gain};
use serde::Serialize;

/// The answer of a campaign that has one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Summary {
    /// Of a placement.
    Place {
        /// What to do.
        advice: Advice,
        /// The best over unpinned, where both had fresh windows.
        gain: Option<Gain>,
    },
    /// Of a comparison.
    Compare {
        /// The best known way; `None` where the fresh windows contradict it.
        best: Option<String>,
    },
    /// Of a selection.
    Select {
        /// The weighted speedup of the best selection.
        speedup: f64,
    },
    /// Of a search for a number of threads.
    Threads {
        /// n.
        n: u32,
        /// What to do; `None` where nothing was compared.
        choice: Option<Choice>,
        /// That number over the program's own; `None` for that one.
        gain: Option<Gain>,
    },
    /// Of a calibration.
    Calibrate {
        /// From how much LOCK on it counts as high, in percent.
        lock: f64,
    },
    /// Of a search for number and placement.
    Tune {
        /// What to do.
        choice: Choice,
        /// n; `None`: the program's own.
        n: Option<u32>,
        /// The choice over the default; `None` for the default.
        gain: Option<Gain>,
    },
    /// Of microbenchmarks.
    Characterize {
        /// The resource whose users suffer most from each other.
        critical: Option<String>,
    },
    /// Of core-to-core latencies.
    Latency {
        /// The levels that they imply.
        levels: usize,
    },
}

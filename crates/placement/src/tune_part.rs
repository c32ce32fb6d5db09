//! The parts of `tune`: searches and comparisons that are campaigns of their own. `threads` has the
//! last comparison, too.

use serde::{Deserialize, Serialize};

/// A part, as its campaign names it: its step in the campaign's parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunePart {
    /// The search for the number alone.
    Threads,
    /// Numbers under policies of placement.
    Policies,
    /// The search for the best assignment of a number of threads.
    Place {
        /// The number.
        n: u32,
        /// The round of halving, from 1.
        round: u32,
    },
    /// The last comparison. A store finds a part by its word, so the word stays.
    #[serde(rename = "finals")]
    LastComparison,
}

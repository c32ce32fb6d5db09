//! What measurements met that no performance tells.

use serde::{Deserialize, Serialize};

/// CPU time that others took of all there was, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// What they took; right on average only, and below 0 at times.
    pub taken: f64,
    /// What there was.
    pub of: f64,
}

/// What a testbed met while it measured, which whoever leans on the answer should know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Met {
    /// What other programs took of the contexts meanwhile; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherLoad>,
    /// The rest, as sentences that begin small and have no full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

//! How much of the budget a history has used.

use crate::Budget;
use pinwise_campaign::Record;

/// The share of the budget that searching may use; the rest is for fresh windows.
pub(crate) const SEARCH_SHARE: f64 = 0.75;

impl Budget {
    /// The share that `history` has used; above 1 where it was exceeded. It depends on what was
    /// recorded alone, never on a clock, so that a resumed campaign decides as it would have.
    pub(crate) fn used(&self, history: &[Record]) -> f64 {
        let (used, whole) = match self {
            Self::Measurements(whole) => (history.len() as f64, *whole as f64),
            Self::Time(whole) => (
                history.last().map_or(0.0, |record| record.elapsed.as_secs_f64()),
                whole.as_secs_f64(),
            ),
        };
        if whole > 0.0 { used / whole } else { 1.0 }
    }
}

//! Notes on a bound, as values. The crate `present` makes the text.

use crate::BoundMethod;
use crate::statistics::no_high;
use pinwise_evt::{Diagnostic, Refusal};
use pinwise_measure::Unit;
use serde::{Deserialize, Serialize};

/// A note that qualifies a bound, or says why there is none. Performances are better when higher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BoundNote {
    /// Whatever the distribution, few assignments beat the best of the sample.
    AnyDistribution {
        /// At most this share of them.
        share: f64,
    },
    /// The best was measured above the bound, which is wrong then.
    Exceeded,
    /// The best was measured above the bound by prediction, which is wrong then.
    PredictionExceeded {
        /// The bound.
        high: f64,
    },
    /// The bound rests on how far predictions near the top are off.
    Predicted {
        /// Their standard deviation, relative, noise included.
        scatter: f64,
        /// Draws behind it.
        draws: usize,
    },
    /// No assignment could be measured.
    NothingMeasured,
    /// Every assignment was measured, but too few times to say how far off that may be.
    FewWindows,
    /// Every assignment was measured: the bound rests on noise alone.
    AllMeasured,
    /// Assignments that could not be measured are left out.
    LeftOut {
        /// The number of these assignments.
        assignments: usize,
    },
    /// The best is above the cap of the user, which is wrong and not used.
    WrongCap {
        /// The cap.
        cap: f64,
    },
    /// The bound is a limit that nothing is known to exceed.
    Limit {
        /// [`BoundMethod::Cap`] or [`BoundMethod::Solo`].
        method: BoundMethod,
    },
    /// Such a limit is higher than the bound, and not used.
    HigherLimit {
        /// [`BoundMethod::Cap`] or [`BoundMethod::Solo`].
        method: BoundMethod,
        /// Infinity if nothing bounds it (`null` in JSON).
        #[serde(deserialize_with = "no_high")]
        high: f64,
    },
    /// Another bound is no lower than the limit that is used.
    NoLower {
        /// Its method.
        method: BoundMethod,
        /// The bound.
        high: f64,
    },
    /// The best did better than the instances did alone, so these are no limit.
    CompanyHelps,
    /// In many windows the metric stood still: there is no bound.
    StandsStill {
        /// Share of the windows.
        share: f64,
    },
    /// The program did better unpinned than the bound allows: there is no bound.
    UnpinnedBetter {
        /// Its performance.
        unpinned: f64,
        /// The bound.
        high: f64,
    },
    /// Nodes that differ a little made the readings: the upper end is higher by that.
    NodesDiffer {
        /// By which share they may differ.
        share: f64,
    },
    /// The best has a single fresh window: there is no bound.
    SingleWindow,
    /// Text: from a store that was written before notes had kinds.
    Text {
        /// The sentence.
        text: String,
    },
    /// A note of the estimate on itself.
    #[serde(untagged)]
    Diagnostic(Diagnostic),
    /// Why the sample supports no estimate.
    #[serde(untagged)]
    Refusal(Refusal),
}

impl BoundNote {
    /// The same with its performances as `unit` counts them.
    pub fn in_unit(self, unit: &Unit) -> Self {
        let shown = |performance: f64| unit.quantity(performance);
        match self {
            Self::PredictionExceeded { high } => Self::PredictionExceeded { high: shown(high) },
            Self::WrongCap { cap } => Self::WrongCap { cap: shown(cap) },
            Self::HigherLimit { method, high } => Self::HigherLimit { method, high: shown(high) },
            Self::NoLower { method, high } => Self::NoLower { method, high: shown(high) },
            Self::UnpinnedBetter { unpinned, high } => {
                Self::UnpinnedBetter { unpinned: shown(unpinned), high: shown(high) }
            }
            Self::Diagnostic(Diagnostic::CapActive { cap }) => {
                Self::Diagnostic(Diagnostic::CapActive { cap: shown(cap) })
            }
            Self::Diagnostic(Diagnostic::CapFalsified { cap }) => {
                Self::Diagnostic(Diagnostic::CapFalsified { cap: shown(cap) })
            }
            Self::Refusal(Refusal::Constant { value, n }) => {
                Self::Refusal(Refusal::Constant { value: shown(value), n })
            }
            // The tail of a sample that is fitted is that of performances.
            other => other,
        }
    }

    /// Whether a sample that supports no estimate has too few values. Otherwise they are of no use.
    /// `None`: there is an estimate, or the question is wrong.
    pub fn lacks_values(&self) -> Option<bool> {
        let Self::Refusal(refusal) = self else { return None };
        match refusal {
            Refusal::Empty { .. }
            | Refusal::Constant { n: 1, .. }
            | Refusal::TooFew { .. }
            | Refusal::FewExceedances { .. }
            | Refusal::NoThreshold { .. }
            | Refusal::NoEnd { .. }
            | Refusal::NoMaximum { .. } => Some(true),
            Refusal::Constant { .. } | Refusal::Range => Some(false),
            Refusal::Confidence { .. } | Refusal::NotFinite { .. } => None,
        }
    }
}

pinwise_measure::text_in_old_stores!(BoundNote);

impl From<Refusal> for BoundNote {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            // A bare number has no fields.
            Refusal::Confidence { .. } => Self::Text { text: refusal.to_string() },
            other => Self::Refusal(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::values_or_text;

    #[derive(Deserialize)]
    struct Stored {
        #[serde(deserialize_with = "values_or_text")]
        notes: Vec<BoundNote>,
    }

    #[test]
    fn every_note_is_read_back_and_that_of_an_earlier_version_is_text() {
        let notes = [
            BoundNote::AnyDistribution { share: 0.1 },
            BoundNote::HigherLimit { method: BoundMethod::Cap, high: f64::INFINITY },
            BoundNote::NoLower { method: BoundMethod::Bayes, high: 2.0 },
            BoundNote::SingleWindow,
            BoundNote::Diagnostic(Diagnostic::Saturated { ties: 6 }),
            BoundNote::Diagnostic(Diagnostic::Unbounded),
            BoundNote::from(Refusal::Constant { value: 80.0, n: 60 }),
            BoundNote::from(Refusal::Confidence { confidence: 2.0 }),
        ];
        let written = serde_json::json!({ "notes": notes });
        assert_eq!(written["notes"][4], serde_json::json!({ "kind": "saturated", "ties": 6 }));
        let read: Stored = serde_json::from_value(written).unwrap();
        assert_eq!(read.notes, notes);
        let old: Stored = serde_json::from_str(r#"{"notes": ["the cap is wrong"]}"#).unwrap();
        assert_eq!(old.notes, [BoundNote::from("the cap is wrong".to_owned())]);
        let cost = Unit::cost("s");
        let shown = BoundNote::WrongCap { cap: 4.0 }.in_unit(&cost);
        assert_eq!(shown, BoundNote::WrongCap { cap: 0.25 });
    }
}

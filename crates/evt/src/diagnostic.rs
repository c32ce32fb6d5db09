//! What a reader has to know beside the numbers, and why there may be none.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that changes how far an estimate can be trusted. Its text is a sentence for the user, which stays true when lower is
/// better and the values were negated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Diagnostic {
    /// Values that were infinite or no number were left out.
    Dropped {
        /// How many.
        count: usize,
    },
    /// Five or more values equal the best, many more than tie below it: a saturated resource, as a line rate. The bound is the
    /// best itself.
    Saturated {
        /// How many.
        ties: usize,
    },
    /// Fewer than half of the values are different: the population has atoms, or the measurement is coarse.
    Atoms {
        /// Different values.
        distinct: usize,
        /// Values.
        n: usize,
    },
    /// Depths of 25, 50 and 100 exceedances give upper ends that disagree by more than 2.5 times in (upper - best).
    Unstable {
        /// Largest over smallest (upper - best).
        ratio: f64,
    },
    /// The likelihood alone prefers a distribution without end: the bound rests on the prior.
    PriorDriven {
        /// The shape of maximum likelihood, 0 or above.
        shape: f64,
    },
    /// The mean excess plot above the threshold is not roughly linear: the model may not fit.
    NotLinear {
        /// Share of the variation that a line explains.
        r_squared: f64,
    },
    /// The given threshold leaves more than the 5 % of the sample that the method allows.
    ThresholdLow {
        /// Share of the sample above the threshold.
        fraction: f64,
    },
    /// The interval has no finite upper end.
    Unbounded,
    /// The upper end is the cap, not the estimate.
    CapActive {
        /// The cap.
        cap: f64,
    },
    /// The best value is above the cap: the cap is wrong and was not used.
    CapFalsified {
        /// The cap.
        cap: f64,
    },
    /// The bound is not above zero: a relative gap has no meaning.
    GapUndefined,
    /// Every assignment was measured: no estimate was needed.
    Exhausted,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { count } => write!(f, "{count} values were no finite number and are left out"),
            Self::Saturated { ties } => {
                write!(
                    f,
                    "{ties} values tie at the best and few below it: a saturated resource, and the best is taken for the bound"
                )
            }
            Self::Atoms { distinct, n } => {
                write!(
                    f,
                    "only {distinct} of {n} values are different: measure every assignment instead of estimating, if they are few"
                )
            }
            Self::Unstable { ratio } => {
                write!(
                    f,
                    "the far end changes {ratio:.1}-fold with how deep a tail is used: take more runs before trusting it"
                )
            }
            Self::PriorDriven { shape } => {
                write!(f, "the sample alone shows no end (shape {shape:+.2}): the bound rests on the prior")
            }
            Self::NotLinear { r_squared } => {
                write!(f, "the mean excess plot is not linear (R² {r_squared:.2}): the tail may not follow the model")
            }
            Self::ThresholdLow { fraction } => {
                write!(
                    f,
                    "{:.1} % of the values lie beyond the threshold; above 5 % the bulk biases the tail",
                    100.0 * fraction
                )
            }
            Self::Unbounded => write!(f, "the interval has no finite end"),
            Self::CapActive { cap } => write!(f, "the interval ends at the cap, {cap}"),
            Self::CapFalsified { cap } => {
                write!(f, "the best beats the cap {cap}: the cap is wrong and is not used")
            }
            Self::GapUndefined => write!(f, "the bound is not above zero: a relative gap has no meaning"),
            Self::Exhausted => write!(f, "every assignment was measured: the best is exact but for noise"),
        }
    }
}

/// Why a sample supports no bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// There is no finite value.
    #[error("no value to estimate from{}", if *.dropped > 0 { format!(": all {dropped} are infinite or no number") } else { String::new() })]
    Empty {
        /// Values left out.
        dropped: usize,
    },
    /// All values are the same.
    #[error("all {n} values are {value}: a constant sample shows no tail")]
    Constant {
        /// The value.
        value: f64,
        /// How often.
        n: usize,
    },
    /// Too few different values.
    #[error("only {distinct} of {n} values are different; a bound needs {needed}")]
    TooFew {
        /// Different values.
        distinct: usize,
        /// Values.
        n: usize,
        /// Different values needed.
        needed: usize,
    },
    /// Too few values above the threshold.
    #[error("{exceedances} values lie beyond the threshold {threshold}; a fit needs {needed}")]
    FewExceedances {
        /// The threshold.
        threshold: f64,
        /// Values above it.
        exceedances: usize,
        /// How many a fit needs.
        needed: usize,
    },
    /// No threshold leaves enough values above it and stays within the top 5 % of the sample.
    #[error("no threshold leaves {needed} values within the top 5 % of {n}")]
    NoThreshold {
        /// Values.
        n: usize,
        /// How many a fit needs.
        needed: usize,
    },
    /// The fitted shape is 0 or above: by maximum likelihood the distribution has no end.
    #[error("the fitted shape is {shape:+.3}, not below 0: the {exceedances} values beyond {threshold} show no end")]
    NoEnd {
        /// The threshold.
        threshold: f64,
        /// Values above it.
        exceedances: usize,
        /// The shape of maximum likelihood.
        shape: f64,
        /// The scale of maximum likelihood.
        scale: f64,
    },
    /// The likelihood grows without limit towards shape < -1, the end at the best value itself.
    #[error(
        "the likelihood of the {exceedances} values beyond {threshold} has no maximum: they crowd at the best value"
    )]
    NoMaximum {
        /// The threshold.
        threshold: f64,
        /// Values above it.
        exceedances: usize,
    },
    /// The values lie too far apart, or too close together, for their differences to be computed.
    #[error("the differences of the values leave the range of 64-bit numbers")]
    Range,
    /// Not a confidence.
    #[error("the confidence {0} is not at least 0.5 and below 1")]
    Confidence(f64),
    /// The cap or the threshold is infinite or no number.
    #[error("the {option} {value} is no finite number")]
    NotFinite {
        /// Which of the two.
        option: Limit,
        /// Its value.
        value: f64,
    },
}

/// A limit given by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A performance that cannot be exceeded.
    Cap,
    /// The threshold.
    Threshold,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cap => "cap",
            Self::Threshold => "threshold",
        })
    }
}

//! What a reader has to know in addition to the numbers, and why there may be none.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that changes how far an estimate can be trusted. Its text is a sentence for the user,
/// which stays true when lower is better and the values were negated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Diagnostic {
    /// Values that were infinite or no number were left out.
    Dropped {
        /// How many.
        count: usize,
    },
    /// Five or more values equal the best, many more than tie below it: a saturated resource, as a
    /// line rate. The bound is the best itself.
    Saturated {
        /// How many.
        ties: usize,
    },
    /// Fewer than half of the values are different: the population has atoms, or the measurement is
    /// coarse.
    Atoms {
        /// Different values.
        distinct: usize,
        /// Values.
        n: usize,
    },
    /// Depths of 25, 50 and 100 exceedances give different upper ends. They disagree by more than
    /// 2.5 times in (upper - best).
    Unstable {
        /// Largest over smallest (upper - best).
        ratio: f64,
    },
    /// The likelihood alone prefers a distribution without end: the bound rests on the prior.
    PriorDriven {
        /// The shape of maximum likelihood, 0 or above.
        shape: f64,
    },
    /// The tail has fewer values than are enough: those that an estimate uses if there are more.
    Few {
        /// Values in the tail.
        exceedances: usize,
        /// How many are enough.
        enough: usize,
    },
    /// The mean excess plot above the threshold is not roughly linear: the model may not fit.
    NotLinear {
        /// Share of the variation that a line explains.
        r_squared: f64,
    },
    /// The mean excess plot is straight above few values only. The threshold is the lowest one
    /// with a stable estimate instead.
    StraightOnly {
        /// Values above which the plot is straight.
        exceedances: usize,
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

impl Diagnostic {
    /// The diagnostic for readers to whom `value` says a performance, in a unit or with another
    /// sign.
    pub fn in_words(&self, value: impl Fn(f64) -> String) -> String {
        match self {
            Self::Dropped { count: 1 } => {
                "1 value was no finite number and is left out: check it".into()
            }
            Self::Dropped { count } => {
                format!("{count} values were no finite number and are left out: check them")
            }
            Self::Saturated { ties } => {
                format!(
                    "{ties} values tie at the best, few just below: a saturated resource; the \
                     best is the bound"
                )
            }
            Self::Atoms { distinct, n } => {
                format!(
                    "{distinct} different values among {n}: measure every assignment, if they are \
                     few"
                )
            }
            Self::Unstable { ratio } => {
                format!(
                    "the far end changes {ratio:.1}-fold with how deep a tail is used: take more \
                     runs"
                )
            }
            Self::PriorDriven { shape } => {
                format!(
                    "the sample alone shows no end (shape {shape:+.2}), so the prior bounds it: \
                     take more runs"
                )
            }
            Self::Few { exceedances, enough } => {
                format!(
                    "the tail has {exceedances} values, and {enough} are enough: take more runs \
                     before trusting it"
                )
            }
            Self::NotLinear { r_squared } => {
                format!(
                    "the mean excess plot is not linear (R^2 {r_squared:.2}): it may not fit, use \
                     method bayes"
                )
            }
            Self::StraightOnly { exceedances } => {
                format!(
                    "the plot is straight for {exceedances} values only: the threshold is the \
                     lowest with a stable end"
                )
            }
            Self::ThresholdLow { fraction } => {
                format!(
                    "{:.1} % of the values lie beyond the threshold (over 5 % biases): choose a \
                     tighter one",
                    100.0 * fraction
                )
            }
            Self::Unbounded => {
                "the interval has no finite end: take more runs, or use the method bayes".into()
            }
            Self::CapActive { cap } => format!("the interval ends at the cap, {}", value(*cap)),
            Self::CapFalsified { cap } => {
                format!("the best beats the cap {}, which is not used: correct it", value(*cap))
            }
            Self::GapUndefined => {
                "the bound is not above zero: a relative gap has no meaning".into()
            }
            Self::Exhausted => {
                "every assignment was measured: the best is exact but for noise".into()
            }
        }
    }
}

/// A value without a unit: with an exponent where all its digits would be too many.
fn number(value: f64) -> String {
    let short = value == 0.0 || (1e-6..1e16).contains(&value.abs());
    if short { value.to_string() } else { format!("{value:e}") }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(number))
    }
}

/// Why a sample supports no bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// There is no finite value.
    Empty {
        /// Values left out.
        dropped: usize,
    },
    /// All values are the same.
    Constant {
        /// The value.
        value: f64,
        /// How often.
        n: usize,
    },
    /// Too few different values.
    TooFew {
        /// Different values.
        distinct: usize,
        /// Values.
        n: usize,
        /// Different values needed.
        needed: usize,
    },
    /// Too few values above the threshold.
    FewExceedances {
        /// The threshold.
        threshold: f64,
        /// Values above it.
        exceedances: usize,
        /// How many a fit needs.
        needed: usize,
    },
    /// No threshold leaves enough values above it and stays within the top 5 % of the sample.
    NoThreshold {
        /// Values.
        n: usize,
        /// How many a fit needs.
        needed: usize,
    },
    /// The fitted shape is 0 or above: by maximum likelihood the distribution has no end.
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
    NoMaximum {
        /// The threshold.
        threshold: f64,
        /// Values above it.
        exceedances: usize,
    },
    /// The values lie too far apart, or too close together, for their differences to be computed.
    Range,
    /// Not a confidence.
    Confidence {
        /// What was asked for.
        confidence: f64,
    },
    /// The cap or the threshold is infinite or no number.
    NotFinite {
        /// Which of the two.
        option: Limit,
        /// Its value.
        value: f64,
    },
}

impl Refusal {
    /// The reason for readers to whom `value` says a performance, in a unit or with another sign.
    pub fn in_words(&self, value: impl Fn(f64) -> String) -> String {
        match *self {
            Self::Empty { dropped: 0 } => "no value to estimate from".into(),
            Self::Empty { dropped: 1 } => {
                "no value to estimate from: the only one is infinite or no number".into()
            }
            Self::Empty { dropped } => {
                format!("no value to estimate from: all {dropped} are infinite or no number")
            }
            Self::Constant { value: only, n: 1 } => {
                format!("{} is the only value: one shows no tail", value(only))
            }
            Self::Constant { value: all, n } => {
                format!("all {n} values are {}: a constant sample shows no tail", value(all))
            }
            Self::TooFew { distinct, n, needed } => {
                format!("{distinct} different values among {n}; a bound needs {needed}")
            }
            Self::FewExceedances { threshold, exceedances, needed } => {
                let values = if exceedances == 1 { "value" } else { "values" };
                format!(
                    "{exceedances} {values} beyond the threshold {}; a fit needs {needed}",
                    value(threshold)
                )
            }
            Self::NoThreshold { n, needed } => {
                format!("no threshold leaves {needed} values within the top 5 % of {n}")
            }
            Self::NoEnd { threshold, exceedances, shape, .. } => format!(
                "shape {shape:+.3}, not below 0: {exceedances} values over {} show no end",
                value(threshold)
            ),
            Self::NoMaximum { threshold, exceedances } => format!(
                "{exceedances} values over {} crowd at the best: no likeliest fit",
                value(threshold)
            ),
            Self::Range => "the differences of the values leave the range of 64-bit numbers".into(),
            Self::Confidence { confidence } => {
                format!("the confidence {confidence} is not at least 0.5 and below 1")
            }
            Self::NotFinite { option, value } => {
                format!("the {option} {value} is not a finite number")
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(number))
    }
}

impl std::error::Error for Refusal {}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        for (value, told) in [
            (100.5, "100.5"),
            (3.0, "3"),
            (0.0, "0"),
            (-0.25, "-0.25"),
            (1e300, "1e300"),
            (-2.5e-300, "-2.5e-300"),
            (1e15, "1000000000000000"),
        ] {
            assert_eq!(number(value), told);
        }
        let constant = Refusal::Constant { value: 1e300, n: 3 }.to_string();
        assert_eq!(constant, "all 3 values are 1e300: a constant sample shows no tail");
        let cap = Diagnostic::CapActive { cap: 1e300 }.to_string();
        assert_eq!(cap, "the interval ends at the cap, 1e300");
    }
}

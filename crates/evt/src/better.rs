//! Bounds on values whose lower ones may be better, such as run times.
//!
//! *Method.* If lower is better, values, cap and threshold are negated. The GPD is a family of
//! location and scale, so the estimate is as good on either side. The result gets the values' own
//! sign again, and the ends of its interval trade places.
//!
//! The gap of the lowest value b is (best - b)/best, the share of the best that can be saved. It is
//! the gap of the reciprocals: (1/b - 1/best)/(1/b).

use crate::{BoundEstimate, Diagnostic, Estimator, Options, Refusal, Sample, estimate};

/// Which values are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Better {
    /// The higher ones: they are performances as they are.
    #[default]
    Higher,
    /// The lower ones.
    Lower,
}

/// A bound on the best possible value. Shape and scale are those of the tail of exceedances,
/// whichever side it is on.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueBound {
    /// The best of the values.
    pub best: f64,
    /// The threshold; `None` for an exact result.
    pub threshold: Option<f64>,
    /// Values beyond the threshold that were fitted.
    pub exceedances: usize,
    /// Shape of the tail.
    pub shape: Option<f64>,
    /// Scale of the tail.
    pub scale: Option<f64>,
    /// The best possible value.
    pub bound: f64,
    /// Lower end of its interval; `None` if it is infinite.
    pub low: Option<f64>,
    /// Upper end of its interval; `None` if it is infinite.
    pub high: Option<f64>,
    /// From the best to the bound, relative to the larger of them; `None` if that has no meaning.
    pub gap: Option<f64>,
    /// The same to the far end of the interval.
    pub gap_high: Option<f64>,
    /// As in [`BoundEstimate`].
    pub better_fraction: f64,
    /// What gave the result.
    pub method: Estimator,
    /// What to know in addition to the numbers.
    pub diagnostics: Vec<Diagnostic>,
}

impl Better {
    /// The performance of a value, or the value of a performance.
    pub fn turned(self, value: f64) -> f64 {
        match self {
            Self::Higher => value,
            Self::Lower => -value,
        }
    }

    /// The sample of the performances of `values`.
    pub fn sample(self, values: impl IntoIterator<Item = f64>) -> Sample {
        Sample::new(values.into_iter().map(|value| self.turned(value)))
    }

    /// Estimates the best possible value from a [sample](Self::sample). The cap and the threshold
    /// of `options` are values.
    ///
    /// # Errors
    /// See [`estimate()`]. A value in the reason has its own sign.
    pub fn estimate(self, sample: &Sample, options: &Options) -> Result<ValueBound, Refusal> {
        let turned = |limit: Option<f64>| limit.map(|limit| self.turned(limit));
        let options =
            Options { cap: turned(options.cap), threshold: turned(options.threshold), ..*options };
        let found = estimate(sample, &options).map_err(|refusal| self.refusal(refusal))?;
        let BoundEstimate { upb, upb_low, upb_high, exceedances, shape, scale, .. } = found;
        let best = self.turned(found.best);
        let (low, high, gap, gap_high) = match self {
            Self::Higher => (Some(upb_low), upb_high, found.gap, found.gap_high),
            Self::Lower => {
                let high = turned(upb_high);
                let gap_high = high.and_then(|low| saved(best, low));
                (high, Some(-upb_low), saved(best, -upb), gap_high)
            }
        };
        let mut diagnostics = found.diagnostics;
        diagnostics.retain(|diagnostic| *diagnostic != Diagnostic::GapUndefined);
        if gap.is_none() {
            diagnostics.push(Diagnostic::GapUndefined);
        }
        diagnostics.iter_mut().for_each(|diagnostic| match diagnostic {
            Diagnostic::CapActive { cap } | Diagnostic::CapFalsified { cap } => {
                *cap = self.turned(*cap);
            }
            _ => {}
        });
        Ok(ValueBound {
            best,
            threshold: turned(found.threshold),
            exceedances,
            shape,
            scale,
            bound: self.turned(upb),
            low,
            high,
            gap,
            gap_high,
            better_fraction: found.better_fraction,
            method: found.method,
            diagnostics,
        })
    }

    /// The reason with values in their own sign.
    fn refusal(self, mut refusal: Refusal) -> Refusal {
        match &mut refusal {
            Refusal::Constant { value, .. } | Refusal::NotFinite { value, .. } => {
                *value = self.turned(*value);
            }
            Refusal::NoEnd { threshold, .. }
            | Refusal::NoMaximum { threshold, .. }
            | Refusal::FewExceedances { threshold, .. } => *threshold = self.turned(*threshold),
            Refusal::Empty { .. }
            | Refusal::TooFew { .. }
            | Refusal::NoThreshold { .. }
            | Refusal::Range
            | Refusal::Confidence { .. } => {}
        }
        refusal
    }
}

/// The share of `best` that is saved at `bound`, if lower is better.
fn saved(best: f64, bound: f64) -> Option<f64> {
    (bound >= 0.0 && best > 0.0).then(|| (best - bound) / best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    /// Run times without luck. None can be below 10.
    fn times() -> Vec<f64> {
        (0..1000).map(|i| 10.0 + 3.0 * ((f64::from(i) + 0.5) / 1000.0).powf(0.3)).collect()
    }

    fn lowest(values: &[f64], options: &Options) -> Result<ValueBound, Refusal> {
        Better::Lower.estimate(&Better::Lower.sample(values.iter().copied()), options)
    }

    #[test]
    fn the_lowest_value_is_bounded_from_below() {
        let found = lowest(&times(), &Options::default()).unwrap();
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!(low < 10.0 && low <= found.bound && found.bound <= high, "{found:?}");
        assert!(10.0 < found.best && high <= found.best, "{found:?}");
        assert!(found.threshold.unwrap() > found.best, "the tail is that of the low values");
        assert!(found.shape.unwrap() < 0.0 && found.scale.unwrap() > 0.0, "{found:?}");
        assert_eq!(found.gap, Some((found.best - found.bound) / found.best));
        assert_eq!(found.gap_high, Some((found.best - low) / found.best));
        assert!(!found.diagnostics.contains(&Diagnostic::GapUndefined), "{found:?}");
    }

    #[test]
    fn of_performances_it_is_the_estimate_itself() {
        let options = Options { cap: Some(-1.0), ..Options::default() };
        let sample = Better::Higher.sample(times().into_iter().map(|value| -value));
        let (same, found) =
            (Better::Higher.estimate(&sample, &options), estimate(&sample, &options));
        let (same, found) = (same.unwrap(), found.unwrap());
        assert_eq!(
            (same.bound, same.low, same.high),
            (found.upb, Some(found.upb_low), found.upb_high)
        );
        assert_eq!((same.gap, same.gap_high), (found.gap, found.gap_high));
        assert_eq!(same.diagnostics, found.diagnostics);
    }

    #[test]
    fn the_gap_of_lower_is_better_is_that_of_the_reciprocals() {
        let (best, bound) = (8.0f64, 5.0f64);
        let reciprocal = (1.0 / bound - 1.0 / best) / (1.0 / bound);
        assert!((saved(best, bound).unwrap() - reciprocal).abs() < 1e-15);
        assert_eq!(saved(8.0, -1.0), None);
        // A bound below 0 saves more than all there is.
        let below: Vec<f64> = times().iter().map(|value| value - 10.0).collect();
        let found = lowest(&below, &Options::default()).unwrap();
        assert_eq!(found.gap_high, None, "{found:?}");
    }

    #[test]
    fn a_cap_is_the_lowest_possible_value() {
        let capped = |cap| lowest(&times(), &Options { cap: Some(cap), ..Options::default() });
        let active = capped(10.0).unwrap();
        assert_eq!(active.low, Some(10.0));
        assert!(active.diagnostics.contains(&Diagnostic::CapActive { cap: 10.0 }), "{active:?}");
        let wrong = capped(12.0).unwrap();
        assert!(wrong.diagnostics.contains(&Diagnostic::CapFalsified { cap: 12.0 }), "{wrong:?}");
    }

    #[test]
    fn a_reason_has_values_in_their_own_sign() {
        let refused = |values: &[f64], options| lowest(values, &options).unwrap_err();
        let default = Options::default();
        assert_eq!(refused(&[3.0, 3.0], default), Refusal::Constant { value: 3.0, n: 2 });
        let threshold = Some(times()[5]);
        let few = refused(&times(), Options { threshold, ..default });
        assert!(
            matches!(few, Refusal::FewExceedances { threshold, .. } if threshold == times()[5])
        );
        let infinite = refused(&times(), Options { cap: Some(f64::INFINITY), ..default });
        assert!(matches!(infinite, Refusal::NotFinite { value: f64::INFINITY, .. }));
        // A tail that grows without end towards low values.
        let heavy: Vec<f64> = (0..1000).map(|i| -1000.0 / (f64::from(i) + 0.5)).collect();
        let no_end = refused(&heavy, Options { method: Method::Profile, ..default });
        assert!(
            matches!(no_end, Refusal::NoEnd { threshold, .. } if threshold < 0.0),
            "{no_end:?}"
        );
    }
}

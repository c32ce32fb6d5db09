//! The bound: from a sample to the best possible performance, or to the reason why there is none.

use crate::bayes::TailEndPosterior;
use crate::diagnostic::Limit;
use crate::profile_likelihood::ProfileLikelihood;
use crate::stable_threshold::stable_threshold;
use crate::{Diagnostic, Fit, Refusal, Sample, better_fraction, fit, mean_excess};
use serde::{Deserialize, Serialize};

/// Different values below which nothing is said.
const LEAST_DISTINCT: usize = 40;
/// Exceedances below which nothing is fitted.
const LEAST_EXCEEDANCES: usize = 10;
/// Exceedances the Bayesian estimator uses: few enough to lie deep in the tail, whatever the sample
/// size.
const DEPTH: usize = 50;
/// The depths at which its upper end is compared.
const DEPTHS: [usize; 3] = [25, DEPTH, 100];
/// Ratio of (upper - best) between depths above which the estimate is unstable.
const UNSTABLE: f64 = 2.5;
/// Ties at the best from which a resource counts as saturated, where the values below tie five
/// times less.
const SATURATED: usize = 5;

/// The estimator of the upper performance bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Bayesian GPD on a fixed number of deep exceedances; the default.
    #[default]
    Bayes,
    /// The published one: threshold by mean excess, maximum likelihood, profile likelihood.
    Profile,
}

/// What gave the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Every assignment was measured.
    Exact,
    /// [`Method::Bayes`].
    Bayes,
    /// [`Method::Profile`].
    Profile,
}

impl Estimator {
    /// The exceedances over `threshold` that the estimator fits, largest first. The published one
    /// takes every value. The Bayesian one takes different values, since equal ones carry no
    /// information on a continuous tail.
    pub(crate) fn exceedances(self, sample: &Sample, threshold: f64) -> Vec<f64> {
        let values = if self == Self::Bayes { sample.distinct() } else { sample.descending() };
        values
            .iter()
            .take_while(|&&value| value > threshold)
            .map(|value| value - threshold)
            .collect()
    }
}

impl From<Method> for Estimator {
    fn from(method: Method) -> Self {
        match method {
            Method::Bayes => Self::Bayes,
            Method::Profile => Self::Profile,
        }
    }
}

/// What is asked of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The estimator.
    pub method: Method,
    /// Confidence of the interval, at least 0.5 and below 1. Bayes spends all of it on the upper
    /// end, the published method on both.
    pub confidence: f64,
    /// A performance that cannot be exceeded, as a line rate or the sum of what the instances
    /// reach alone.
    pub cap: Option<f64>,
    /// The threshold, instead of the method's own choice.
    pub threshold: Option<f64>,
    /// Every assignment is in the sample.
    pub exhausted: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::default(),
            confidence: 0.95,
            cap: None,
            threshold: None,
            exhausted: false,
        }
    }
}

/// The best possible performance, estimated from a sample. In the unit of the sample but for shape
/// and shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundEstimate {
    /// Values it rests on.
    pub n: usize,
    /// The best of them.
    pub best: f64,
    /// The threshold; `None` for an exact result.
    pub threshold: Option<f64>,
    /// Values above the threshold that were fitted.
    pub exceedances: usize,
    /// Shape of the tail: by maximum likelihood, or the posterior mean.
    pub shape: Option<f64>,
    /// Scale of the tail: by maximum likelihood, or the posterior mean.
    pub scale: Option<f64>,
    /// The upper performance bound: u - scale/shape at the maximum of the likelihood, or the
    /// posterior median; at least `best`.
    pub upb: f64,
    /// Lower end of its interval, at least `best`: a measured value cannot be above the bound.
    pub upb_low: f64,
    /// Upper end of its interval, at least `upb`; `None` if it is infinite.
    pub upb_high: Option<f64>,
    /// Of the interval.
    pub confidence: f64,
    /// (upb - best) / upb; `None` if upb is not above zero.
    pub gap: Option<f64>,
    /// (upb_high - best) / upb_high; `None` if that is infinite or not above zero.
    pub gap_high: Option<f64>,
    /// With `confidence`, at most this share of all assignments beats the best, whatever the
    /// distribution.
    pub better_fraction: f64,
    /// What gave the result.
    pub method: Estimator,
    /// What to know in addition to the numbers.
    pub diagnostics: Vec<Diagnostic>,
}

impl BoundEstimate {
    /// Whether a performance measured later proves the estimate wrong. Report it; do not move the
    /// bound silently.
    pub fn is_falsified_by(&self, later: f64) -> bool {
        self.upb_high.is_some_and(|high| later > high)
    }
}

/// A tail's end before hard bounds: distances from the threshold.
struct TailEnd {
    shape: f64,
    scale: f64,
    middle: f64,
    low: f64,
    high: Option<f64>,
    notes: Vec<Diagnostic>,
}

/// Estimates the best possible performance from `sample`.
///
/// # Errors
/// A [`Refusal`] with the reason where the sample supports no bound, or the options make no sense.
pub fn estimate(sample: &Sample, options: &Options) -> Result<BoundEstimate, Refusal> {
    if !(0.5..1.0).contains(&options.confidence) {
        return Err(Refusal::Confidence { confidence: options.confidence });
    }
    for (option, value) in [(Limit::Cap, options.cap), (Limit::Threshold, options.threshold)] {
        if let Some(value) = value.filter(|value| !value.is_finite()) {
            return Err(Refusal::NotFinite { option, value });
        }
    }
    let best = sample.best().ok_or(Refusal::Empty { dropped: sample.dropped() })?;
    let worst = sample.descending()[sample.n() - 1];
    if !(best - worst).is_finite() {
        return Err(Refusal::Range);
    }
    let dropped = (sample.dropped() > 0).then_some(Diagnostic::Dropped { count: sample.dropped() });
    if options.exhausted {
        let notes = dropped.into_iter().chain([Diagnostic::Exhausted]).collect();
        let tail =
            TailEnd { shape: 0.0, scale: 0.0, middle: 0.0, low: 0.0, high: Some(0.0), notes };
        let exact = finish(sample, options, best, 0, tail)?;
        return Ok(BoundEstimate {
            threshold: None,
            shape: None,
            scale: None,
            method: Estimator::Exact,
            ..exact
        });
    }
    if best == worst {
        return Err(Refusal::Constant { value: best, n: sample.n() });
    }
    let distinct = sample.distinct().len();
    if distinct < LEAST_DISTINCT {
        return Err(Refusal::TooFew { distinct, n: sample.n(), needed: LEAST_DISTINCT });
    }
    let mut straight_only = None;
    let threshold = match (options.threshold, options.method) {
        (Some(threshold), _) => threshold,
        (None, Method::Bayes) => sample.distinct()[DEPTH.min(distinct / 4)],
        (None, Method::Profile) => {
            let (straight, _) = mean_excess::choose(sample, LEAST_EXCEEDANCES)
                .ok_or(Refusal::NoThreshold { n: sample.n(), needed: LEAST_EXCEEDANCES })?;
            let exceedances = Estimator::Profile.exceedances(sample, straight).len();
            let few = exceedances < DEPTH;
            let stable = few.then(|| stable_threshold(sample, options.confidence)).flatten();
            match stable.filter(|stable| *stable < straight) {
                Some(stable) => {
                    straight_only = Some(Diagnostic::StraightOnly { exceedances });
                    stable
                }
                None => straight,
            }
        }
    };
    let exceedances = Estimator::from(options.method).exceedances(sample, threshold);
    if exceedances.len() < LEAST_EXCEEDANCES {
        return Err(Refusal::FewExceedances {
            threshold,
            exceedances: exceedances.len(),
            needed: LEAST_EXCEEDANCES,
        });
    }
    if !exceedances[0].is_finite() {
        return Err(Refusal::Range);
    }
    let mut tail = match options.method {
        Method::Bayes => bayes(sample, options, &exceedances)?,
        Method::Profile => profile(sample, options, threshold, &exceedances)?,
    };
    // What ties at the best rests on no tail.
    let is_saturated = tail.notes.iter().any(|note| matches!(note, Diagnostic::Saturated { .. }));
    if exceedances.len() < DEPTH && !is_saturated {
        tail.notes.insert(0, Diagnostic::Few { exceedances: exceedances.len(), enough: DEPTH });
    }
    if straight_only.is_some() {
        // It says so.
        tail.notes.retain(|note| !matches!(note, Diagnostic::NotLinear { .. }));
    }
    tail.notes.splice(0..0, dropped.into_iter().chain(straight_only));
    if 2 * distinct < sample.n() {
        tail.notes.push(Diagnostic::Atoms { distinct, n: sample.n() });
    }
    finish(sample, options, threshold, exceedances.len(), tail)
}

/// How many values tie at the best, if that shows a saturated resource. That needs five or more,
/// and five times as many as share a value just below. On a population of atoms, or with a coarse
/// measurement, all values tie, which says nothing of the best.
fn saturated(sample: &Sample) -> Option<usize> {
    let ties = sample.ties();
    let next = sample.distinct().get(1..=DEPTH.min(sample.distinct().len() - 1))?;
    let below = sample.descending()[ties..]
        .iter()
        .take_while(|value| next.last().is_some_and(|last| *value >= last))
        .count();
    (ties >= SATURATED && ties * next.len() >= 5 * below).then_some(ties)
}

/// The posterior at the usual depth, with what the other depths and the likelihood alone say.
fn bayes(sample: &Sample, options: &Options, exceedances: &[f64]) -> Result<TailEnd, Refusal> {
    let posterior = TailEndPosterior::new(exceedances).ok_or(Refusal::Range)?;
    let mut notes = Vec::new();
    if let Some(ties) = saturated(sample) {
        notes.push(Diagnostic::Saturated { ties });
        let at = exceedances[0];
        return Ok(TailEnd {
            shape: -posterior.k,
            scale: posterior.scale,
            middle: at,
            low: at,
            high: Some(at),
            notes,
        });
    }
    if options.threshold.is_none() {
        let distinct = sample.distinct();
        let margins =
            DEPTHS.iter().filter(|&&depth| depth <= distinct.len() / 4).filter_map(|&depth| {
                let deep = Estimator::Bayes.exceedances(sample, distinct[depth]);
                Some(TailEndPosterior::new(&deep)?.quantile(options.confidence) - deep[0])
            });
        let (least, most) =
            margins.fold((f64::INFINITY, 0.0), |(l, m), margin| (margin.min(l), margin.max(m)));
        let ratio = most / least;
        if ratio.is_finite() && ratio > UNSTABLE {
            notes.push(Diagnostic::Unstable { ratio });
        }
    }
    if let Some(Fit { gpd, .. }) = fit(exceedances).filter(|fit| fit.gpd.shape() >= 0.0) {
        notes.push(Diagnostic::PriorDriven { shape: gpd.shape() });
    }
    Ok(TailEnd {
        shape: -posterior.k,
        scale: posterior.scale,
        middle: posterior.quantile(0.5),
        low: exceedances[0],
        high: Some(posterior.quantile(options.confidence)),
        notes,
    })
}

/// Maximum likelihood and the interval of the profile.
fn profile(
    sample: &Sample,
    options: &Options,
    threshold: f64,
    exceedances: &[f64],
) -> Result<TailEnd, Refusal> {
    let count = exceedances.len();
    let fitted = fit(exceedances).ok_or(Refusal::NoMaximum { threshold, exceedances: count })?;
    let (shape, scale) = (fitted.gpd.shape(), fitted.gpd.scale());
    let no_end = Refusal::NoEnd { threshold, exceedances: count, shape, scale };
    let end = fitted.gpd.end().ok_or(no_end)?;
    let (low, high) =
        ProfileLikelihood::new(exceedances, &fitted).ok_or(no_end)?.interval(options.confidence);
    let mut notes = Vec::new();
    let fraction = count as f64 / sample.n() as f64;
    if fraction > mean_excess::CAP {
        notes.push(Diagnostic::ThresholdLow { fraction });
    }
    let r_squared = mean_excess::r_squared_above(sample, threshold);
    if !mean_excess::straight(r_squared) {
        notes.push(Diagnostic::NotLinear { r_squared });
    }
    Ok(TailEnd { shape, scale, middle: end, low, high, notes })
}

/// Puts the tail on the threshold, applies the hard bound, and makes the gaps.
fn finish(
    sample: &Sample,
    options: &Options,
    threshold: f64,
    exceedances: usize,
    tail: TailEnd,
) -> Result<BoundEstimate, Refusal> {
    let best = sample.best().ok_or(Refusal::Empty { dropped: sample.dropped() })?;
    let mut notes = tail.notes;
    let high = tail.high.map(|high| (threshold + high).max(best)).filter(|high| high.is_finite());
    let mut upb = (threshold + tail.middle).max(best);
    let cap = options.cap.filter(|&cap| {
        if cap < best {
            notes.push(Diagnostic::CapFalsified { cap });
        }
        cap >= best
    });
    let upb_high = match (high, cap) {
        (Some(high), Some(cap)) if cap >= high => Some(high),
        (_, Some(cap)) => {
            notes.push(Diagnostic::CapActive { cap });
            Some(cap)
        }
        (high, None) => high,
    };
    if upb_high.is_none() {
        notes.push(Diagnostic::Unbounded);
    }
    upb = cap.map_or(upb, |cap| upb.min(cap));
    let upb_high = upb_high.map(|high| high.max(upb));
    if !upb.is_finite() || !tail.scale.is_finite() {
        return Err(Refusal::Range);
    }
    let gap =
        |bound: f64| (bound > 0.0).then(|| (bound - best) / bound).filter(|gap| gap.is_finite());
    if gap(upb).is_none() {
        notes.push(Diagnostic::GapUndefined);
    }
    Ok(BoundEstimate {
        n: sample.n(),
        best,
        threshold: Some(threshold),
        exceedances,
        shape: Some(tail.shape),
        scale: Some(tail.scale),
        upb,
        upb_low: (threshold + tail.low).clamp(best, upb),
        upb_high,
        confidence: options.confidence,
        gap: gap(upb),
        gap_high: upb_high.and_then(gap),
        better_fraction: if options.exhausted {
            0.0
        } else {
            better_fraction(sample.n() as u64, options.confidence).unwrap_or(1.0)
        },
        method: options.method.into(),
        diagnostics: notes,
    })
}

#[cfg(test)]
mod tests;

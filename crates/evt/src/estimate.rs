//! The bound: from a sample to the best possible performance, or to the reason why there is none.

use crate::bayes::Posterior;
use crate::diagnostic::Limit;
use crate::profile::Profile;
use crate::{Diagnostic, Fit, Refusal, Sample, better_fraction, fit, mean_excess};
use serde::{Deserialize, Serialize};

/// Different values below which nothing is said.
const LEAST_DISTINCT: usize = 40;
/// Exceedances below which nothing is fitted.
const LEAST_EXCEEDANCES: usize = 10;
/// Exceedances the Bayesian estimator uses: few enough to lie deep in the tail, whatever the sample size.
const DEPTH: usize = 50;
/// The depths at which its upper end is compared.
const DEPTHS: [usize; 3] = [25, DEPTH, 100];
/// Ratio of (upper - best) between depths above which the estimate is unstable.
const UNSTABLE: f64 = 2.5;
/// Ties at the best from which a resource counts as saturated, where the values below tie five times less.
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
    /// The exceedances over `threshold` that the estimator fits, largest first. The published one takes every value; the
    /// Bayesian one different values, since equal ones carry no information on a continuous tail.
    pub(crate) fn exceedances(self, sample: &Sample, threshold: f64) -> Vec<f64> {
        let values = if self == Self::Bayes { sample.distinct() } else { sample.descending() };
        values.iter().take_while(|&&value| value > threshold).map(|value| value - threshold).collect()
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
    /// Of the interval, at least 0.5 and below 1. Bayes spends all of it on the upper end, the published method on both.
    pub confidence: f64,
    /// A performance that cannot be exceeded, as a line rate or the sum of what the instances reach alone.
    pub cap: Option<f64>,
    /// The threshold, instead of the method's own choice.
    pub threshold: Option<f64>,
    /// Every assignment is in the sample.
    pub exhausted: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { method: Method::default(), confidence: 0.95, cap: None, threshold: None, exhausted: false }
    }
}

/// The best possible performance, as far as a sample tells. In the unit of the sample but for shape and shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
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
    /// The upper performance bound: u - scale/shape at the maximum of the likelihood, or the posterior median; at least `best`.
    pub upb: f64,
    /// Lower end of its interval, at least `best`: a measured value cannot be above the bound.
    pub upb_low: f64,
    /// Upper end of its interval, at least `upb`; `None` where it is infinite.
    pub upb_high: Option<f64>,
    /// Of the interval.
    pub confidence: f64,
    /// (upb - best) / upb; `None` where upb is not above zero.
    pub gap: Option<f64>,
    /// (upb_high - best) / upb_high; `None` where that is infinite or not above zero.
    pub gap_high: Option<f64>,
    /// With `confidence`, at most this share of all assignments beats the best, whatever the distribution.
    pub better_fraction: f64,
    /// What gave the result.
    pub method: Estimator,
    /// What has to be known beside the numbers.
    pub diagnostics: Vec<Diagnostic>,
}

impl Estimate {
    /// Whether a performance measured later proves the estimate wrong. Report it; do not move the bound silently.
    pub fn is_falsified_by(&self, later: f64) -> bool {
        self.upb_high.is_some_and(|high| later > high)
    }
}

/// A tail's end before hard bounds: distances from the threshold.
struct Tail {
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
pub fn estimate(sample: &Sample, options: &Options) -> Result<Estimate, Refusal> {
    if !(0.5..1.0).contains(&options.confidence) {
        return Err(Refusal::Confidence(options.confidence));
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
        let tail = Tail { shape: 0.0, scale: 0.0, middle: 0.0, low: 0.0, high: Some(0.0), notes };
        let exact = finish(sample, options, best, 0, tail)?;
        return Ok(Estimate { threshold: None, shape: None, scale: None, method: Estimator::Exact, ..exact });
    }
    if best == worst {
        return Err(Refusal::Constant { value: best, n: sample.n() });
    }
    let distinct = sample.distinct().len();
    if distinct < LEAST_DISTINCT {
        return Err(Refusal::TooFew { distinct, n: sample.n(), needed: LEAST_DISTINCT });
    }
    let threshold = match (options.threshold, options.method) {
        (Some(threshold), _) => threshold,
        (None, Method::Bayes) => sample.distinct()[DEPTH.min(distinct / 4)],
        (None, Method::Profile) => {
            mean_excess::choose(sample, LEAST_EXCEEDANCES)
                .ok_or(Refusal::NoThreshold { n: sample.n(), needed: LEAST_EXCEEDANCES })?
                .0
        }
    };
    let exceedances = Estimator::from(options.method).exceedances(sample, threshold);
    if exceedances.len() < LEAST_EXCEEDANCES {
        return Err(Refusal::FewExceedances { threshold, exceedances: exceedances.len(), needed: LEAST_EXCEEDANCES });
    }
    if !exceedances[0].is_finite() {
        return Err(Refusal::Range);
    }
    let mut tail = match options.method {
        Method::Bayes => bayes(sample, options, &exceedances)?,
        Method::Profile => profile(sample, options, threshold, &exceedances)?,
    };
    tail.notes.splice(0..0, dropped);
    if 2 * distinct < sample.n() {
        tail.notes.push(Diagnostic::Atoms { distinct, n: sample.n() });
    }
    finish(sample, options, threshold, exceedances.len(), tail)
}

/// How many values tie at the best, where that is the mark of a saturated resource: five or more, and five times as many as
/// share a value just below. On a population of atoms, or with a coarse measurement, all values tie, which says nothing of the best.
fn saturated(sample: &Sample) -> Option<usize> {
    let ties = sample.ties();
    let next = sample.distinct().get(1..=DEPTH.min(sample.distinct().len() - 1))?;
    let below =
        sample.descending()[ties..].iter().take_while(|value| next.last().is_some_and(|last| *value >= last)).count();
    (ties >= SATURATED && ties * next.len() >= 5 * below).then_some(ties)
}

/// The posterior at the usual depth, with what the other depths and the likelihood alone say.
fn bayes(sample: &Sample, options: &Options, exceedances: &[f64]) -> Result<Tail, Refusal> {
    let posterior = Posterior::new(exceedances).ok_or(Refusal::Range)?;
    let mut notes = Vec::new();
    if let Some(ties) = saturated(sample) {
        notes.push(Diagnostic::Saturated { ties });
        let at = exceedances[0];
        return Ok(Tail { shape: -posterior.k, scale: posterior.scale, middle: at, low: at, high: Some(at), notes });
    }
    if options.threshold.is_none() {
        let distinct = sample.distinct();
        let margins = DEPTHS.iter().filter(|&&depth| depth <= distinct.len() / 4).filter_map(|&depth| {
            let deep = Estimator::Bayes.exceedances(sample, distinct[depth]);
            Some(Posterior::new(&deep)?.quantile(options.confidence) - deep[0])
        });
        let (least, most) = margins.fold((f64::INFINITY, 0.0), |(l, m), margin| (margin.min(l), margin.max(m)));
        let ratio = most / least;
        if ratio.is_finite() && ratio > UNSTABLE {
            notes.push(Diagnostic::Unstable { ratio });
        }
    }
    if let Some(Fit { gpd, .. }) = fit(exceedances).filter(|fit| fit.gpd.shape() >= 0.0) {
        notes.push(Diagnostic::PriorDriven { shape: gpd.shape() });
    }
    Ok(Tail {
        shape: -posterior.k,
        scale: posterior.scale,
        middle: posterior.quantile(0.5),
        low: exceedances[0],
        high: Some(posterior.quantile(options.confidence)),
        notes,
    })
}

/// Maximum likelihood and the interval of the profile.
fn profile(sample: &Sample, options: &Options, threshold: f64, exceedances: &[f64]) -> Result<Tail, Refusal> {
    let count = exceedances.len();
    let fitted = fit(exceedances).ok_or(Refusal::NoMaximum { threshold, exceedances: count })?;
    let (shape, scale) = (fitted.gpd.shape(), fitted.gpd.scale());
    let no_end = Refusal::NoEnd { threshold, exceedances: count, shape, scale };
    let end = fitted.gpd.end().ok_or(no_end)?;
    let (low, high) = Profile::new(exceedances, &fitted).ok_or(no_end)?.interval(options.confidence);
    let mut notes = Vec::new();
    let fraction = count as f64 / sample.n() as f64;
    if fraction > mean_excess::CAP {
        notes.push(Diagnostic::ThresholdLow { fraction });
    }
    let r_squared = mean_excess::r_squared_above(sample, threshold);
    if !mean_excess::straight(r_squared) {
        notes.push(Diagnostic::NotLinear { r_squared });
    }
    Ok(Tail { shape, scale, middle: end, low, high, notes })
}

/// Puts the tail on the threshold, applies the hard bound, and makes the gaps.
fn finish(
    sample: &Sample,
    options: &Options,
    threshold: f64,
    exceedances: usize,
    tail: Tail,
) -> Result<Estimate, Refusal> {
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
    let gap = |bound: f64| (bound > 0.0).then(|| (bound - best) / bound).filter(|gap| gap.is_finite());
    if gap(upb).is_none() {
        notes.push(Diagnostic::GapUndefined);
    }
    Ok(Estimate {
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
mod tests {
    use super::*;
    use crate::{Curve, plots};
    use proptest::prelude::*;

    /// A sample without luck from a tail that ends at `end`.
    fn tail(n: usize, k: f64, end: f64) -> Vec<f64> {
        (0..n).map(|i| end - 3.0 * ((i as f64 + 0.5) / n as f64).powf(k)).collect()
    }

    fn ask(values: &[f64], options: Options) -> Result<Estimate, Refusal> {
        estimate(&Sample::new(values.iter().copied()), &options)
    }

    const PROFILE: Options =
        Options { method: Method::Profile, confidence: 0.95, cap: None, threshold: None, exhausted: false };
    const BAYES: Options = Options { method: Method::Bayes, ..PROFILE };

    #[test]
    fn both_methods_enclose_the_end_of_a_well_behaved_tail() {
        for options in [BAYES, PROFILE] {
            let found = ask(&tail(5000, 0.3, 10.0), options).unwrap();
            assert!(found.best < 10.0 && found.upb_high.unwrap() > 10.0, "{found:?}");
            assert!(found.gap.unwrap() <= found.gap_high.unwrap());
        }
    }

    #[test]
    fn the_published_method_recovers_the_parameters_of_a_tail_without_luck() {
        let found = ask(&tail(100_000, 0.3, 10.0), PROFILE).unwrap();
        assert!((found.upb - 10.0).abs() < 0.02 && (found.shape.unwrap() + 0.3).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn the_published_method_takes_at_most_the_top_five_percent_and_the_bayesian_one_fifty_values() {
        assert_eq!(ask(&tail(5000, 0.3, 10.0), PROFILE).unwrap().exceedances, 250);
        assert_eq!(ask(&tail(5000, 0.3, 10.0), BAYES).unwrap().exceedances, 50);
        assert_eq!(ask(&tail(80, 0.3, 10.0), BAYES).unwrap().exceedances, 20);
    }

    #[test]
    fn a_tail_without_end_is_refused_by_the_published_method_and_flagged_by_the_other() {
        let heavy: Vec<f64> = (0..2000).map(|i| ((f64::from(i) + 0.5) / 2000.0).powf(-0.3)).collect();
        assert!(matches!(ask(&heavy, PROFILE), Err(Refusal::NoEnd { shape, .. }) if shape > 0.2));
        let found = ask(&heavy, BAYES).unwrap();
        assert!(found.diagnostics.iter().any(|d| matches!(d, Diagnostic::PriorDriven { shape } if *shape > 0.0)));
    }

    #[test]
    fn samples_that_support_no_bound_are_refused_with_the_reason() {
        assert_eq!(ask(&[], BAYES), Err(Refusal::Empty { dropped: 0 }));
        assert_eq!(ask(&[f64::NAN, f64::INFINITY], BAYES), Err(Refusal::Empty { dropped: 2 }));
        assert_eq!(ask(&[7.0; 500], BAYES), Err(Refusal::Constant { value: 7.0, n: 500 }));
        assert_eq!(ask(&tail(39, 0.3, 1.0), BAYES), Err(Refusal::TooFew { distinct: 39, n: 39, needed: 40 }));
        assert_eq!(ask(&tail(199, 0.3, 1.0), PROFILE), Err(Refusal::NoThreshold { n: 199, needed: 10 }));
        let spread: Vec<f64> = (0..100).map(|i| if i == 0 { -f64::MAX } else { f64::MAX / f64::from(i) }).collect();
        assert_eq!(ask(&spread, BAYES), Err(Refusal::Range));
        let high = Options { threshold: Some(9.99), ..BAYES };
        assert!(matches!(ask(&tail(100, 0.3, 10.0), high), Err(Refusal::FewExceedances { needed: 10, .. })));
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let values = tail(100, 0.3, 10.0);
        for confidence in [0.0, 0.49, 1.0, f64::NAN] {
            assert!(matches!(ask(&values, Options { confidence, ..BAYES }), Err(Refusal::Confidence(_))));
        }
        let cap = Options { cap: Some(f64::NAN), ..BAYES };
        assert!(matches!(ask(&values, cap), Err(Refusal::NotFinite { option: Limit::Cap, .. })));
    }

    #[test]
    fn a_cap_below_the_estimate_becomes_the_bound_and_one_below_the_best_is_reported_not_used() {
        let values = tail(1000, 0.1, 10.0);
        let free = ask(&values, BAYES).unwrap();
        let middle = 0.5 * (free.best + free.upb);
        let capped = ask(&values, Options { cap: Some(middle), ..BAYES }).unwrap();
        assert_eq!((capped.upb, capped.upb_high), (middle, Some(middle)));
        assert!(capped.diagnostics.contains(&Diagnostic::CapActive { cap: middle }));
        let wrong = ask(&values, Options { cap: Some(1.0), ..BAYES }).unwrap();
        assert_eq!((wrong.upb, wrong.upb_high), (free.upb, free.upb_high));
        assert!(wrong.diagnostics.contains(&Diagnostic::CapFalsified { cap: 1.0 }));
    }

    #[test]
    fn an_exhausted_space_needs_no_estimate() {
        let found = ask(&[3.0, 5.0, 4.0], Options { exhausted: true, ..BAYES }).unwrap();
        assert_eq!(
            (found.upb, found.upb_high, found.gap_high, found.method),
            (5.0, Some(5.0), Some(0.0), Estimator::Exact)
        );
        assert_eq!((found.threshold, found.better_fraction), (None, 0.0));
    }

    #[test]
    fn ties_at_the_best_are_a_saturated_resource() {
        let capped: Vec<f64> = tail(1000, 0.3, 10.0).into_iter().map(|x| x.min(9.0)).collect();
        let found = ask(&capped, BAYES).unwrap();
        assert_eq!((found.best, found.upb, found.upb_high), (9.0, 9.0, Some(9.0)));
        assert!(found.diagnostics.iter().any(|d| matches!(d, Diagnostic::Saturated { ties } if *ties >= 5)));
    }

    #[test]
    fn few_different_values_are_named_as_atoms() {
        let atoms: Vec<f64> = (0..1000).map(|i| f64::from(i % 60).sqrt()).collect();
        let found = ask(&atoms, BAYES).unwrap();
        assert!(found.diagnostics.contains(&Diagnostic::Atoms { distinct: 60, n: 1000 }));
        assert!(!found.diagnostics.iter().any(|d| matches!(d, Diagnostic::Saturated { .. })), "every value ties");
    }

    #[test]
    fn a_low_threshold_is_used_and_flagged() {
        let found = ask(&tail(1000, 0.3, 10.0), Options { threshold: Some(8.0), ..PROFILE }).unwrap();
        assert_eq!(found.threshold, Some(8.0));
        assert!(found.diagnostics.iter().any(|d| matches!(d, Diagnostic::ThresholdLow { .. })));
    }

    #[test]
    fn a_performance_measured_later_falsifies_a_bound_below_it() {
        let found = ask(&tail(1000, 0.3, 10.0), BAYES).unwrap();
        let high = found.upb_high.unwrap();
        assert!(!found.is_falsified_by(high) && found.is_falsified_by(high * 1.000_001));
    }

    #[test]
    fn negative_performances_have_a_bound_but_no_gap() {
        let found = ask(&tail(1000, 0.3, -10.0), BAYES).unwrap();
        assert!(found.upb_high.unwrap() > -10.0 && found.gap.is_none());
        assert!(found.diagnostics.contains(&Diagnostic::GapUndefined));
    }

    #[test]
    fn the_plots_agree_with_the_estimate() {
        let sample = Sample::new(tail(2000, 0.3, 10.0));
        for options in [BAYES, PROFILE] {
            let found = estimate(&sample, &options).unwrap();
            let drawn = plots(&sample, &found);
            assert_eq!(drawn.ecdf.last().map(|p| (p.x, p.y)), Some((found.best, 1.0)));
            assert_eq!((drawn.ecdf.len(), drawn.mean_excess.len()), (2000, 1999));
            assert_eq!(drawn.quantile.len(), found.exceedances);
            let points = match drawn.curve.unwrap() {
                Curve::Profile(points) => {
                    let top = points.iter().max_by(|a, b| a.y.total_cmp(&b.y)).unwrap();
                    assert!((top.x - found.upb).abs() < 0.05 && top.y.abs() < 0.05);
                    points
                }
                Curve::Posterior(points) => points,
            };
            assert!(points.windows(2).all(|p| p[0].x < p[1].x) && points[0].x >= found.best);
        }
    }

    /// Any values: smooth ones, atoms, ties at the top, huge and tiny ones.
    fn anything() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![
            prop::collection::vec(any::<f64>(), 0..300),
            prop::collection::vec(-1e3f64..1e3, 0..600),
            prop::collection::vec((0u8..70).prop_map(f64::from), 0..600),
            prop::collection::vec((0f64..1.0).prop_map(|x| x.min(0.9)), 0..600),
            prop::collection::vec((0f64..1.0).prop_map(|x| 1e16 + (x * 500.0).floor()), 0..600),
        ]
    }

    fn any_options() -> impl Strategy<Value = Options> {
        let method = prop_oneof![Just(Method::Bayes), Just(Method::Profile)];
        let limit = || prop::option::weighted(0.3, -1e3f64..1e3);
        (method, 0.5f64..0.9999, limit(), limit(), prop::bool::weighted(0.1)).prop_map(
            |(method, confidence, cap, threshold, exhausted)| Options { method, confidence, cap, threshold, exhausted },
        )
    }

    proptest! {
        #[test]
        fn every_number_given_is_finite_and_in_order(values in anything(), options in any_options()) {
            if let Ok(found) = ask(&values, options) {
                let high = found.upb_high.unwrap_or(f64::MAX);
                prop_assert!(found.best <= found.upb_low && found.upb_low <= found.upb && found.upb <= high, "{found:?}");
                let numbers = [Some(found.best), found.threshold, found.shape, found.scale, Some(found.upb), found.upb_high,
                    found.gap, found.gap_high, Some(found.better_fraction)];
                prop_assert!(numbers.iter().flatten().all(|x| x.is_finite()), "{found:?}");
                prop_assert!(found.gap.iter().chain(&found.gap_high).all(|gap| (0.0..=1.0).contains(gap)), "{found:?}");
                let drawn = plots(&Sample::new(values), &found);
                let drawn_all = drawn.ecdf.iter().chain(&drawn.mean_excess).chain(&drawn.quantile);
                prop_assert!(drawn_all.clone().all(|p| p.x.is_finite() && p.y.is_finite()));
            }
        }

        #[test]
        fn the_order_of_the_values_does_not_matter(values in anything(), options in any_options(), seed in any::<u64>()) {
            let mut shuffled = values.clone();
            let mut state = seed;
            for i in (1..shuffled.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                shuffled.swap(i, (state >> 33) as usize % (i + 1));
            }
            prop_assert_eq!(format!("{:?}", ask(&values, options)), format!("{:?}", ask(&shuffled, options)));
        }

        #[test]
        fn more_confidence_never_gives_a_lower_upper_end(
            values in prop::collection::vec(0.0f64..100.0, 250..500), low in 0.5f64..0.99, more in 0.0f64..0.5, method in any::<bool>(),
        ) {
            let base = if method { BAYES } else { PROFILE };
            let high = |confidence| ask(&values, Options { confidence, ..base }).map(|f| f.upb_high.unwrap_or(f64::INFINITY));
            if let (Ok(a), Ok(b)) = (high(low), high(low + more * (0.9999 - low))) {
                prop_assert!(b >= a, "{a} {b}");
            }
        }

        #[test]
        fn shift_and_unit_of_the_values_pass_through(
            values in prop::collection::vec(0.0f64..1.0, 250..500), shift in -10.0f64..10.0, unit in 1e-6f64..1e6, method in any::<bool>(),
        ) {
            let base = if method { BAYES } else { PROFILE };
            let moved: Vec<f64> = values.iter().map(|x| unit * (x + shift)).collect();
            match (ask(&values, base), ask(&moved, base)) {
                (Ok(a), Ok(b)) => {
                    // Moved values have lost digits, and the maximum of a flat likelihood magnifies that.
                    prop_assert!((unit * (a.upb + shift) - b.upb).abs() < 1e-4 * unit, "{a:?} {b:?}");
                    match (a.upb_high, b.upb_high) {
                        (Some(x), Some(y)) => prop_assert!((unit * (x + shift) - y).abs() < 1e-3 * unit * (1.0 + x), "{a:?} {b:?}"),
                        (x, y) => prop_assert_eq!(x.is_some(), y.is_some()),
                    }
                }
                (a, b) => prop_assert_eq!(a.is_ok(), b.is_ok(), "{:?} {:?}", a, b),
            }
        }
    }
}

//! The bound that a learned predictor supports.
//!
//! Two factors bound every assignment: the highest prediction, and the largest ratio of performance
//! to prediction near the top. None is better than their product. The highest prediction is found
//! by searching, which costs no measurement. The largest ratio is not known. The ratio of the draws
//! is too small: the best assignment is the best partly because it was underestimated. It is
//! *extrapolated* from a block of draws near the top, by the estimator that otherwise extrapolates
//! performance ([`pinwise_evt`], Bayes). The draws are made after the predictor has learned, and
//! their number is fixed beforehand. Ratios near the top scatter by a fraction of a percent,
//! performances by many percent. So the bound is much narrower.
//!
//! **Noise.** A window's ratio scatters by the predictor's error and by the window's noise. Only
//! the error lifts an assignment. Let the ratios have the variance s², and repeated windows σ². At
//! 95 % the error's variance is at most s² - σ² + 1.645 √(2 s⁴/(n-1) + 2 σ⁴/ν). The extrapolated
//! excess is scaled by the square root of that variance over s. If noise makes a quarter of the
//! variance, the extrapolated tail is that of the noise. Then five standard deviations of the error
//! are taken.
//!
//! **Looks.** A search may look at the bound after every block. Each look is a chance of a lucky
//! stop. So the looks share the allowed error. Each spends half of the rest: 2.5, 1.25, 0.6 % of 5
//! %. This is alpha spending (Lan and DeMets, Biometrika 70, 1983). However many there are,
//! together they are wrong no more often than one would be. If instances alone also give a bound,
//! all looks together have half of that error ([`crate::search::solo_bound`]).
//!
//! **What it assumes.** The predictor is no more wrong about the best assignment than about those
//! drawn. The bound misses a needle: an undrawn arrangement that is far better than its neighbours
//! suggest. So does any sample.

use crate::search::history::History;
use crate::search::learned_predictor::{LearnedPredictor, Modeler};
use crate::statistics::{mean, variance};
use pinwise_evt::{Options, Sample};
use pinwise_prediction::Predictor;
use pinwise_topology::{Assignment, Random, Space};
use std::collections::BTreeMap;

/// Fewer different assignments than this support no bound.
pub(crate) const LEAST: usize = 30;

/// The one-sided 95 % quantile of the normal distribution.
const QUANTILE: f64 = 1.645;

/// If noise makes this share of the ratios' variance, their tail is that of the noise.
const HIDING: f64 = 0.25;

/// Standard deviations of the error that the best assignment may be above its prediction. It is for
/// noise that hides the error's own tail. Of a million assignments with normal errors the largest
/// is 4.9.
const DEVIATIONS: f64 = 5.0;

/// A bound by prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResidualBound {
    /// The best possible performance, at most, at the confidence asked for.
    pub(crate) upper: f64,
    /// The bound by the median of the extrapolation.
    pub(crate) point: f64,
    /// Assignments of the block.
    pub(crate) n: usize,
    /// Standard deviation of performance / prediction over the block.
    pub(crate) scatter: f64,
}

impl ResidualBound {
    /// From the last complete block of steered draws, at the confidence left to it if all blocks
    /// together have `confidence`. `None` if there is none, or if it has too few different
    /// assignments. `known` is a predictor that began anew, and how many windows it learned from.
    pub(crate) fn of(
        history: &History,
        modeler: &Modeler,
        known: Option<(&LearnedPredictor, usize)>,
        space: &Space,
        confidence: f64,
        seed: u64,
    ) -> Option<Self> {
        let (before, block, look) = history.last_block()?;
        let known = known.filter(|(_, windows)| *windows == before.len());
        let model = match known {
            Some((known, _)) => known.clone(),
            None => modeler.learn(&before, &[]).into_iter().next()?,
        };
        let mut drawn: BTreeMap<&Assignment, Vec<f64>> = BTreeMap::new();
        block
            .iter()
            .for_each(|(assignment, value)| drawn.entry(assignment).or_default().push(*value));
        let ratio = |(assignment, values): (&&Assignment, &Vec<f64>)| {
            mean(values) / model.predict(assignment.leaves())
        };
        let ratios: Vec<f64> = drawn.iter().map(ratio).collect();
        if ratios.len() < LEAST {
            return None;
        }
        let (middle, deviation) = (mean(&ratios), variance(&ratios).sqrt());
        let windows = block.len() as f64 / ratios.len() as f64;
        let noise = history.noise().map(|noise| (noise / windows.sqrt(), history.noise_degrees()));
        let share = systematic_share(deviation * deviation, ratios.len(), noise);
        let (point, upper) = extrapolated(&ratios, shared(confidence, look))
            .unwrap_or((f64::INFINITY, f64::INFINITY));
        let seen = before.iter().chain(&block).map(|(assignment, _)| assignment);
        let peak = Self::peak(modeler, &model, seen, space, seed);
        // Too few different ratios make no tail either. An exact predictor has such ratios.
        let of_noise = noise.map_or(0.0, |(noise, _)| noise * noise / (deviation * deviation));
        let hidden = of_noise > HIDING || upper.is_infinite();
        let end = |ratio: f64| {
            let excess =
                if hidden { (ratio - middle).min(DEVIATIONS * deviation) } else { ratio - middle };
            peak * (middle + excess * share)
        };
        Some(Self { upper: end(upper), point: end(point), n: ratios.len(), scatter: deviation })
    }

    /// The highest prediction. Only the question's seed seeds the search for it. So an outcome is a
    /// function of its records.
    fn peak<'a>(
        modeler: &Modeler,
        model: &LearnedPredictor,
        seen: impl Iterator<Item = &'a Assignment>,
        space: &Space,
        seed: u64,
    ) -> f64 {
        let seen = seen.map(|assignment| model.predict(assignment.leaves()));
        seen.fold(modeler.peak(model, space, &mut Random::new(seed)), f64::max)
    }
}

/// The confidence of one of many looks, numbered from 1, that together have `confidence`.
fn shared(confidence: f64, look: u32) -> f64 {
    1.0 - (1.0 - confidence) / 2f64.powi(look.min(30) as i32)
}

/// The largest ratio of all assignments: the median of the posterior, and the limit at the
/// confidence. `None`: there are too few different ratios.
fn extrapolated(ratios: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let options = Options { confidence, ..Options::default() };
    let estimate = pinwise_evt::estimate(&Sample::new(ratios.iter().copied()), &options).ok()?;
    Some((estimate.upb, estimate.upb_high?))
}

/// The upper limit of the standard deviation of the error, as a share of that of the ratios.
/// `noise` is the relative deviation of their noise, with its degrees of freedom.
fn systematic_share(variance: f64, n: usize, noise: Option<(f64, f64)>) -> f64 {
    let Some((noise, degrees)) = noise.filter(|_| variance > 0.0) else { return 1.0 };
    let noise = noise * noise;
    let doubt =
        (2.0 * variance * variance / (n as f64 - 1.0) + 2.0 * noise * noise / degrees).sqrt();
    ((variance - noise + QUANTILE * doubt).max(0.0) / variance).sqrt().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_what_error_there_may_be() {
        let spent: Vec<f64> = (1..=20).map(|look| 1.0 - shared(0.95, look)).collect();
        assert!(
            (spent[0] - 0.025).abs() < 1e-12 && (spent[2] - 0.00625).abs() < 1e-12,
            "{spent:?}"
        );
        let all: f64 = spent.iter().sum();
        assert!(all < 0.05 && all > 0.0499, "{all}");
    }

    #[test]
    fn noise_is_taken_out_only_as_far_as_it_is_known() {
        assert_eq!(systematic_share(1e-4, 150, None), 1.0);
        assert_eq!(systematic_share(1e-4, 150, Some((0.0, 10.0))), 1.0);
        // All noise, well known: what is left is the doubt about the variance, 1.645 sqrt(2/149) =
        // 0.1906.
        let known = systematic_share(1e-4, 150, Some((0.01, 1e9)));
        assert!((known - 0.1906f64.sqrt()).abs() < 1e-3, "{known}");
        assert!(systematic_share(1e-4, 150, Some((0.01, 10.0))) > 1.5 * known);
    }
}

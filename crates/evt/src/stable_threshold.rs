//! A threshold by the stability of the estimate, where the mean excess plot gives none.
//!
//! The plot of a good tail may bend by chance. The longest straight stretch then has a dozen
//! values, which often fit no distribution with an end. A threshold is *stable* if the intervals of
//! all higher ones allow the end that is estimated with it. There must be a higher one with an end.
//! If a lower threshold reached beyond the tail, the estimates would drift apart (Coles, An
//! Introduction to Statistical Modeling of Extreme Values, 2001, section 4.3.4).

use crate::estimate::Estimator;
use crate::profile_likelihood::ProfileLikelihood;
use crate::{Sample, fit, mean_excess};
use std::f64::consts::SQRT_2;

/// Fewer exceedances than this are not tried: their interval allows nearly every end.
const LEAST: usize = 25;

/// The end of a tail above a threshold, and its interval.
struct EndInterval {
    threshold: f64,
    end: f64,
    low: f64,
    high: f64,
}

/// The lowest threshold within the cap that is stable. Each one tried leaves √2 times as many
/// exceedances as the next. `None` if no tail tried has an end.
pub(crate) fn stable_threshold(sample: &Sample, confidence: f64) -> Option<f64> {
    let most = mean_excess::CAP * sample.n() as f64;
    let tried = std::iter::successors(Some(most), |count| Some(count / SQRT_2));
    let ends: Vec<EndInterval> = tried
        .map(|count| count as usize)
        .take_while(|count| *count >= LEAST)
        .filter_map(|count| EndInterval::above(sample, sample.descending()[count], confidence))
        .collect();
    let stable = ends.iter().enumerate().find(|(at, tail)| {
        let higher = &ends[at + 1..];
        !higher.is_empty() && higher.iter().all(|one| (one.low..=one.high).contains(&tail.end))
    });
    stable.map(|(_, tail)| tail.threshold)
}

impl EndInterval {
    fn above(sample: &Sample, threshold: f64, confidence: f64) -> Option<Self> {
        let exceedances = Estimator::Profile.exceedances(sample, threshold);
        let fitted = fit(&exceedances).filter(|_| exceedances.len() >= LEAST)?;
        let end = fitted.gpd.end()?;
        let (low, high) = ProfileLikelihood::new(&exceedances, &fitted)?.interval(confidence);
        let high = high.map_or(f64::INFINITY, |high| threshold + high);
        Some(Self { threshold, end: threshold + end, low: threshold + low, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(sample: &Sample, threshold: f64) -> usize {
        sample.descending().iter().filter(|value| **value > threshold).count()
    }

    #[test]
    fn all_of_a_good_tail_is_used_and_of_another_what_is_above_its_kink() {
        let tail = |n: usize| (0..n).map(move |i| (i as f64 + 0.5) / n as f64);
        let good = Sample::new(tail(5000).map(|u| 10.0 - 3.0 * u.powf(0.3)));
        let threshold = stable_threshold(&good, 0.95).unwrap();
        assert_eq!(above(&good, threshold), 250);
        // The best 60 end steeply. Those below are nearly equal.
        let kinked = tail(60).map(|u| 10.0 - 3.0 * u.powf(0.3));
        let kinked = kinked.chain(tail(4940).map(|u| 6.9 - 0.01 * u));
        let kinked = Sample::new(kinked);
        let threshold = stable_threshold(&kinked, 0.95).unwrap();
        assert!((25..=62).contains(&above(&kinked, threshold)), "{}", above(&kinked, threshold));
        let few = Sample::new(tail(400).map(|u| 10.0 - u));
        assert_eq!(stable_threshold(&few, 0.95), None, "20 values at most");
    }
}

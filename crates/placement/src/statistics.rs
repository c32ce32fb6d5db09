//! Intervals for means and for ratios of paired means.
//!
//! The average is the plain mean, because it gives the throughput in the long run. Windows may fall
//! into two groups (a bistable baseline). A median shows one group and hides the other. A stray
//! window then widens the interval. It does not move a conclusion, since the windows of all ways
//! are interleaved and compared round by round.

use pinwise_figures::{self as figures, Scale};
use serde::{Deserialize, Deserializer, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// With this many times the measurements, a difference is significant with a probability of 80 %.
/// With measurements that just suffice if the estimate stays, the probability is 50 %. For an
/// interval of 95 % it is ((1.96 + 0.84) / 1.96)².
pub(crate) const TIMES_FOR_POWER: f64 = 2.0;

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean performance.
    pub mean: f64,
    /// Lower end of the interval; negative infinity from fewer than 2 values (`null` in JSON).
    #[serde(deserialize_with = "no_low")]
    pub low: f64,
    /// Upper end; infinity from fewer than 2 values (`null` in JSON).
    #[serde(deserialize_with = "no_high")]
    pub high: f64,
    /// The number of measurements.
    pub n: usize,
    /// Confidence of the interval. If one assignment was chosen among several, it is that of all
    /// their intervals together.
    pub confidence: f64,
    /// Standard deviation of the measurements; 0 from fewer than 2.
    pub spread: f64,
}

impl Estimate {
    /// `1.72 M packets/s (95 % interval 1.70 to 1.74 M packets/s, 12 windows)`
    pub fn show(&self, scale: &Scale) -> String {
        format!("{} ({})", self.value(scale), self.interval(scale))
    }

    /// `1.72 M packets/s`: the mean to the digits of its interval.
    pub fn value(&self, scale: &Scale) -> String {
        self.telling(scale).show(self.mean)
    }

    /// The scale with the digits of the interval, for values that are compared with the mean.
    pub fn telling(&self, scale: &Scale) -> Scale {
        scale.telling(self.low, self.high)
    }

    /// `95 % interval 1.70 to 1.74 M packets/s, 12 windows`
    pub fn interval(&self, scale: &Scale) -> String {
        let windows = figures::counted(self.n as u64, "window");
        if !(self.low.is_finite() && self.high.is_finite()) {
            return format!("no interval, {windows}");
        }
        format!(
            "{} interval {}, {windows}",
            figures::percent(self.confidence),
            scale.range(self.low, self.high)
        )
    }
}

/// Reads the lower end of an interval. An end that nothing bounds is `null` in JSON.
pub(crate) fn no_low<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}

/// Reads the upper end, like [`no_low`].
pub(crate) fn no_high<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// The two-sided quantile of Student's t: a share `confidence` of it lies within plus and minus
/// this. Infinite without degrees of freedom.
pub(crate) fn t_quantile(confidence: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squared deviations from the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The unbiased variance; 0 from fewer than 2 values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { squares(values) / (values.len() - 1) as f64 }
}

/// The mean with its t interval; `None` without values.
pub(crate) fn estimate(values: &[f64], confidence: f64) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let (mean, spread) = (mean(values), variance(values).sqrt());
    let half = match values.len() {
        1 => f64::INFINITY,
        n => t_quantile(confidence, (n - 1) as f64) * spread / (n as f64).sqrt(),
    };
    // A performance is not negative; symmetric intervals from few values do not know that.
    let low = if half.is_finite() && mean >= 0.0 { (mean - half).max(0.0) } else { mean - half };
    Some(Estimate { mean, low, high: mean + half, n: values.len(), confidence, spread })
}

/// A ratio of means and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ratio {
    pub(crate) fn half_width(&self) -> f64 {
        self.high - self.value
    }
}

/// The ratio of the means of paired values, numerator first. This is the ratio estimator and its
/// linearized variance (Cochran, Sampling Techniques, 3rd ed., eq. 6.13). Pairing takes out
/// whatever disturbs both alike. `unseen` is variance of the denominator known from elsewhere and
/// not shown by these pairs. `None` from fewer than 2 pairs or a denominator not above 0.
pub(crate) fn ratio(pairs: &[(f64, f64)], unseen: f64, confidence: f64) -> Option<Ratio> {
    ratio_by(|deviations| deviations.len() as f64, pairs, unseen, confidence)
}

/// The same of pairs in the order of time, beside other programs. Pairs count less if neighbours
/// are alike.
pub(crate) fn ratio_beside_load(pairs: &[(f64, f64)], confidence: f64) -> Option<Ratio> {
    ratio_by(effective_count, pairs, 0.0, confidence)
}

/// `count` says how many independent values the deviations are worth.
fn ratio_by(
    count: impl Fn(&[f64]) -> f64,
    pairs: &[(f64, f64)],
    unseen: f64,
    confidence: f64,
) -> Option<Ratio> {
    if pairs.len() < 2 {
        return None;
    }
    let n = pairs.len() as f64;
    let top = pairs.iter().map(|pair| pair.0).sum::<f64>() / n;
    let bottom = pairs.iter().map(|pair| pair.1).sum::<f64>() / n;
    if bottom <= 0.0 {
        return None;
    }
    let value = top / bottom;
    let deviations: Vec<f64> = pairs.iter().map(|(a, b)| a - value * b).collect();
    let variance = deviations.iter().map(|one| one * one).sum::<f64>() / (n - 1.0);
    let deviation = (variance + value * value * unseen).sqrt();
    let n = count(&deviations);
    let half = t_quantile(confidence, n - 1.0) * deviation / (n.sqrt() * bottom);
    Some(Ratio { value, low: (value - half).max(0.0_f64.min(value)), high: value + half })
}

/// How many independent values would show the mean as well as these deviations from it do. The
/// deviations are in the order of time. Another program that is busy for many rounds makes
/// neighbours alike.
///
/// The variance of a mean is that of one value times τ / n. τ is 1 + 2 Σ ρ(k) over all lags.
/// Sums of two neighbouring autocorrelations ρ should be positive and fall. So τ is summed up to
/// the first pair that is not positive (C. J. Geyer, "Practical Markov chain Monte Carlo",
/// Statistical Science 7, 1992, section 3.3). Chance makes τ too large. So independent values count
/// whole, unless ρ(1) is above what 95 % of such series have.
fn effective_count(deviations: &[f64]) -> f64 {
    let n = deviations.len();
    let covariance = |lag: usize| -> f64 {
        deviations.iter().zip(&deviations[lag..]).map(|(one, later)| one * later).sum()
    };
    let own = covariance(0);
    if own <= 0.0 || covariance(1) / own <= QUANTILE_95 / (n as f64).sqrt() {
        return n as f64;
    }
    let (mut tau, mut last) = (-1.0, f64::INFINITY);
    for lag in (0..n - 1).step_by(2) {
        last = ((covariance(lag) + covariance(lag + 1)) / own).min(last);
        if last <= 0.0 {
            break;
        }
        tau += 2.0 * last;
    }
    (n as f64 / f64::max(tau, 1.0)).max(2.0)
}

/// The one-sided quantile of the normal distribution at 95 %.
const QUANTILE_95: f64 = 1.645;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_t_are_those_of_the_tables() {
        for (confidence, degrees, expected) in
            [(0.95, 9.0, 2.262157), (0.99, 4.0, 4.604095), (0.9, 1.0, 6.313752)]
        {
            assert!((t_quantile(confidence, degrees) - expected).abs() < 1e-6);
        }
        assert_eq!(t_quantile(0.95, 0.0), f64::INFINITY);
    }

    #[test]
    fn a_mean_has_the_textbook_interval() {
        let estimate = estimate(&[4.0, 6.0, 8.0], 0.95).unwrap();
        // s = 2, t(0.975, 2) = 4.302653, s / sqrt(3) = 1.154701.
        assert!(
            (estimate.mean - 6.0).abs() < 1e-12 && (estimate.high - 6.0 - 4.968275).abs() < 1e-6
        );
        assert_eq!(super::estimate(&[], 0.95), None);
        assert_eq!(super::estimate(&[1.0], 0.95).unwrap().high, f64::INFINITY);
    }

    #[test]
    fn a_disturbance_of_whole_rounds_does_not_blur_a_paired_ratio() {
        let pairs: Vec<(f64, f64)> =
            [1.0, 0.5, 2.0, 0.7, 1.4].iter().map(|round| (1.1 * round, *round)).collect();
        let ratio = super::ratio(&pairs, 0.0, 0.95).unwrap();
        assert!((ratio.value - 1.1).abs() < 1e-12 && ratio.half_width() < 1e-12);
        assert!(super::ratio(&pairs, 0.01, 0.95).unwrap().half_width() > 0.05);
    }

    /// Another program is busy half of the time, in stretches of 20 rounds on average. It slows the
    /// one way more than the other.
    #[test]
    fn rounds_of_one_burst_count_as_few() {
        let mut random = pinwise_topology::Random::new(3);
        let mut missed = |stay: f64, rounds: usize| {
            let comparisons = 500;
            let missed = (0..comparisons).filter(|_| {
                let mut busy = random.unit() < 0.5;
                let mut pair = || {
                    busy = if random.unit() < stay { busy } else { random.unit() < 0.5 };
                    let (one, other) = if busy { (0.5, 0.7) } else { (1.0, 1.0) };
                    let mut noise = || 1.0 + 0.1 * (random.unit() - 0.5);
                    (one * noise(), other * noise())
                };
                let pairs: Vec<(f64, f64)> = (0..rounds).map(|_| pair()).collect();
                let shown = super::ratio_beside_load(&pairs, 0.95).unwrap();
                shown.low > 1.5 / 1.7 || shown.high < 1.5 / 1.7
            });
            missed.count() * 100 / comparisons
        };
        // As if all were independent: 65 %.
        let in_bursts = missed(0.9, 80);
        assert!(in_bursts <= 30, "{in_bursts} %");
        let independent = missed(0.0, 80);
        assert!(independent <= 8, "{independent} %");
    }

    #[test]
    fn independent_values_count_whole() {
        let mut random = pinwise_topology::Random::new(5);
        let values: Vec<f64> = (0..50).map(|_| random.unit() - 0.5).collect();
        assert_eq!(effective_count(&values), 50.0);
        assert_eq!(effective_count(&[0.0; 5]), 5.0);
        assert_eq!(effective_count(&[-1.0, 1.0]), 2.0);
        let halves: Vec<f64> = (0..50).map(|place| if place < 25 { -1.0 } else { 1.0 }).collect();
        let one_change = effective_count(&halves);
        assert!(one_change < 4.0, "{one_change}");
    }

    #[test]
    fn an_estimate_of_a_cost_is_shown_as_the_cost_with_ordered_ends() {
        let runtime =
            Estimate { mean: 0.5, low: 0.4, high: 0.625, n: 5, confidence: 0.95, spread: 0.1 };
        let scale = Scale::new(&pinwise_measure::Unit::cost("s"), 0.5);
        assert_eq!(runtime.show(&scale), "2.00 s (95 % interval 1.60 to 2.50 s, 5 windows)");
        let alone = Estimate { low: f64::NEG_INFINITY, high: f64::INFINITY, n: 1, ..runtime };
        assert_eq!(alone.show(&scale), "2.00 s (no interval, 1 window)");
    }
}

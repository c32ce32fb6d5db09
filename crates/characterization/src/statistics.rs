//! The interval of a slowdown from few rounds.
//!
//! A slowdown is a ratio, so means and deviations are those of its logarithm. The estimate is the
//! geometric mean over rounds. Three or five rounds say little about how much *this* set of
//! programs varies. But all sets of one reference together say much about how much its slowdowns
//! vary in general. Both are combined as in G. K. Smyth, "Linear models and empirical Bayes
//! methods" (Stat. Appl. Genet. Mol. Biol. 3, 2004). The variance is the weighted mean of the set's
//! variance (weight: rounds - 1) and the common one (weight [`PRIOR`]). Student's t has as many
//! degrees of freedom as both weights together. A bistable set keeps its wide interval. A set whose
//! three rounds agree by luck does not get an interval without width.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Rounds that the common variance is worth.
const PRIOR: f64 = 4.0;
/// Two-sided confidence of intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// An estimate of a positive quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanInterval {
    pub(crate) mean: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

/// The geometric mean of `values` (positive, at least one), with its interval where there are two
/// or more. `common` is the variance of logarithms that sets of this reference have in general.
pub(crate) fn estimate(values: &[f64], common: f64) -> MeanInterval {
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    let own = values.len() as f64 - 1.0;
    if own < 1.0 {
        return MeanInterval { mean: mean.exp(), low: None, high: None };
    }
    let variance = (PRIOR * common + own * variance(values).unwrap_or(0.0)) / (PRIOR + own);
    // The degrees of freedom are at least 5, which the distribution takes.
    let t = StudentsT::new(0.0, 1.0, PRIOR + own)
        .map_or(f64::NAN, |t| t.inverse_cdf(0.5 + CONFIDENCE / 2.0));
    let half = t * (variance / values.len() as f64).sqrt();
    MeanInterval {
        mean: mean.exp(),
        low: Some((mean - half).exp()),
        high: Some((mean + half).exp()),
    }
}

/// The variance of the logarithms of positive values; `None` for fewer than two.
pub(crate) fn variance(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
    (values.len() > 1).then(|| {
        values.iter().map(|value| (value.ln() - mean).powi(2)).sum::<f64>() / (count - 1.0)
    })
}

/// The value that a fraction `q` of a sample does not exceed (nearest rank); `None` of an empty
/// one.
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;

    #[test]
    fn intervals_contain_the_truth_as_often_as_they_say() {
        let mut random = Random::new(5);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        // 400 references of 30 sets of 3 rounds; the truth is 2, the deviation 3 %.
        let mut inside = 0;
        for _ in 0..400 {
            let sets: Vec<Vec<f64>> =
                (0..30).map(|_| (0..3).map(|_| 2.0 * (0.03 * normal()).exp()).collect()).collect();
            let variances: Vec<f64> = sets.iter().filter_map(|set| variance(set)).collect();
            let common = variances.iter().sum::<f64>() / variances.len() as f64;
            let hit = |set: &Vec<f64>| {
                let estimate = estimate(set, common);
                estimate.low.unwrap() <= 2.0 && 2.0 <= estimate.high.unwrap()
            };
            inside += sets.iter().filter(|set| hit(set)).count();
        }
        // 12,000 sets; t with 6 degrees of freedom on a variance that is known better is a little
        // wide.
        let coverage = inside as f64 / 12_000.0;
        assert!((0.95..0.985).contains(&coverage), "{coverage}");
    }

    #[test]
    fn one_round_has_no_interval_and_a_bistable_set_a_wide_one() {
        assert_eq!(estimate(&[2.0], 0.01), MeanInterval { mean: 2.0, low: None, high: None });
        let bistable = estimate(&[1.0, 1.0, 8.0], 1e-6);
        assert!(bistable.low.unwrap() < 1.0 && bistable.high.unwrap() > 4.0, "{bistable:?}");
        let steady = estimate(&[2.0, 2.0, 2.0], 1e-4);
        assert!(steady.low.unwrap() < 1.995, "agreement by luck is not certainty: {steady:?}");
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}

//! Ratios of paired windows by ranks.
//!
//! *Problem.* On a busy machine a few windows are several times slower than the others. Means
//! follow these windows, and so do the intervals of means.
//!
//! *Method.* Each pair gives the logarithm of a ratio. The estimate is the median of all *Walsh
//! averages*. These are the means of each pair of logarithms, and of each one with itself (J. L.
//! Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Annals of Mathematical
//! Statistics 34, 1963). The interval inverts Wilcoxon's signed-rank test (M. Hollander and D. A.
//! Wolfe, Nonparametric Statistical Methods, 2nd ed., section 3.3). One pair, however odd, moves
//! both by one place.
//!
//! The test only needs disturbances that are as likely to hit one window of a pair as the other.
//! Windows in random order within a round have that by design.
//!
//! *Limits.* The fewest pairs that give an interval at all are 6 for 95 % and 8 for 98.75 %. A
//! disturbance that slows one way more than the other counts as part of the ratio.

use crate::statistics::Ratio;

/// The ratio of paired values, numerator first, with its interval. A pair shows nothing if both
/// values are 0 or less. `None`: there are too few others for an interval of this confidence.
pub(crate) fn ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<Ratio> {
    let shown = pairs.iter().filter(|(top, bottom)| top.max(*bottom) > 0.0);
    let logs: Vec<f64> =
        shown.map(|(top, bottom)| top.max(0.0).ln() - bottom.max(0.0).ln()).collect();
    let outside = outside(logs.len(), 1.0 - confidence).checked_sub(1)?;
    let mut averages: Vec<f64> = (0..logs.len())
        .flat_map(|place| logs[place..].iter().map(move |&other| (place, other)))
        .map(|(place, other)| average(logs[place], other))
        .collect();
    averages.sort_by(f64::total_cmp);
    let last = averages.len() - 1;
    let middle = average(averages[last / 2], averages[last.div_ceil(2)]);
    let (low, high) = (averages[outside].exp(), averages[last - outside].exp());
    // If many windows of one way are empty, the ratio is not a number that one can use.
    middle.is_finite().then(|| Ratio { value: middle.exp(), low, high })
}

/// The mean of two logarithms, also of infinite ones. Of opposite infinities it is 0.
fn average(one: f64, other: f64) -> f64 {
    let mean = one / 2.0 + other / 2.0;
    if mean.is_nan() { 0.0 } else { mean }
}

/// The rank of an interval's ends among the Walsh averages of `pairs`, counted from both ends. The
/// interval leaves out the averages of lower rank. 0: no interval is that sure. `error` is
/// the probability that the truth is outside.
fn outside(pairs: usize, error: f64) -> usize {
    // The probability of each sum of ranks, if each rank counts with probability 1/2.
    let mut chance = vec![1.0];
    for rank in 1..=pairs {
        chance.resize(chance.len() + rank, 0.0);
        for sum in (0..chance.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| chance[rest]);
            chance[sum] = (chance[sum] + with) / 2.0;
        }
    }
    let mut tail = 0.0;
    let within = |chance: &&f64| {
        tail += **chance;
        // A sum of exact fractions, but for rounding.
        tail <= error / 2.0 * (1.0 + 1e-9)
    };
    chance.iter().take_while(within).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_tables() {
        // The largest sum whose two-sided probability is at most the error, and one
        // (Hollander and Wolfe, table A.4; F. Wilcoxon, 1945, table II).
        for (pairs, error, sum) in [
            (6, 0.05, 0),
            (8, 0.05, 3),
            (10, 0.05, 8),
            (10, 0.01, 3),
            (20, 0.05, 52),
            (20, 0.01, 37),
        ] {
            assert_eq!(outside(pairs, error), sum + 1, "{pairs} pairs, {error}");
        }
        assert_eq!([outside(5, 0.05), outside(7, 0.0125), outside(8, 0.0125)], [0, 0, 1]);
    }

    /// Hamilton's depression scale of nine patients, before and after (Hollander and Wolfe, example
    /// 3.1). The difference is 0.46 lower, with 96 % between 0.010 and 0.786.
    #[test]
    fn a_published_example_has_its_estimate_and_interval() {
        // In thousandths.
        let before = [1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300];
        let after = [878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290];
        let exp = |thousandths: i32| (f64::from(thousandths) / 1000.0).exp();
        let pairs: Vec<(f64, f64)> =
            before.into_iter().zip(after).map(|(one, other)| (exp(one), exp(other))).collect();
        let Ratio { value, low, high } = ratio(&pairs, 0.96).unwrap();
        for (is, published) in [(value, 0.46), (low, 0.010), (high, 0.786)] {
            assert!((is.ln() - published).abs() < 1e-3, "{value} {low} {high}");
        }
    }

    #[test]
    fn one_odd_pair_decides_nothing() {
        let mut pairs: Vec<(f64, f64)> =
            (0..20).map(|place| (1.1 + 0.001 * f64::from(place % 5), 1.0)).collect();
        let before = ratio(&pairs, 0.98).unwrap();
        pairs[3].0 = 0.001;
        let after = ratio(&pairs, 0.98).unwrap();
        assert!((after.value - before.value).abs() < 0.001 && after.low > 1.0, "{after:?}");
        pairs[3] = (0.0, 1.0);
        assert!(ratio(&pairs, 0.98).unwrap().low > 1.0, "a window in which nothing got done");
    }

    #[test]
    fn few_pairs_have_no_interval() {
        assert_eq!(ratio(&[(2.0, 1.0); 7], 0.9875), None);
        assert!(ratio(&[(2.0, 1.0); 8], 0.9875).is_some());
        assert_eq!(ratio(&[(0.0, 0.0); 9], 0.95), None);
        assert_eq!(ratio(&[(1.0, 0.0); 9], 0.95), None, "never infinite");
    }
}

//! The published estimator: maximum likelihood and the profile likelihood of the end.
//!
//! optimal-assignment-evt, section 3.3.2, steps 3 and 4. The likelihood is written in (shape, UPB).
//! Its maximum over the shape for each UPB is the profile L*(UPB), here in closed form. Let a = UPB
//! - u and S(a) = sum ln(1 - y/a). The best k = -shape is -S/m, at most 1: beyond that the
//!   likelihood has no maximum. So L* = -m ln(k a) + (1/k - 1) S. By Wilks' theorem, L* bounds the
//!   interval at confidence c. It is where L* is within half the c-quantile of chi-square (1 degree
//!   of freedom) of its maximum. As UPB grows, L* tends to the likelihood of the exponential
//!   distribution. If that is inside, the interval has no upper end.

use crate::Fit;
use crate::log_product::log_product;
use statrs::distribution::{ContinuousCDF, Normal};

/// The profile of the end of a tail; distances are from the threshold.
pub(crate) struct ProfileLikelihood {
    /// Exceedances over the largest.
    z: Vec<f64>,
    largest: f64,
    /// L* at its maximum, for z.
    top: f64,
    /// Where a = largest (1 + e^t) takes the maximum.
    t: f64,
}

/// The range of t searched for the ends of the interval. Below, the end is the largest exceedance
/// to the last digit; above, the distribution is exponential to 7 digits.
const T: (f64, f64) = (-36.0, 36.0);

impl ProfileLikelihood {
    /// From exceedances and their fit, whose shape is below 0.
    pub(crate) fn new(exceedances: &[f64], fit: &Fit) -> Option<Self> {
        let largest = exceedances.iter().copied().fold(0.0, f64::max);
        let excess = fit.gpd.end()? / largest - 1.0;
        let z = exceedances.iter().map(|y| y / largest).collect();
        let mut profile =
            Self { z, largest, top: 0.0, t: excess.max(f64::MIN_POSITIVE).ln().clamp(T.0, T.1) };
        profile.top = profile.at(profile.t);
        Some(profile)
    }

    /// L* at a = largest (1 + e^t).
    fn at(&self, t: f64) -> f64 {
        let m = self.z.len() as f64;
        let excess = t.exp();
        let end = 1.0 + excess;
        // Two ways to write ln(1 - z/a): the first keeps its digits near the largest value, the
        // second far away.
        let sum: f64 = if t < 0.0 {
            log_product(self.z.iter().map(|z| ((1.0 - z) + excess) / end))
        } else {
            self.z.iter().map(|z| (-z / end).ln_1p()).sum()
        };
        let k = (-sum / m).min(1.0);
        -m * (k * end).ln() + (1.0 / k - 1.0) * sum
    }

    /// The interval of the end at `confidence`. Its lower end is at least the largest exceedance,
    /// its upper `None` if L* never falls low enough.
    pub(crate) fn interval(&self, confidence: f64) -> (f64, Option<f64>) {
        // The root of a chi-square variable with one degree of freedom is a normal one, both sides.
        let half = Normal::standard().inverse_cdf(0.5 * (1.0 + confidence));
        let level = self.top - 0.5 * half * half;
        let mean = self.z.iter().sum::<f64>() / self.z.len() as f64;
        let exponential = -(self.z.len() as f64) * (mean.ln() + 1.0);
        let low = if self.at(T.0) > level { self.largest } else { self.crossing(T.0, level) };
        let high = (exponential < level).then(|| self.crossing(T.1, level));
        (low, high)
    }

    /// The end between the maximum and `outside` where L* falls to `level`.
    fn crossing(&self, mut outside: f64, level: f64) -> f64 {
        let mut inside = self.t;
        for _ in 0..60 {
            let middle = 0.5 * (inside + outside);
            if self.at(middle) > level { inside = middle } else { outside = middle }
        }
        self.largest * (1.0 + inside.exp())
    }

    /// (distance from the threshold, L* below its maximum) from the largest exceedance to well
    /// beyond the interval.
    pub(crate) fn curve(&self, confidence: f64) -> Vec<(f64, f64)> {
        const POINTS: usize = 200;
        let (_, high) = self.interval(confidence);
        // Without an upper end: ten times as far as the estimate shows how flat it is.
        let far = high.map_or(10.0 * self.t.exp(), |high| 2.0 * (high / self.largest - 1.0));
        let near = (self.t - 8.0).max(T.0);
        (0..POINTS)
            .map(|i| {
                let t = near + (far.ln() - near) * i as f64 / (POINTS - 1) as f64;
                (self.largest * (1.0 + t.exp()), self.at(t) - self.top)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gpd, fit};

    fn exceedances(shape: f64, m: usize) -> Vec<f64> {
        let gpd = Gpd::new(shape, 1.0).unwrap();
        (0..m).map(|i| gpd.quantile((i as f64 + 0.5) / m as f64).unwrap()).collect()
    }

    /// L* by definition: the best of a fine scan of shapes.
    fn scanned(y: &[f64], end: f64) -> f64 {
        (1..=4000)
            .map(|i| {
                Gpd::new(-f64::from(i) / 4000.0, end * f64::from(i) / 4000.0)
                    .unwrap()
                    .log_likelihood(y)
            })
            .fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn the_interval_ends_where_the_scanned_likelihood_has_fallen_by_half_the_quantile() {
        let y = exceedances(-0.4, 200);
        let found = fit(&y).unwrap();
        let (low, high) = ProfileLikelihood::new(&y, &found).unwrap().interval(0.95);
        // The 0.95 quantile of chi-square with 1 degree of freedom is 3.841459.
        for end in [low, high.unwrap()] {
            assert!(
                (found.log_likelihood - scanned(&y, end) - 3.841_459 / 2.0).abs() < 1e-3,
                "{end}"
            );
        }
        assert!(low < found.gpd.end().unwrap() && found.gpd.end().unwrap() < high.unwrap());
    }

    #[test]
    fn a_short_tail_close_to_exponential_has_no_upper_end() {
        let y = exceedances(-0.1, 50);
        let profile = ProfileLikelihood::new(&y, &fit(&y).unwrap()).unwrap();
        assert_eq!(profile.interval(0.95).1, None);
        assert!(profile.curve(0.95).iter().all(|p| p.0.is_finite() && p.1 <= 1e-9));
    }
}

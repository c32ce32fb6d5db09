//! The end of the tail as a posterior distribution.
//!
//! The maximum of the likelihood says little from 50 values: on half the samples it lies at an
//! infinite end. A prior on the tail index k = -shape settles that. It is log-normal with median
//! 0.12 and standard deviation 0.5 in the logarithm. That is wide enough for all assignment spaces
//! tried (docs/method/bound.md). The prior on the scale is 1/scale, which prefers none.
//!
//! Let a = scale/k, the distance from the threshold to the end, and S(a) = sum ln(1 - y/a). The
//! log-likelihood of m exceedances is -m ln(k a) + (1/k - 1) S(a). One sum per a serves every k, so
//! the posterior of the end costs a few thousand logarithms. The end is laid out as a = max(y) (1 +
//! e^t) for evenly spaced t.

use crate::log_product::log_product;

/// Median of the prior on k.
const PRIOR_MEDIAN: f64 = 0.12;
/// Standard deviation of the prior on ln k.
const PRIOR_SPREAD: f64 = 0.5;
/// Least and largest k of the grid. They are 5.4 standard deviations below the prior's median, and
/// just before the density stops vanishing at the end.
const K: (f64, f64) = (0.008, 0.98);
/// Points of the grid in ln k.
const K_POINTS: usize = 70;
/// Least and largest t. Below, the end is the largest exceedance to 5 digits; above, it is farther
/// than the least k reaches.
const T: (f64, f64) = (-12.0, 8.0);
/// Points of the grid in t.
const T_POINTS: usize = 256;

/// The posterior of the end of a tail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TailEndPosterior {
    /// Largest exceedance.
    largest: f64,
    /// Posterior probability per step of t, summing to 1.
    weights: Vec<f64>,
    /// Posterior mean of k.
    pub(crate) k: f64,
    /// Posterior mean of the scale.
    pub(crate) scale: f64,
}

impl TailEndPosterior {
    /// From exceedances, finite and above 0. `None` if their differences underflow, or there are
    /// none.
    pub(crate) fn new(exceedances: &[f64]) -> Option<Self> {
        let largest = exceedances.iter().copied().fold(0.0, f64::max);
        if !largest.is_normal() {
            return None;
        }
        let z: Vec<f64> = exceedances.iter().map(|y| y / largest).collect();
        let m = z.len() as f64;
        let step = (K.1 / K.0).ln() / (K_POINTS - 1) as f64;
        let k_grid: Vec<(f64, f64)> = (0..K_POINTS)
            .map(|i| {
                let log_k = K.0.ln() + step * i as f64;
                let deviation = (log_k - PRIOR_MEDIAN.ln()) / PRIOR_SPREAD;
                // The part of the log posterior that does not depend on the end.
                (log_k.exp(), -0.5 * deviation * deviation - m * log_k)
            })
            .collect();
        let logs: Vec<f64> = (0..T_POINTS)
            .flat_map(|i| {
                let excess = at(i).exp();
                let end = 1.0 + excess;
                // Written so that nothing cancels where z = 1 and the excess is small.
                let sum = log_product(z.iter().map(|z| ((1.0 - z) + excess) / end));
                // The prior 1/scale is, at a fixed k, da/a = e^t/(1 + e^t) dt.
                let constant = -m * end.ln() + at(i) - end.ln();
                k_grid.iter().map(move |(k, prior)| prior + constant + (1.0 / k - 1.0) * sum)
            })
            .collect();
        let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !highest.is_finite() {
            return None;
        }
        let (mut weights, mut total, mut k_sum, mut scale_sum) =
            (Vec::with_capacity(T_POINTS), 0.0, 0.0, 0.0);
        for (i, row) in logs.chunks_exact(K_POINTS).enumerate() {
            let mut weight = 0.0;
            // Less than e^-40 of the highest point adds nothing to 16 digits.
            for (log, (k, _)) in row.iter().zip(&k_grid).filter(|(log, _)| **log > highest - 40.0) {
                let density = (log - highest).exp();
                weight += density;
                k_sum += density * k;
                scale_sum += density * k * (1.0 + at(i).exp());
            }
            weights.push(weight);
            total += weight;
        }
        weights.iter_mut().for_each(|weight| *weight /= total);
        Some(Self { largest, weights, k: k_sum / total, scale: largest * scale_sum / total })
    }

    /// The distance from the threshold to the end that is not exceeded with probability `p`. It is
    /// at least the largest exceedance, and rises with `p`.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let mut below = 0.0;
        for (i, weight) in self.weights.iter().enumerate() {
            if below + weight >= p && *weight > 0.0 {
                // The mass of a grid point lies evenly between the middles to its neighbours.
                let t = at(i) + spacing() * ((p - below) / weight - 0.5);
                return self.largest * (1.0 + t.exp());
            }
            below += weight;
        }
        self.largest * (1.0 + T.1.exp())
    }

    /// (distance from the threshold, density, probability below) where the density is worth
    /// drawing.
    pub(crate) fn curve(&self) -> Vec<(f64, f64, f64)> {
        let mut below = 0.0;
        let mut points = Vec::new();
        for (i, weight) in self.weights.iter().enumerate() {
            let before = below;
            below += weight;
            if below > 1e-4 && before < 1.0 - 1e-4 {
                let per_unit = spacing() * at(i).exp() * self.largest;
                points.push((
                    self.largest * (1.0 + at(i).exp()),
                    weight / per_unit,
                    before + 0.5 * weight,
                ));
            }
        }
        points
    }
}

fn spacing() -> f64 {
    (T.1 - T.0) / (T_POINTS - 1) as f64
}

/// The i-th value of t.
fn at(i: usize) -> f64 {
    T.0 + spacing() * i as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpd;

    fn exceedances(shape: f64, m: usize) -> Vec<f64> {
        let gpd = Gpd::new(shape, 1.0).unwrap();
        (0..m).map(|i| gpd.quantile((i as f64 + 0.5) / m as f64).unwrap()).collect()
    }

    /// The same posterior on a plain grid in (k, ln scale), written as its definition. It is slow
    /// and has none of the algebra.
    fn brute_force(y: &[f64], p: f64) -> f64 {
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        let largest = y.iter().copied().fold(0.0, f64::max);
        let mut cells = Vec::new();
        for i in 0..400 {
            let k = 0.008 * (0.98f64 / 0.008).powf(f64::from(i) / 399.0);
            for j in 0..900 {
                let scale = mean * (-2.5 + 5.0 * f64::from(j) / 899.0).exp();
                if scale / k > largest {
                    let prior = -0.5 * ((k / 0.12).ln() / 0.5).powi(2);
                    let gpd = Gpd::new(-k, scale).unwrap();
                    cells.push((scale / k, prior + gpd.log_likelihood(y)));
                }
            }
        }
        let top = cells.iter().map(|c| c.1).fold(f64::NEG_INFINITY, f64::max);
        cells.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = cells.iter().map(|c| (c.1 - top).exp()).sum();
        let mut below = 0.0;
        for (end, log) in cells {
            below += (log - top).exp() / total;
            if below >= p {
                return end;
            }
        }
        f64::NAN
    }

    #[test]
    fn the_quantiles_are_those_of_a_plain_grid() {
        for shape in [-0.4, -0.15, -0.05, 0.1] {
            let y = exceedances(shape, 50);
            let posterior = TailEndPosterior::new(&y).unwrap();
            for p in [0.5, 0.9, 0.95, 0.99] {
                let (fast, slow) = (posterior.quantile(p), brute_force(&y, p));
                assert!((fast / slow - 1.0).abs() < 0.005, "shape {shape}, p {p}: {fast} {slow}");
            }
        }
    }

    #[test]
    fn the_density_to_draw_encloses_the_probability() {
        let posterior = TailEndPosterior::new(&exceedances(-0.2, 50)).unwrap();
        let curve = posterior.curve();
        let area: f64 = curve.windows(2).map(|p| 0.5 * (p[0].1 + p[1].1) * (p[1].0 - p[0].0)).sum();
        assert!((area - 1.0).abs() < 0.01, "{area}");
        let median = curve.iter().find(|p| p.2 >= 0.5).unwrap().0;
        assert!((median / posterior.quantile(0.5) - 1.0).abs() < 0.05);
    }

    #[test]
    fn nothing_to_fit_gives_no_posterior() {
        assert_eq!(TailEndPosterior::new(&[]), None);
        assert_eq!(TailEndPosterior::new(&[1e-310, 1e-309]), None);
    }
}

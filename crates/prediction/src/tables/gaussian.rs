//! Interpolation that says how sure it is: a Gaussian process over counts of co-runners.
//!
//! **Model.** The function is 0 where nothing is counted, and elsewhere a straight trend plus a
//! smooth deviation. Let x and x' be two rows of counts. The covariance of the values there is s²
//! (λ x·x' + exp(-Σ (x_i - x'_i)² / 2 l_i²)). The counts of each level have one length l. **Fit.**
//! Given the lengths, λ and the noise, s² has a closed form. The marginal likelihood chooses these
//! from a fixed ladder. See Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006,
//! sections 2.2 and 5.4.1.

use crate::learned::ridge::{Cholesky, dot};

/// Lengths tried, in co-runners.
const LENGTHS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];
/// Shares of the trend tried.
const TRENDS: [f64; 3] = [0.01, 0.1, 1.0];
/// Variances of one measurement tried, as a share of s².
const NOISES: [f64; 3] = [1e-5, 1e-3, 3e-2];
/// More levels than this have one length in common: the ladder grows with every one.
const MOST_LEVELS: usize = 3;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Gaussian {
    rows: Vec<Vec<f64>>,
    shape: LadderShape,
    /// The covariance matrix times this is the values.
    weights: Vec<f64>,
    factor: Cholesky,
    variance: f64,
}

/// What the ladder is climbed for.
#[derive(Clone, Debug)]
struct LadderShape {
    /// By count.
    lengths: Vec<f64>,
    trend: f64,
    noise: f64,
}

impl LadderShape {
    fn covariance(&self, a: &[f64], b: &[f64]) -> f64 {
        let apart: f64 = a
            .iter()
            .zip(b)
            .zip(&self.lengths)
            .map(|((a, b), length)| ((a - b) / length).powi(2))
            .sum();
        self.trend * dot(a, b) + (-0.5 * apart).exp()
    }
}

impl Gaussian {
    /// From rows of counts and values; `levels` has the level of every count, from 0. `None` from
    /// no rows.
    pub(crate) fn fit(rows: &[Vec<f64>], values: &[f64], levels: &[usize]) -> Option<Self> {
        let count = levels.iter().max()? + 1;
        rows.first()?;
        let own = if count > MOST_LEVELS { 1 } else { count };
        let mut best: Option<(f64, Self)> = None;
        for choice in 0..LENGTHS.len().pow(own as u32) {
            let length = |level: &usize| {
                LENGTHS[choice / LENGTHS.len().pow((level % own) as u32) % LENGTHS.len()]
            };
            let lengths: Vec<f64> = levels.iter().map(length).collect();
            for (trend, noise) in
                TRENDS.iter().flat_map(|trend| NOISES.map(|noise| (*trend, noise)))
            {
                let shape = LadderShape { lengths: lengths.clone(), trend, noise };
                if let Some((likelihood, fitted)) = Self::with(shape, rows, values)
                    && best.as_ref().is_none_or(|(best, _)| likelihood > *best)
                {
                    best = Some((likelihood, fitted));
                }
            }
        }
        best.map(|(_, fitted)| fitted)
    }

    /// The logarithm of the marginal likelihood but for a constant, and the fit.
    fn with(shape: LadderShape, rows: &[Vec<f64>], values: &[f64]) -> Option<(f64, Self)> {
        let n = rows.len();
        let mut covariance = vec![0.0; n * n];
        for a in 0..n {
            for b in 0..=a {
                covariance[a * n + b] = shape.covariance(&rows[a], &rows[b]);
            }
            covariance[a * n + a] += shape.noise;
        }
        let factor = Cholesky::new(covariance, n)?;
        let weights = factor.solve(values);
        let variance = (dot(values, &weights) / n as f64).max(1e-12);
        let likelihood = -0.5 * n as f64 * variance.ln() - factor.half_log_determinant();
        Some((likelihood, Self { rows: rows.to_vec(), shape, weights, factor, variance }))
    }

    /// The value expected at a row, and its standard deviation.
    pub(crate) fn predict(&self, row: &[f64]) -> (f64, f64) {
        let near: Vec<f64> =
            self.rows.iter().map(|known| self.shape.covariance(known, row)).collect();
        let explained = self.factor.half_solved_square(&near);
        let left = self.shape.covariance(row, row) + self.shape.noise - explained;
        (dot(&near, &self.weights), (self.variance * left.max(self.shape.noise)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;

    #[test]
    fn it_passes_through_what_is_known_and_doubts_what_is_far() {
        let rows: Vec<Vec<f64>> = [[0, 0], [1, 0], [0, 1], [2, 0], [0, 2], [1, 1]]
            .map(|row| row.map(f64::from).to_vec())
            .to_vec();
        let law = |row: &[f64]| 0.2 * row[0] + 0.1 * row[1] * row[1];
        let values: Vec<f64> = rows.iter().map(|row| law(row)).collect();
        let fitted = Gaussian::fit(&rows, &values, &[0, 1]).unwrap();
        for (row, value) in rows.iter().zip(&values) {
            assert!((fitted.predict(row).0 - value).abs() < 0.02, "{row:?}");
        }
        assert!(fitted.predict(&[8.0, 8.0]).1 > 5.0 * fitted.predict(&[1.0, 1.0]).1);
        assert!(Gaussian::fit(&[], &[], &[0]).is_none());
    }

    #[test]
    fn stated_deviations_are_those_of_rows_left_out() {
        // A kinked law of four counts, like that of a pipe that saturates.
        let law = |row: &[f64]| {
            (0.3 * row[0] + 0.2 * row[1] - 0.4).max(0.0) + 0.05 * row[2] + 0.02 * row[3] * row[0]
        };
        let mut random = Random::new(3);
        let mut draw = || (0..4).map(|_| random.below(4) as f64).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = (0..80).map(|_| draw()).collect();
        let values: Vec<f64> = rows.iter().map(|row| law(row)).collect();
        let fitted = Gaussian::fit(&rows, &values, &[0, 0, 1, 1]).unwrap();
        let left_out: Vec<Vec<f64>> = (0..200).map(|_| draw()).collect();
        let inside = left_out.iter().filter(|row| {
            let (mean, deviation) = fitted.predict(row);
            (mean - law(row)).abs() < 2.0 * deviation
        });
        let share = inside.count() as f64 / 200.0;
        assert!(share > 0.85, "{share}");
        let squares: f64 =
            left_out.iter().map(|row| (fitted.predict(row).0 - law(row)).powi(2)).sum();
        assert!((squares / 200.0).sqrt() < 0.06, "{}", (squares / 200.0).sqrt());
    }
}

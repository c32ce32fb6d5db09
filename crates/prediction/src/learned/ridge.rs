//! Ridge regression: a linear model that stays stable if the sample cannot separate all features.
//!
//! Columns are standardized. The penalty is the one of a fixed ladder with the smallest
//! leave-one-out error. That needs no refits: the residual of a left-out row is e / (1 - h) with
//! its leverage h. Sources: Allen, Technometrics 16, 1974; Hastie, Tibshirani and Friedman, The
//! Elements of Statistical Learning, 2nd ed., sections 3.4.1 and 7.10.

/// Penalties worth trying, as multiples of the number of rows.
pub const PENALTIES: [f64; 7] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// y = intercept + weights · x, with the data for its error.
#[derive(Clone, Debug)]
pub(crate) struct Ridge {
    pub(crate) intercept: f64,
    /// The weight of each feature; 0 for one that never varied.
    pub(crate) weights: Vec<f64>,
    /// Root mean square of the leave-one-out residuals.
    pub(crate) error: f64,
}

impl Ridge {
    /// From rows of features and their values; `None` from fewer than 3 rows, or if nothing
    /// varies.
    pub(crate) fn fit(rows: &[Vec<f64>], values: &[f64]) -> Option<Self> {
        let n = rows.len();
        if n < 3 || values.len() != n {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let columns: Vec<(usize, f64, f64)> = (0..rows[0].len())
            .filter_map(|column| {
                let mean = rows.iter().map(|row| row[column]).sum::<f64>() / n as f64;
                let variance =
                    rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / n as f64;
                (variance > 1e-12 * (1.0 + mean * mean)).then(|| (column, mean, variance.sqrt()))
            })
            .collect();
        let standard: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                columns
                    .iter()
                    .map(|(column, mean, deviation)| (row[*column] - mean) / deviation)
                    .collect()
            })
            .collect();
        let width = columns.len();
        let mut gram = vec![0.0; width * width];
        let mut moments = vec![0.0; width];
        for (row, value) in standard.iter().zip(values) {
            for a in 0..width {
                moments[a] += row[a] * (value - mean);
                for b in 0..=a {
                    gram[a * width + b] += row[a] * row[b];
                }
            }
        }
        let fits = PENALTIES.iter().filter_map(|penalty| {
            let mut penalized = gram.clone();
            (0..width).for_each(|a| penalized[a * width + a] += penalty * n as f64);
            let factor = Cholesky::new(penalized, width)?;
            let weights = factor.solve(&moments);
            let squares: f64 = standard
                .iter()
                .zip(values)
                .map(|(row, value)| {
                    let residual = value - mean - dot(row, &weights);
                    let leverage = 1.0 / n as f64 + dot(row, &factor.solve(row));
                    (residual / (1.0 - leverage).max(1e-9)).powi(2)
                })
                .sum();
            Some((weights, (squares / n as f64).sqrt()))
        });
        let (standardized, error) = fits.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut weights = vec![0.0; rows[0].len()];
        let mut intercept = mean;
        for ((column, mean, deviation), weight) in columns.iter().zip(standardized) {
            weights[*column] = weight / deviation;
            intercept -= weight / deviation * mean;
        }
        error.is_finite().then_some(Self { intercept, weights, error })
    }
}

/// The normal equations of ridge regression. Rows may be taken out again, so a fit without them
/// needs no pass over all others.
///
/// Columns are standardized by all rows. The intercept has no penalty.
#[derive(Clone, Debug)]
pub struct NormalEquations {
    /// Mean and standard deviation of each column; 0 for one that never varied.
    scales: Vec<(f64, f64)>,
    /// Lower triangle of the sums of products, row by row. The first column is that of ones.
    gram: Vec<f64>,
    moments: Vec<f64>,
}

/// y = intercept + weights · x.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearFit {
    /// The value where all features are 0.
    pub intercept: f64,
    /// The weight of each feature; 0 for one that never varied.
    pub weights: Vec<f64>,
}

impl LinearFit {
    /// The value of a row of features.
    pub fn value(&self, row: &[f64]) -> f64 {
        self.intercept + dot(&self.weights, row)
    }
}

impl NormalEquations {
    /// Of rows of features, which are equally long, and their values.
    pub fn of(rows: &[Vec<f64>], values: &[f64]) -> Self {
        let n = rows.len() as f64;
        let scale = |column: usize| {
            let mean = rows.iter().map(|row| row[column]).sum::<f64>() / n;
            let squares: f64 = rows.iter().map(|row| (row[column] - mean).powi(2)).sum();
            let variance = squares / n;
            // Products of small numbers vary little, and that may be all there is.
            (mean, if variance > 1e-20 * mean * mean { variance.sqrt() } else { 0.0 })
        };
        let scales: Vec<(f64, f64)> = (0..rows.first().map_or(0, Vec::len)).map(scale).collect();
        let width = 1 + scales.iter().filter(|(_, deviation)| *deviation > 0.0).count();
        let mut all = Self { scales, gram: vec![0.0; width * width], moments: vec![0.0; width] };
        rows.iter().zip(values).for_each(|(row, value)| all.add(row, *value, 1.0));
        all
    }

    /// Takes a row out.
    pub fn remove(&mut self, row: &[f64], value: f64) {
        self.add(row, value, -1.0);
    }

    fn add(&mut self, row: &[f64], value: f64, times: f64) {
        let varying = row.iter().zip(&self.scales).filter(|(_, (_, deviation))| *deviation > 0.0);
        let standard = varying.map(|(x, (mean, deviation))| (x - mean) / deviation);
        let standard: Vec<f64> = std::iter::once(1.0).chain(standard).collect();
        let width = standard.len();
        for (a, x) in standard.iter().enumerate() {
            self.moments[a] += times * x * value;
            let gram = &mut self.gram[a * width..][..=a];
            gram.iter_mut().zip(&standard).for_each(|(sum, y)| *sum += times * x * y);
        }
    }

    /// The fit with this penalty, a multiple of the number of rows; ordinary least squares with 0.
    /// `None` if the rows do not determine it.
    pub fn solve(&self, penalty: f64) -> Option<LinearFit> {
        let (width, mut penalized) = (self.moments.len(), self.gram.clone());
        let rows = self.gram[0];
        (1..width).for_each(|a| penalized[a * width + a] += penalty * rows);
        // Rounding leaves a little of what is 0.
        let least = 1e-11 * rows;
        let factor = Cholesky::new(penalized, width)?;
        if (0..width).any(|a| factor.lower[a * width + a].powi(2) <= least) {
            return None;
        }
        let solved = factor.solve(&self.moments);
        let (mut intercept, mut next) = (solved[0], solved[1..].iter());
        let mut weight = |&(mean, deviation): &(f64, f64)| {
            let Some(standard) = (deviation > 0.0).then(|| next.next()).flatten() else {
                return 0.0;
            };
            intercept -= standard / deviation * mean;
            standard / deviation
        };
        let weights: Vec<f64> = self.scales.iter().map(&mut weight).collect();
        Some(LinearFit { intercept, weights })
    }
}

/// The solution of a positive definite system whose lower triangle is given, row by row. `None` if
/// the system is not positive definite.
pub(crate) fn solve(matrix: Vec<f64>, right: &[f64], width: usize) -> Option<Vec<f64>> {
    Some(Cholesky::new(matrix, width)?.solve(right))
}

/// The lower triangle L of a positive definite matrix L L'.
#[derive(Clone, Debug)]
pub(crate) struct Cholesky {
    lower: Vec<f64>,
    width: usize,
}

impl Cholesky {
    /// The factor of the matrix whose lower triangle is given, row by row. `None`: it is not
    /// positive definite.
    pub(crate) fn new(mut lower: Vec<f64>, width: usize) -> Option<Self> {
        for row in 0..width {
            for column in 0..=row {
                let known: f64 =
                    (0..column).map(|k| lower[row * width + k] * lower[column * width + k]).sum();
                let rest = lower[row * width + column] - known;
                lower[row * width + column] = if row != column {
                    rest / lower[column * width + column]
                } else if rest > 0.0 {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(Self { lower, width })
    }

    /// x of L L' x = `right`.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        self.back_solve(self.half_solve(right))
    }

    /// x of L' x = `right`.
    pub(crate) fn back_solve(&self, right: Vec<f64>) -> Vec<f64> {
        let (lower, width) = (&self.lower, self.width);
        let mut x = right;
        for row in (0..width).rev() {
            let known: f64 = (row + 1..width).map(|k| lower[k * width + row] * x[k]).sum();
            x[row] = (x[row] - known) / lower[row * width + row];
        }
        x
    }

    /// x of L x = `right`.
    fn half_solve(&self, right: &[f64]) -> Vec<f64> {
        let (lower, width) = (&self.lower, self.width);
        let mut x = right.to_vec();
        for row in 0..width {
            let known = dot(&lower[row * width..][..row], &x[..row]);
            x[row] = (x[row] - known) / lower[row * width + row];
        }
        x
    }

    /// x' x of L x = `right`, which is `right`' (L L')^-1 `right`.
    pub(crate) fn half_solved_square(&self, right: &[f64]) -> f64 {
        self.half_solve(right).iter().map(|x| x * x).sum()
    }

    /// Half the logarithm of the determinant of L L'.
    pub(crate) fn half_log_determinant(&self) -> f64 {
        (0..self.width).map(|row| self.lower[row * self.width + row].ln()).sum()
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;

    fn sample(n: usize, noise: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut random = Random::new(5);
        let rows: Vec<Vec<f64>> =
            (0..n).map(|_| vec![random.unit() * 10.0, random.unit(), 3.0, random.unit()]).collect();
        let values = rows
            .iter()
            .map(|row| 2.0 + 0.5 * row[0] - 4.0 * row[1] + noise * (random.unit() - 0.5))
            .collect();
        (rows, values)
    }

    #[test]
    fn a_linear_law_is_found_and_a_constant_column_is_left_alone() {
        let (rows, values) = sample(60, 0.0);
        let ridge = Ridge::fit(&rows, &values).unwrap();
        let expected = [0.5, -4.0, 0.0, 0.0];
        assert!(
            ridge.weights.iter().zip(expected).all(|(weight, truth)| (weight - truth).abs() < 1e-3),
            "{ridge:?}"
        );
        assert!((ridge.intercept - 2.0).abs() < 1e-3 && ridge.error < 1e-3, "{ridge:?}");
        assert!(Ridge::fit(&rows[..2], &values[..2]).is_none());
    }

    #[test]
    fn equations_without_a_row_are_those_that_never_had_it() {
        let (rows, values) = sample(40, 1.0);
        for penalty in [0.0, 1e-3, 1.0] {
            let mut all = NormalEquations::of(&rows, &values);
            // Least squares without a penalty.
            let fit = all.solve(penalty).unwrap();
            if penalty == 0.0 {
                // Residuals are orthogonal to each feature.
                let mut sums = vec![0.0; 4];
                for (row, value) in rows.iter().zip(&values) {
                    let residual = value - fit.value(row);
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += residual * x);
                }
                assert!(sums.iter().all(|sum: &f64| sum.abs() < 1e-8), "{sums:?}");
            }
            all.remove(&rows[7], values[7]);
            let without = all.solve(penalty).unwrap();
            let kept = |at: &usize| *at != 7;
            let others: Vec<Vec<f64>> = (0..40).filter(kept).map(|at| rows[at].clone()).collect();
            let theirs: Vec<f64> = (0..40).filter(kept).map(|at| values[at]).collect();
            let anew = NormalEquations::of(&others, &theirs).solve(penalty).unwrap();
            // The scale of the penalty is that of all rows.
            let within = if penalty == 0.0 { 1e-8 } else { 0.02 };
            let apart = |row: &Vec<f64>| (without.value(row) - anew.value(row)).abs();
            assert!(rows.iter().map(apart).all(|apart| apart < within));
        }
        let twice: Vec<Vec<f64>> = rows.iter().map(|row| vec![row[0], row[0]]).collect();
        let twice = NormalEquations::of(&twice, &values);
        assert!(twice.solve(0.0).is_none() && twice.solve(1e-3).is_some());
    }

    #[test]
    fn the_leave_one_out_error_is_that_of_fits_without_the_row() {
        let (rows, values) = sample(25, 1.0);
        // Use one penalty alone, so that refits cannot choose another. Compare through the smallest
        // penalty, which has hardly any effect.
        let refit = |left_out: usize| {
            let keep = |index: &usize| *index != left_out;
            let rows: Vec<Vec<f64>> =
                (0..25).filter(keep).map(|index| rows[index].clone()).collect();
            let values: Vec<f64> = (0..25).filter(keep).map(|index| values[index]).collect();
            let ridge = Ridge::fit(&rows, &values).unwrap();
            (ridge, left_out)
        };
        let squares: f64 = (0..25)
            .map(refit)
            .map(|(ridge, row)| {
                (values[row] - ridge.intercept - dot(&rows[row], &ridge.weights)).powi(2)
            })
            .sum();
        let ridge = Ridge::fit(&rows, &values).unwrap();
        let refitted = (squares / 25.0).sqrt();
        assert!((ridge.error / refitted - 1.0).abs() < 0.05, "{} {refitted}", ridge.error);
    }
}

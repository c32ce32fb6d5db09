//! Square matrices and their Cholesky factors, as normal distributions need them.

/// Row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    size: usize,
    values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn from_fn(size: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..size * size).map(|index| value(index / size, index % size)).collect();
        Self { size, values }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.size + column]
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.size..(row + 1) * self.size]
    }

    /// Adds `factor` times the product of `vector` with itself.
    pub(crate) fn add_square(&mut self, vector: &[f64], factor: f64) {
        for (row, left) in self.values.chunks_exact_mut(self.size).zip(vector) {
            for (value, right) in row.iter_mut().zip(vector) {
                *value += factor * left * right;
            }
        }
    }

    /// Adds `factor` times `other`.
    pub(crate) fn add(&mut self, other: &Self, factor: f64) {
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value += factor * other;
        }
    }

    /// The lower triangle L with L Lᵀ = self (Cholesky). Pivots that rounding has made smaller than
    /// `floor` become it: covariances of values that determine each other are singular.
    pub(crate) fn cholesky(&self, floor: f64) -> Self {
        let mut lower = Self::from_fn(self.size, |_, _| 0.0);
        for row in 0..self.size {
            for column in 0..=row {
                let (left, right) = (&lower.row(row)[..column], &lower.row(column)[..column]);
                let rest =
                    self.at(row, column) - left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>();
                lower.values[row * self.size + column] = if row == column {
                    rest.max(floor).sqrt()
                } else {
                    rest / lower.at(column, column)
                };
            }
        }
        lower
    }

    /// x with L x = `right`, where self is a lower triangle.
    pub(crate) fn forward(&self, right: &[f64]) -> Vec<f64> {
        let mut solution = Vec::with_capacity(self.size);
        self.forward_each(right.as_chunks::<1>().0, &mut solution);
        solution.into_flattened()
    }

    /// The same for `N` right sides at once. A row of `right` and of `solution` has all of them.
    pub(crate) fn forward_each<const N: usize>(
        &self,
        right: &[[f64; N]],
        solution: &mut Vec<[f64; N]>,
    ) {
        solution.clear();
        for (row, right) in right.iter().enumerate() {
            let (factors, pivot) = (self.row(row), self.at(row, row));
            let mut known = [0.0; N];
            for (factor, solved) in factors.iter().zip(solution.iter()) {
                for (known, solved) in known.iter_mut().zip(solved) {
                    *known += factor * solved;
                }
            }
            solution.push(std::array::from_fn(|side| (right[side] - known[side]) / pivot));
        }
    }

    /// x with Lᵀ x = `right`, where self is a lower triangle.
    pub(crate) fn backward(&self, right: &[f64]) -> Vec<f64> {
        let mut solution = vec![0.0; self.size];
        for row in (0..self.size).rev() {
            let known: f64 =
                (row + 1..self.size).map(|below| self.at(below, row) * solution[below]).sum();
            solution[row] = (right[row] - known) / self.at(row, row);
        }
        solution
    }

    /// L times `vector`, where self is a lower triangle.
    pub(crate) fn lower_times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.size)
            .map(|row| self.row(row)[..=row].iter().zip(vector).map(|(a, b)| a * b).sum())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_solves_what_it_was_made_from() {
        let matrix = Matrix::from_fn(3, |row, column| {
            [[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]][row][column]
        });
        let lower = matrix.cholesky(1e-12);
        let right = [1.0, -2.0, 0.5];
        let solution = lower.backward(&lower.forward(&right));
        for (row, expected) in right.iter().enumerate() {
            let product: f64 = matrix.row(row).iter().zip(&solution).map(|(a, b)| a * b).sum();
            assert!((product - expected).abs() < 1e-12);
        }
        let sides = [[1.0, -2.0], [0.0, 0.5], [3.0, 1.0]];
        let mut both = Vec::new();
        lower.forward_each(&sides, &mut both);
        for side in 0..2 {
            let one = lower.forward(&sides.map(|row| row[side]));
            assert_eq!(one, both.iter().map(|row| row[side]).collect::<Vec<_>>());
        }
        let back = lower.lower_times(&[1.0, 0.0, 0.0]);
        assert!((back[0] * back[0] - 4.0).abs() < 1e-12 && (back[0] * back[1] - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_singular_matrix_has_a_triangle_too() {
        let lower = Matrix::from_fn(2, |_, _| 1.0).cholesky(1e-9);
        assert!(lower.at(1, 1) > 0.0 && lower.at(1, 1) < 1e-4);
    }
}

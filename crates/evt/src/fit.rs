//! Maximum likelihood of the generalized Pareto distribution.
//!
//! Let θ = -shape/scale. For each θ, the shape with the greatest likelihood is known: shape(θ) =
//! mean ln(1 - θ y). Sources: Davison 1984; Grimshaw, Technometrics 35, 1993. So two dimensions
//! become one. θ is below 1/max(y). It is positive for a distribution with an end, and negative for
//! a heavy tail. The fit scans θ and refines it, so no starting point can mislead it. Newton steps
//! on both parameters then give the last digits. The observed information there gives the
//! covariance.

use crate::Gpd;
use crate::log_product::log_product;
use serde::{Deserialize, Serialize};

/// A distribution fitted by maximum likelihood.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The distribution.
    pub gpd: Gpd,
    /// Its log-likelihood.
    pub log_likelihood: f64,
    /// How many values it was fitted to.
    pub exceedances: usize,
    /// Covariance of (scale, shape): the inverse of the observed information. `None` for a shape
    /// of -0.5 or below, where the estimates are not normal (Smith, Biometrika 72, 1985).
    pub covariance: Option<[[f64; 2]; 2]>,
}

/// Points of the scan on each side of shape 0. The profile is smooth; its maximum spans several of
/// them.
const SCAN: usize = 24;

/// Steps of the golden section: each shrinks the bracket by 0.618.
const GOLDEN_STEPS: usize = 28;

/// Largest v of θ = (1 - e^-v)/max(y): beyond it 1 - θ max(y) is lost in rounding.
const FARTHEST: f64 = 34.0;

/// Fits exceedances (finite, above 0). `None` for fewer than two values and for values outside that
/// range. Also `None` if the likelihood has no maximum with shape > -1. In that case it grows
/// without limit as the end approaches the largest value.
pub fn fit(exceedances: &[f64]) -> Option<Fit> {
    let valid = exceedances.len() > 1 && exceedances.iter().all(|y| y.is_finite() && *y > 0.0);
    let mean = exceedances.iter().sum::<f64>() / exceedances.len() as f64;
    if !valid || !mean.is_normal() {
        return None;
    }
    // In units of the mean the result does not depend on the scale of the input.
    let z: Vec<f64> = exceedances.iter().map(|y| y / mean).collect();
    let theta = scan(&z)?;
    let shape = shape_at(&z, theta);
    let start = Gpd::new(shape, if theta == 0.0 { 1.0 } else { -shape / theta })?;
    let (gpd, covariance) = polish(&z, start);
    let scale = gpd.scale() * mean;
    let covariance = covariance.filter(|_| gpd.shape() > -0.5);
    let fitted = Gpd::new(gpd.shape(), scale)?;
    Some(Fit {
        gpd: fitted,
        log_likelihood: gpd.log_likelihood(&z) - z.len() as f64 * mean.ln(),
        exceedances: z.len(),
        covariance: covariance.map(|[[a, b], [c, d]]| [[a * mean * mean, b * mean], [c * mean, d]]),
    })
}

/// The shape that maximizes the likelihood for a given θ.
fn shape_at(z: &[f64], theta: f64) -> f64 {
    // For a small θ the factors are all close to 1 and their products lose what makes them differ.
    let sum = if theta.abs() < 1e-2 {
        z.iter().map(|z| (-theta * z).ln_1p()).sum()
    } else {
        log_product(z.iter().map(|z| 1.0 - theta * z))
    };
    sum / z.len() as f64
}

/// The profile log-likelihood of θ per value, for values of mean 1.
fn profile(z: &[f64], theta: f64) -> f64 {
    if theta == 0.0 {
        return -1.0;
    }
    let shape = shape_at(z, theta);
    -(-shape / theta).ln() - 1.0 - shape
}

/// θ of the highest profile log-likelihood; `None` if that is the edge shape = -1.
fn scan(z: &[f64]) -> Option<f64> {
    let largest = z.iter().copied().fold(0.0, f64::max);
    let smallest = z.iter().copied().fold(f64::INFINITY, f64::min);
    // θ = (1 - e^-v)/largest for v > 0. The shape falls from 0 to minus infinity, and `edge` is
    // where it passes -1.
    let bounded = |v: f64| -(-v).exp_m1() / largest;
    let (mut inside, mut outside) = (0.0, FARTHEST);
    for _ in 0..40 {
        let middle = 0.5 * (inside + outside);
        if shape_at(z, bounded(middle)) > -1.0 { inside = middle } else { outside = middle }
    }
    let edge = bounded(inside);
    // The maximum of a heavy tail is no lower than this (Grimshaw 1993, equation 6); spread evenly
    // in the logarithm.
    let lowest = (2.0 * (1.0 - smallest) / (smallest * smallest)).clamp(1.0, 1e12);
    let heavy = (0..SCAN).rev().map(|i| -1e-3 * (lowest / 1e-3).powf(i as f64 / (SCAN - 1) as f64));
    let light =
        (1..=SCAN).map(|i| if i == SCAN { edge } else { bounded(inside * i as f64 / SCAN as f64) });
    let thetas: Vec<f64> = heavy.chain([0.0]).chain(light).collect();
    let heights: Vec<f64> = thetas.iter().map(|&theta| profile(z, theta)).collect();
    let top = (0..thetas.len()).max_by(|&a, &b| heights[a].total_cmp(&heights[b]))?;
    if top == thetas.len() - 1 {
        return None;
    }
    let (mut low, mut high) = (thetas[top.saturating_sub(1)], thetas[top + 1]);
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_left, mut at_right) = (profile(z, left), profile(z, right));
    for _ in 0..GOLDEN_STEPS {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = profile(z, left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = profile(z, right);
        }
    }
    Some(0.5 * (low + high))
}

/// Newton steps in (scale, shape) as long as they climb, and the inverse information where they
/// end.
fn polish(z: &[f64], start: Gpd) -> (Gpd, Option<[[f64; 2]; 2]>) {
    let mut best = start;
    let mut height = best.log_likelihood(z);
    for _ in 0..4 {
        let (gradient, information) = derivatives(z, best);
        let Some(inverse) = invert(information) else { break };
        let step = [0, 1].map(|i| inverse[i][0] * gradient[0] + inverse[i][1] * gradient[1]);
        let Some(next) = Gpd::new(best.shape() + step[1], best.scale() + step[0]) else { break };
        let climbed = next.log_likelihood(z);
        if next.shape() <= -1.0 || climbed.is_nan() || climbed < height {
            break;
        }
        (best, height) = (next, climbed);
    }
    (best, invert(derivatives(z, best).1))
}

/// Gradient of the log-likelihood in (scale, shape) and the observed information, minus its second
/// derivatives.
fn derivatives(z: &[f64], gpd: Gpd) -> ([f64; 2], [[f64; 2]; 2]) {
    let (shape, scale) = (gpd.shape(), gpd.scale());
    let mut gradient = [0.0; 2];
    let (mut scale_scale, mut scale_shape, mut shape_shape) = (0.0, 0.0, 0.0);
    for z in z {
        let x = z / scale;
        let w = 1.0 + shape * x;
        gradient[0] += ((1.0 + shape) * x / w - 1.0) / scale;
        scale_scale += (1.0 - (1.0 + shape) * x * (2.0 + shape * x) / (w * w)) / (scale * scale);
        scale_shape += (x / w - (1.0 + shape) * x * x / (w * w)) / scale;
        // Near shape 0 the closed forms are differences of large numbers: take their series there.
        if (shape * x).abs() < 1e-3 {
            gradient[1] += x * x / 2.0 - x + shape * (x * x - 2.0 / 3.0 * x * x * x);
            shape_shape +=
                x * x - 2.0 / 3.0 * x.powi(3) + shape * (1.5 * x.powi(4) - 2.0 * x.powi(3));
        } else {
            let log = (shape * x).ln_1p();
            gradient[1] += log / (shape * shape) - (1.0 + 1.0 / shape) * x / w;
            shape_shape += -2.0 * log / shape.powi(3)
                + 2.0 * x / (shape * shape * w)
                + (1.0 + 1.0 / shape) * (x / w) * (x / w);
        }
    }
    (gradient, [[-scale_scale, -scale_shape], [-scale_shape, -shape_shape]])
}

/// The inverse of a positive definite matrix; `None` for any other.
fn invert([[a, b], [_, d]]: [[f64; 2]; 2]) -> Option<[[f64; 2]; 2]> {
    let determinant = a * d - b * b;
    (a > 0.0 && determinant > 0.0 && determinant.is_finite())
        .then(|| [[d / determinant, -b / determinant], [-b / determinant, a / determinant]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The values of a distribution at evenly spaced probabilities: a sample without luck.
    fn ideal(shape: f64, scale: f64, n: usize) -> Vec<f64> {
        let gpd = Gpd::new(shape, scale).unwrap();
        (0..n).map(|i| gpd.quantile((i as f64 + 0.5) / n as f64).unwrap()).collect()
    }

    #[test]
    fn a_sample_without_luck_gives_its_distribution_back() {
        for shape in [-0.6, -0.3, -0.1, 0.0, 0.2, 0.8] {
            let found = fit(&ideal(shape, 3.0, 4000)).unwrap();
            assert!((found.gpd.shape() - shape).abs() < 0.01, "{shape}: {found:?}");
            assert!((found.gpd.scale() - 3.0).abs() < 0.03, "{shape}: {found:?}");
        }
    }

    #[test]
    fn the_covariance_is_the_asymptotic_one() {
        // Smith 1984: n cov(scale, shape) -> (1 + shape) [[2 scale^2, -scale], [-scale, 1 +
        // shape]].
        for shape in [-0.2, 1e-4, 0.3] {
            let found = fit(&ideal(shape, 2.0, 20_000)).unwrap();
            let covariance = found.covariance.unwrap().map(|row| row.map(|c| c * 20_000.0));
            let expected = [
                [8.0 * (1.0 + shape), -2.0 * (1.0 + shape)],
                [-2.0 * (1.0 + shape), (1.0 + shape).powi(2)],
            ];
            for (row, expected) in covariance.iter().zip(expected) {
                for (c, e) in row.iter().zip(expected) {
                    assert!((c - e).abs() < 0.03 * e.abs(), "{shape}: {covariance:?} {expected:?}");
                }
            }
        }
    }

    #[test]
    fn values_that_crowd_at_the_largest_have_no_fit() {
        assert_eq!(fit(&[1.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(fit(&[0.5, 1.9, 1.95, 1.99, 2.0, 2.0]), None);
    }

    #[test]
    fn values_that_are_no_exceedances_have_no_fit() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[1.0]), None);
        assert_eq!(fit(&[1.0, 0.0, 2.0]), None);
        assert_eq!(fit(&[1.0, f64::NAN, 2.0]), None);
        assert_eq!(fit(&[f64::MAX, f64::MAX, 1.0]), None);
    }

    proptest! {
        #[test]
        fn no_other_distribution_is_likelier(
            values in prop::collection::vec(0.001f64..1.0, 5..60),
            shape in -0.99f64..3.0,
            scale in 0.01f64..3.0,
        ) {
            if let Some(found) = fit(&values) {
                let other = Gpd::new(shape, scale).unwrap().log_likelihood(&values);
                prop_assert!(found.log_likelihood >= other - 1e-9, "{found:?} {other}");
            }
        }

        #[test]
        fn the_unit_of_the_values_does_not_matter(
            values in prop::collection::vec(0.001f64..1.0, 5..60), power in -200i32..200,
        ) {
            let unit = 10f64.powi(power);
            let scaled: Vec<f64> = values.iter().map(|y| y * unit).collect();
            match (fit(&values), fit(&scaled)) {
                (Some(a), Some(b)) => {
                    prop_assert!((a.gpd.shape() - b.gpd.shape()).abs() < 1e-5, "{a:?} {b:?}");
                    prop_assert!(
                        (a.gpd.scale() * unit / b.gpd.scale() - 1.0).abs() < 1e-5,
                        "{a:?} {b:?}"
                    );
                }
                (a, b) => prop_assert_eq!(a.is_some(), b.is_some()),
            }
        }
    }
}

//! The generalized Pareto distribution.
//!
//! The distribution function is G(y) = 1 - (1 + shape y / scale)^(-1/shape) for y >= 0. At shape 0
//! it is 1 - exp(-y / scale) (optimal-assignment-evt, theorem 1). With shape < 0 it ends at
//! -scale/shape. The density vanishes there for shape > -1 and is uniform at -1. Below -1 it grows
//! without limit, which is why no fit goes there.

use serde::{Deserialize, Serialize};

/// Below this |shape|, (1 + shape z)^(1/shape) and its logarithm are taken at shape 0. The
/// difference is beyond the digits of an f64.
const EXPONENTIAL: f64 = 1e-12;

/// A generalized Pareto distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gpd {
    shape: f64,
    scale: f64,
}

impl Gpd {
    /// The distribution with this shape (finite) and scale (finite, above 0); `None` for any other
    /// pair.
    pub fn new(shape: f64, scale: f64) -> Option<Self> {
        (shape.is_finite() && scale.is_finite() && scale > 0.0).then_some(Self { shape, scale })
    }

    /// Shape ξ: below 0 the distribution has an end.
    pub fn shape(&self) -> f64 {
        self.shape
    }

    /// Scale σ, in the unit of the values.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The largest possible value -scale/shape; `None` if shape >= 0 and there is none.
    pub fn end(&self) -> Option<f64> {
        (self.shape < 0.0).then(|| -self.scale / self.shape)
    }

    /// Logarithm of the density at `y`; minus infinity outside the range of the distribution.
    pub fn log_density(&self, y: f64) -> f64 {
        if y.is_nan() || y < 0.0 {
            return f64::NEG_INFINITY;
        }
        let z = y / self.scale;
        if self.shape.abs() < EXPONENTIAL {
            return -self.scale.ln() - z;
        }
        let inside = self.shape * z;
        if inside <= -1.0 {
            return f64::NEG_INFINITY;
        }
        -self.scale.ln() - (1.0 / self.shape + 1.0) * inside.ln_1p()
    }

    /// The density at `y`.
    pub fn density(&self, y: f64) -> f64 {
        self.log_density(y).exp()
    }

    /// The probability of a value of at most `y`.
    #[cfg(test)]
    fn cdf(&self, y: f64) -> f64 {
        if y.is_nan() || y <= 0.0 {
            return 0.0;
        }
        let z = y / self.scale;
        if self.shape.abs() < EXPONENTIAL {
            return -(-z).exp_m1();
        }
        let inside = self.shape * z;
        if inside <= -1.0 { 1.0 } else { -(-inside.ln_1p() / self.shape).exp_m1() }
    }

    /// The value that is not exceeded with probability `p`, for p in [0, 1); `None` outside.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        if !(0.0..1.0).contains(&p) {
            return None;
        }
        let log_tail = (-p).ln_1p();
        Some(if self.shape.abs() < EXPONENTIAL {
            -self.scale * log_tail
        } else {
            self.scale / self.shape * (-self.shape * log_tail).exp_m1()
        })
    }

    /// The log-likelihood of a sample: the sum of the log densities.
    pub fn log_likelihood(&self, values: &[f64]) -> f64 {
        values.iter().map(|&y| self.log_density(y)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_members_are_exact() {
        let uniform = Gpd::new(-1.0, 2.0).unwrap();
        assert_eq!(uniform.end(), Some(2.0));
        assert!((uniform.cdf(0.5) - 0.25).abs() < 1e-15);
        assert!((uniform.density(1.9) - 0.5).abs() < 1e-15);
        let exponential = Gpd::new(0.0, 2.0).unwrap();
        assert_eq!(exponential.end(), None);
        assert!((exponential.cdf(2.0) - (1.0 - (-1f64).exp())).abs() < 1e-15);
        let pareto = Gpd::new(0.5, 1.0).unwrap();
        assert!((pareto.cdf(2.0) - 0.75).abs() < 1e-15);
    }

    #[test]
    fn a_scale_of_zero_or_a_value_that_is_no_number_makes_no_distribution() {
        assert_eq!(Gpd::new(0.1, 0.0), None);
        assert_eq!(Gpd::new(0.1, f64::INFINITY), None);
        assert_eq!(Gpd::new(f64::NAN, 1.0), None);
        assert_eq!(Gpd::new(0.0, 1.0).unwrap().quantile(1.0), None);
    }

    proptest! {
        #[test]
        fn the_quantile_inverts_the_distribution(
            shape in -0.99f64..2.0,
            scale in 1e-3f64..1e3,
            p in 0.0f64..0.999,
        ) {
            let gpd = Gpd::new(shape, scale).unwrap();
            prop_assert!((gpd.cdf(gpd.quantile(p).unwrap()) - p).abs() < 1e-9);
        }

        #[test]
        fn the_density_is_the_slope_of_the_distribution(shape in -0.9f64..2.0, p in 0.01f64..0.95) {
            let gpd = Gpd::new(shape, 1.0).unwrap();
            let y = gpd.quantile(p).unwrap();
            let h = 1e-5;
            let slope = (gpd.cdf(y + h) - gpd.cdf(y - h)) / (2.0 * h);
            prop_assert!((slope - gpd.density(y)).abs() < 1e-4 * gpd.density(y).max(1.0));
        }

        #[test]
        fn nothing_jumps_at_shape_zero(y in 0.0f64..20.0) {
            let at = |shape| Gpd::new(shape, 1.0).unwrap().log_density(y);
            prop_assert!((at(1e-9) - at(0.0)).abs() < 1e-6 && (at(-1e-9) - at(0.0)).abs() < 1e-6);
        }
    }
}

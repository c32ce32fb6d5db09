//! The sum of many logarithms, with a sixteenth of the logarithms.

/// The logarithm of the product of `factors`, each in [1e-17, 1e17]: sixteen are multiplied before
/// one logarithm is taken. Their product stays within the range of an f64 and costs no more than
/// the rounding of sixteen products.
pub(crate) fn log_product(mut factors: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    loop {
        let (mut product, mut count) = (1.0, 0);
        for factor in factors.by_ref().take(16) {
            product *= factor;
            count += 1;
        }
        if count == 0 {
            return sum;
        }
        sum += product.ln();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_single_logarithms() {
        let factors: Vec<f64> = (1..100).map(|i| f64::from(i % 17).mul_add(1e3, 1e-5)).collect();
        let single: f64 = factors.iter().map(|f| f.ln()).sum();
        assert!((log_product(factors.into_iter()) / single - 1.0).abs() < 1e-13);
    }

    #[test]
    fn the_extremes_stay_in_range_and_nothing_sums_to_zero() {
        assert!((log_product([1e-17; 40].into_iter()) - 40.0 * 1e-17f64.ln()).abs() < 1e-9);
        assert!((log_product([1e17; 40].into_iter()) - 40.0 * 1e17f64.ln()).abs() < 1e-9);
        assert_eq!(log_product(std::iter::empty()), 0.0);
    }
}

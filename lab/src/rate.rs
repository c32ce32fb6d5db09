//! How often something happened, as a table says it.

use statrs::distribution::{Beta, ContinuousCDF};

/// Of the upper limits that [`of_which`] gives.
pub const CONFIDENCE: f64 = 0.95;

/// The upper limit of a share that happened `count` of `of` times (Clopper and Pearson, Biometrika
/// 26, 1934).
pub fn limit(count: usize, of: usize) -> f64 {
    // The limit is 1 where all are; elsewhere both parameters are above 0.
    let beta = Beta::new(count as f64 + 1.0, of.saturating_sub(count) as f64);
    beta.map_or(1.0, |beta| beta.inverse_cdf(CONFIDENCE))
}

/// The lower limit of such a share, with the same confidence.
pub fn least(count: usize, of: usize) -> f64 {
    1.0 - limit(of.saturating_sub(count), of)
}

/// A count with the upper limit of its share.
pub fn of_which(count: usize, of: usize) -> String {
    match of {
        0 => "-".to_owned(),
        of => format!("{count} of {of} (≤ {:.1} %)", 100.0 * limit(count, of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_three_holds_and_all_of_all_has_no_limit() {
        assert!((limit(0, 100) - 0.0295).abs() < 1e-4, "{}", limit(0, 100));
        assert_eq!((limit(5, 5), least(0, 5)), (1.0, 0.0));
        // 4 of 20 are within chance for this share, and for no smaller one: binomial tail of 5 %.
        assert!((least(4, 20) - 0.0714).abs() < 1e-4, "{}", least(4, 20));
        assert_eq!(of_which(0, 0), "-");
    }
}

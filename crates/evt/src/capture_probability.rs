//! What a random sample says without any model of the tail.

/// The probability that `n` assignments drawn with equal chance contain at least one of the best
/// `fraction` of all. It is 1 - (1 - fraction)^n (optimal-assignment-evt, section 3.1). `None`
/// unless `fraction` is in [0, 1].
pub fn capture_probability(n: u64, fraction: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&fraction) {
        return None;
    }
    // 0 draws catch nothing, also where the logarithm below is minus infinity.
    Some(if n == 0 { 0.0 } else { -(n as f64 * (-fraction).ln_1p()).exp_m1() })
}

/// With this `confidence`, at most this fraction of all assignments is better than the best of `n`
/// drawn. It is 1 - (1 - confidence)^(1/n). Holds for every distribution. `None` unless n > 0 and
/// `confidence` is in [0, 1).
pub fn better_fraction(n: u64, confidence: f64) -> Option<f64> {
    (n > 0 && (0.0..1.0).contains(&confidence))
        .then(|| -((-confidence).ln_1p() / n as f64).exp_m1())
}

/// The sample sizes at which a campaign asks for the bound. With a `step`: `start`, then every
/// `step` more (the published iteration, optimal-assignment-evt, section 5.3). Without: doubling
/// from `start`.
///
/// Each look is another chance to stop on a bound that is too low by bad luck. Doubling makes few
/// looks (7 from 500 to 32,000). The confidence of the look at which a campaign stops then stays
/// close to the requested one. With a look every 100 runs it does not (docs/method/bound.md).
pub fn looks(start: u64, step: Option<u64>) -> impl Iterator<Item = u64> {
    let next = move |&n: &u64| match step {
        Some(step) => n.checked_add(step.max(1)),
        None => n.checked_mul(2),
    };
    std::iter::successors(Some(start.max(1)), next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_published_figures_hold() {
        // optimal-assignment-evt, section 5.1: several hundred runs catch one of the best 1 or 2 %
        // with more than 99 %.
        assert!(capture_probability(500, 0.01).unwrap() > 0.99);
        assert!(capture_probability(10, 0.05).unwrap() < 0.41);
        assert!((better_fraction(1000, 0.95).unwrap() - 0.002_991_2).abs() < 1e-6);
    }

    #[test]
    fn ends_of_the_ranges_are_exact_and_nonsense_is_refused() {
        assert_eq!(capture_probability(0, 1.0), Some(0.0));
        assert_eq!(capture_probability(5, 0.0), Some(0.0));
        assert_eq!(capture_probability(5, 1.0), Some(1.0));
        assert_eq!(capture_probability(5, f64::NAN), None);
        assert_eq!(better_fraction(0, 0.95), None);
        assert_eq!(better_fraction(10, 1.0), None);
    }

    #[test]
    fn looks_double_unless_a_step_is_given_and_end_before_overflow() {
        assert_eq!(looks(500, None).take(4).collect::<Vec<_>>(), [500, 1000, 2000, 4000]);
        assert_eq!(looks(1000, Some(100)).take(3).collect::<Vec<_>>(), [1000, 1100, 1200]);
        assert_eq!(looks(u64::MAX - 1, Some(1)).count(), 2);
        assert_eq!(looks(0, None).next(), Some(1));
    }

    proptest! {
        #[test]
        fn the_fraction_that_may_be_better_is_the_one_that_would_have_been_captured(
            n in 1u64..100_000,
            confidence in 0.01f64..0.999,
        ) {
            let fraction = better_fraction(n, confidence).unwrap();
            prop_assert!((capture_probability(n, fraction).unwrap() - confidence).abs() < 1e-9);
        }
    }
}

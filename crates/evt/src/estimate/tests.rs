//! Tests of [`estimate`].

use super::*;
use crate::{EndpointCurve, plots};
use proptest::prelude::*;

/// A sample without luck from a tail that ends at `end`.
fn tail(n: usize, k: f64, end: f64) -> Vec<f64> {
    (0..n).map(|i| end - 3.0 * ((i as f64 + 0.5) / n as f64).powf(k)).collect()
}

fn ask(values: &[f64], options: Options) -> Result<BoundEstimate, Refusal> {
    estimate(&Sample::new(values.iter().copied()), &options)
}

const PROFILE: Options = Options {
    method: Method::Profile,
    confidence: 0.95,
    cap: None,
    threshold: None,
    exhausted: false,
};
const BAYES: Options = Options { method: Method::Bayes, ..PROFILE };

#[test]
fn both_methods_enclose_the_end_of_a_well_behaved_tail() {
    for options in [BAYES, PROFILE] {
        let found = ask(&tail(5000, 0.3, 10.0), options).unwrap();
        assert!(found.best < 10.0 && found.upb_high.unwrap() > 10.0, "{found:?}");
        assert!(found.gap.unwrap() <= found.gap_high.unwrap());
    }
}

#[test]
fn the_published_method_recovers_the_parameters_of_a_tail_without_luck() {
    let found = ask(&tail(100_000, 0.3, 10.0), PROFILE).unwrap();
    assert!(
        (found.upb - 10.0).abs() < 0.02 && (found.shape.unwrap() + 0.3).abs() < 0.01,
        "{found:?}"
    );
}

#[test]
fn the_published_method_takes_at_most_the_top_five_percent_and_the_bayesian_one_fifty_values() {
    assert_eq!(ask(&tail(5000, 0.3, 10.0), PROFILE).unwrap().exceedances, 250);
    assert_eq!(ask(&tail(5000, 0.3, 10.0), BAYES).unwrap().exceedances, 50);
    assert_eq!(ask(&tail(80, 0.3, 10.0), BAYES).unwrap().exceedances, 20);
}

#[test]
fn a_stable_tail_is_used_where_the_plot_is_straight_above_few_values_only() {
    let mut state = 1u64;
    let mut unit = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let (mut stable, mut too_low) = (0, 0);
    for _ in 0..200 {
        let drawn: Vec<f64> = (0..5000).map(|_| 10.0 - 3.0 * unit().powf(0.3)).collect();
        let Ok(found) = ask(&drawn, PROFILE) else { continue };
        let is = |kind: fn(&Diagnostic) -> bool| found.diagnostics.iter().any(kind);
        if is(|note| matches!(note, Diagnostic::StraightOnly { .. })) {
            assert!(!is(|note| matches!(note, Diagnostic::NotLinear { .. })), "{found:?}");
            assert!(found.exceedances > 50, "{found:?}");
            stable += 1;
            too_low += usize::from(found.upb_high.is_some_and(|high| high < 10.0));
        }
    }
    assert!(stable >= 3 && 10 * too_low <= stable, "{too_low} of {stable}");
}

#[test]
fn a_tail_of_few_values_is_noted() {
    let few = |n, options| {
        let found = ask(&tail(n, 0.3, 10.0), options).unwrap();
        found.diagnostics.iter().find_map(|note| match note {
            Diagnostic::Few { exceedances, enough } => Some((*exceedances, *enough)),
            _ => None,
        })
    };
    assert_eq!(
        [few(80, BAYES), few(199, BAYES), few(200, BAYES)],
        [Some((20, 50)), Some((49, 50)), None]
    );
    let high = Options { threshold: Some(9.4), ..BAYES };
    assert!(few(5000, high).is_some_and(|(exceedances, _)| exceedances < 50));
    assert_eq!(few(5000, PROFILE), None);
}

#[test]
fn a_tail_without_end_is_refused_by_the_published_method_and_flagged_by_the_other() {
    let heavy: Vec<f64> = (0..2000).map(|i| ((f64::from(i) + 0.5) / 2000.0).powf(-0.3)).collect();
    assert!(matches!(ask(&heavy, PROFILE), Err(Refusal::NoEnd { shape, .. }) if shape > 0.2));
    let found = ask(&heavy, BAYES).unwrap();
    assert!(
        found
            .diagnostics
            .iter()
            .any(|d| matches!(d, Diagnostic::PriorDriven { shape } if *shape > 0.0))
    );
}

#[test]
fn samples_that_support_no_bound_are_refused_with_the_reason() {
    assert_eq!(ask(&[], BAYES), Err(Refusal::Empty { dropped: 0 }));
    assert_eq!(ask(&[f64::NAN, f64::INFINITY], BAYES), Err(Refusal::Empty { dropped: 2 }));
    assert_eq!(ask(&[7.0; 500], BAYES), Err(Refusal::Constant { value: 7.0, n: 500 }));
    assert_eq!(
        ask(&tail(39, 0.3, 1.0), BAYES),
        Err(Refusal::TooFew { distinct: 39, n: 39, needed: 40 })
    );
    assert_eq!(
        ask(&tail(199, 0.3, 1.0), PROFILE),
        Err(Refusal::NoThreshold { n: 199, needed: 10 })
    );
    let spread: Vec<f64> =
        (0..100).map(|i| if i == 0 { -f64::MAX } else { f64::MAX / f64::from(i) }).collect();
    assert_eq!(ask(&spread, BAYES), Err(Refusal::Range));
    let high = Options { threshold: Some(9.99), ..BAYES };
    assert!(matches!(
        ask(&tail(100, 0.3, 10.0), high),
        Err(Refusal::FewExceedances { needed: 10, .. })
    ));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let values = tail(100, 0.3, 10.0);
    for confidence in [0.0, 0.49, 1.0, f64::NAN] {
        assert!(matches!(
            ask(&values, Options { confidence, ..BAYES }),
            Err(Refusal::Confidence { .. })
        ));
    }
    let cap = Options { cap: Some(f64::NAN), ..BAYES };
    assert!(matches!(ask(&values, cap), Err(Refusal::NotFinite { option: Limit::Cap, .. })));
}

#[test]
fn a_cap_below_the_estimate_becomes_the_bound_and_one_below_the_best_is_reported_not_used() {
    let values = tail(1000, 0.1, 10.0);
    let free = ask(&values, BAYES).unwrap();
    let middle = 0.5 * (free.best + free.upb);
    let capped = ask(&values, Options { cap: Some(middle), ..BAYES }).unwrap();
    assert_eq!((capped.upb, capped.upb_high), (middle, Some(middle)));
    assert!(capped.diagnostics.contains(&Diagnostic::CapActive { cap: middle }));
    let wrong = ask(&values, Options { cap: Some(1.0), ..BAYES }).unwrap();
    assert_eq!((wrong.upb, wrong.upb_high), (free.upb, free.upb_high));
    assert!(wrong.diagnostics.contains(&Diagnostic::CapFalsified { cap: 1.0 }));
}

#[test]
fn an_exhausted_space_needs_no_estimate() {
    let found = ask(&[3.0, 5.0, 4.0], Options { exhausted: true, ..BAYES }).unwrap();
    assert_eq!(
        (found.upb, found.upb_high, found.gap_high, found.method),
        (5.0, Some(5.0), Some(0.0), Estimator::Exact)
    );
    assert_eq!((found.threshold, found.better_fraction), (None, 0.0));
}

#[test]
fn ties_at_the_best_are_a_saturated_resource() {
    let capped: Vec<f64> = tail(1000, 0.3, 10.0).into_iter().map(|x| x.min(9.0)).collect();
    let found = ask(&capped, BAYES).unwrap();
    assert_eq!((found.best, found.upb, found.upb_high), (9.0, 9.0, Some(9.0)));
    assert!(
        found.diagnostics.iter().any(|d| matches!(d, Diagnostic::Saturated { ties } if *ties >= 5))
    );
}

#[test]
fn few_different_values_are_named_as_atoms() {
    let atoms: Vec<f64> = (0..1000).map(|i| f64::from(i % 60).sqrt()).collect();
    let found = ask(&atoms, BAYES).unwrap();
    assert!(found.diagnostics.contains(&Diagnostic::Atoms { distinct: 60, n: 1000 }));
    assert!(
        !found.diagnostics.iter().any(|d| matches!(d, Diagnostic::Saturated { .. })),
        "every value ties"
    );
}

#[test]
fn a_low_threshold_is_used_and_flagged() {
    let found = ask(&tail(1000, 0.3, 10.0), Options { threshold: Some(8.0), ..PROFILE }).unwrap();
    assert_eq!(found.threshold, Some(8.0));
    assert!(found.diagnostics.iter().any(|d| matches!(d, Diagnostic::ThresholdLow { .. })));
}

#[test]
fn a_performance_measured_later_falsifies_a_bound_below_it() {
    let found = ask(&tail(1000, 0.3, 10.0), BAYES).unwrap();
    let high = found.upb_high.unwrap();
    assert!(!found.is_falsified_by(high) && found.is_falsified_by(high * 1.000_001));
}

#[test]
fn negative_performances_have_a_bound_but_no_gap() {
    let found = ask(&tail(1000, 0.3, -10.0), BAYES).unwrap();
    assert!(found.upb_high.unwrap() > -10.0 && found.gap.is_none());
    assert!(found.diagnostics.contains(&Diagnostic::GapUndefined));
}

#[test]
fn the_plots_agree_with_the_estimate() {
    let sample = Sample::new(tail(2000, 0.3, 10.0));
    for options in [BAYES, PROFILE] {
        let found = estimate(&sample, &options).unwrap();
        let drawn = plots(&sample, &found);
        assert_eq!(drawn.ecdf.last().map(|p| (p.x, p.y)), Some((found.best, 1.0)));
        assert_eq!((drawn.ecdf.len(), drawn.mean_excess.len()), (2000, 1999));
        assert_eq!(drawn.quantile.len(), found.exceedances);
        let points = match drawn.curve.unwrap() {
            EndpointCurve::Profile(points) => {
                let top = points.iter().max_by(|a, b| a.y.total_cmp(&b.y)).unwrap();
                assert!((top.x - found.upb).abs() < 0.05 && top.y.abs() < 0.05);
                points
            }
            EndpointCurve::Posterior(points) => points,
        };
        assert!(points.windows(2).all(|p| p[0].x < p[1].x) && points[0].x >= found.best);
    }
}

/// Any values: smooth ones, atoms, ties at the top, huge and tiny ones.
fn anything() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(any::<f64>(), 0..300),
        prop::collection::vec(-1e3f64..1e3, 0..600),
        prop::collection::vec((0u8..70).prop_map(f64::from), 0..600),
        prop::collection::vec((0f64..1.0).prop_map(|x| x.min(0.9)), 0..600),
        prop::collection::vec((0f64..1.0).prop_map(|x| 1e16 + (x * 500.0).floor()), 0..600),
    ]
}

fn any_options() -> impl Strategy<Value = Options> {
    let method = prop_oneof![Just(Method::Bayes), Just(Method::Profile)];
    let limit = || prop::option::weighted(0.3, -1e3f64..1e3);
    (method, 0.5f64..0.9999, limit(), limit(), prop::bool::weighted(0.1)).prop_map(
        |(method, confidence, cap, threshold, exhausted)| Options {
            method,
            confidence,
            cap,
            threshold,
            exhausted,
        },
    )
}

proptest! {
    #[test]
    fn every_number_given_is_finite_and_in_order(values in anything(), options in any_options()) {
        if let Ok(found) = ask(&values, options) {
            let high = found.upb_high.unwrap_or(f64::MAX);
            let ordered = [found.best, found.upb_low, found.upb, high];
            prop_assert!(ordered.is_sorted(), "{found:?}");
            let numbers = [
                Some(found.best),
                found.threshold,
                found.shape,
                found.scale,
                Some(found.upb),
                found.upb_high,
                found.gap,
                found.gap_high,
                Some(found.better_fraction),
            ];
            prop_assert!(numbers.iter().flatten().all(|x| x.is_finite()), "{found:?}");
            let mut gaps = found.gap.iter().chain(&found.gap_high);
            prop_assert!(gaps.all(|gap| (0.0..=1.0).contains(gap)), "{found:?}");
            let drawn = plots(&Sample::new(values), &found);
            let drawn_all = drawn.ecdf.iter().chain(&drawn.mean_excess).chain(&drawn.quantile);
            prop_assert!(drawn_all.clone().all(|p| p.x.is_finite() && p.y.is_finite()));
        }
    }

    #[test]
    fn the_order_of_the_values_does_not_matter(
        values in anything(),
        options in any_options(),
        seed in any::<u64>(),
    ) {
        let mut shuffled = values.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            shuffled.swap(i, (state >> 33) as usize % (i + 1));
        }
        let said = |values: &[f64]| format!("{:?}", ask(values, options));
        prop_assert_eq!(said(&values), said(&shuffled));
    }

    #[test]
    fn more_confidence_never_gives_a_lower_upper_end(
        values in prop::collection::vec(0.0f64..100.0, 250..500),
        low in 0.5f64..0.99,
        more in 0.0f64..0.5,
        method in any::<bool>(),
    ) {
        let base = if method { BAYES } else { PROFILE };
        let high = |confidence| {
            let found = ask(&values, Options { confidence, ..base });
            found.map(|found| found.upb_high.unwrap_or(f64::INFINITY))
        };
        if let (Ok(a), Ok(b)) = (high(low), high(low + more * (0.9999 - low))) {
            prop_assert!(b >= a, "{a} {b}");
        }
    }

    #[test]
    fn shift_and_unit_of_the_values_pass_through(
        values in prop::collection::vec(0.0f64..1.0, 250..500),
        shift in -10.0f64..10.0,
        unit in 1e-6f64..1e6,
        method in any::<bool>(),
    ) {
        let base = if method { BAYES } else { PROFILE };
        let moved: Vec<f64> = values.iter().map(|x| unit * (x + shift)).collect();
        match (ask(&values, base), ask(&moved, base)) {
            (Ok(a), Ok(b)) => {
                // Moved values have lost digits, and the maximum of a flat likelihood magnifies
                // that.
                prop_assert!((unit * (a.upb + shift) - b.upb).abs() < 1e-4 * unit, "{a:?} {b:?}");
                match (a.upb_high, b.upb_high) {
                    (Some(x), Some(y)) => {
                    let off = (unit * (x + shift) - y).abs();
                    prop_assert!(off < 1e-3 * unit * (1.0 + x), "{a:?} {b:?}");
                }
                    (x, y) => prop_assert_eq!(x.is_some(), y.is_some()),
                }
            }
            (a, b) => prop_assert_eq!(a.is_ok(), b.is_ok(), "{:?} {:?}", a, b),
        }
    }
}

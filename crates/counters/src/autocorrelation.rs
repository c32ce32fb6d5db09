//! How well the last quantum predicts the next one.
//!
//! A co-scheduler decides by the counts of the last scheduling quantum. These counts are useful if
//! they change little from quantum to quantum. The paper on hardware monitoring (section 4) has
//! figures of a Pentium 4. They are 0.93 for instructions per cycle and 0.92 for L2 misses. Summed
//! over six quanta, L2 misses have 0.52.

use pinwise_measure::{CounterEvent, EventCounts};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The correlation of a series with itself, some steps later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Autocorrelation {
    /// The coefficient, -1 to 1.
    pub coefficient: f64,
    /// How many values the series has.
    pub n: usize,
}

impl Autocorrelation {
    /// The coefficient r at a lag of k, of a series of n values. Let d(t) be what value t differs
    /// from the mean. Then r = Σ d(t) d(t + k) / Σ d(t)², over t = 1 … n - k above and t = 1 … n
    /// below (Box, Jenkins, Reinsel, *Time Series Analysis*, section 2.1; `acf` of R). `None`: a
    /// value is not finite, all are the same, or there are not at least two pairs.
    pub fn of(series: &[f64], lag: usize) -> Option<Self> {
        let n = series.len();
        if n < lag.checked_add(2)? {
            return None;
        }
        // The mean of equal values may differ from them in its last digit.
        if series.iter().all(|value| *value == series[0]) {
            return None;
        }
        let mean = series.iter().sum::<f64>() / n as f64;
        let from_mean: Vec<f64> = series.iter().map(|value| value - mean).collect();
        let variance: f64 = from_mean.iter().map(|value| value * value).sum();
        let covariance: f64 = from_mean.iter().zip(&from_mean[lag..]).map(|(a, b)| a * b).sum();
        let coefficient = covariance / variance;
        coefficient.is_finite().then_some(Self { coefficient, n })
    }

    /// From one sum of `quanta` intervals to the next, for each event. Events are per cycle if
    /// cycles were counted in any interval, else per second. Cycles are per second. A sum without
    /// the event breaks its series, and one without cycles too. The longest unbroken part is taken.
    pub fn of_events(intervals: &[EventCounts], quanta: usize) -> BTreeMap<CounterEvent, Self> {
        let sums: Vec<EventCounts> = intervals.chunks_exact(quanta.max(1)).map(sum).collect();
        let events: BTreeSet<CounterEvent> =
            sums.iter().flat_map(|counts| counts.counts.keys().copied()).collect();
        let with_cycles = events.contains(&CounterEvent::Cycles);
        let of_event = |event| {
            let per_cycle = with_cycles && event != CounterEvent::Cycles;
            let rate = |counts: &EventCounts| match per_cycle {
                true => counts.per_cycle(event),
                false => Some(counts.get(event)? / counts.seconds),
            };
            let rates: Vec<Option<f64>> = sums.iter().map(rate).collect();
            let unbroken = rates.split(Option::is_none).max_by_key(|part| part.len())?;
            let series: Vec<f64> = unbroken.iter().copied().flatten().collect();
            Some((event, Self::of(&series, 1)?))
        };
        events.iter().filter_map(|&event| of_event(event)).collect()
    }
}

/// The counts of several intervals: the events that all of them have.
fn sum(intervals: &[EventCounts]) -> EventCounts {
    let mut intervals = intervals.iter();
    let mut sum = intervals.next().cloned().unwrap_or_default();
    for interval in intervals {
        sum.seconds += interval.seconds;
        sum.counted = sum.counted.min(interval.counted);
        sum.counts.retain(|event, _| interval.counts.contains_key(event));
        sum.counts.iter_mut().for_each(|(event, count)| *count += interval.counts[event]);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;
    use proptest::prelude::*;

    #[test]
    fn the_coefficients_are_those_of_a_calculation_by_hand() {
        // Mean 3, sum of squares 10.
        let series = [1.0, 2.0, 3.0, 4.0, 5.0];
        let at = |lag| Autocorrelation::of(&series, lag).unwrap().coefficient;
        // (-2)(-1) + (-1)0 + 0·1 + 1·2 = 4, (-2)0 + (-1)1 + 0·2 = -1, (-2)1 + (-1)2 = -4.
        assert_eq!((at(0), at(1), at(2), at(3)), (1.0, 0.4, -0.1, -0.4));
        assert_eq!(Autocorrelation::of(&series, 4), None, "one pair");
        assert_eq!(Autocorrelation::of(&[2.0; 9], 1), None, "constant");
        assert_eq!(Autocorrelation::of(&[0.1; 10], 1), None, "their mean is no 0.1");
        assert_eq!(Autocorrelation::of(&[1.0, f64::NAN, 2.0, 3.0], 1), None);
        assert_eq!(Autocorrelation::of(&series, usize::MAX), None);
    }

    /// An autoregressive process x[t] = a x[t-1] + noise, which has the autocorrelation a.
    fn process(a: f64, n: usize) -> Vec<f64> {
        let mut random = Random::new(5);
        let mut noise = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let mut x = noise() / (1.0 - a * a).sqrt();
        let step = |_| {
            x = a * x + noise();
            x
        };
        (0..n).map(step).collect()
    }

    #[test]
    fn a_process_of_known_autocorrelation_has_it_also_in_sums() {
        let a: f64 = 0.92;
        let n = 60_000;
        let base = 1000.0;
        let intervals: Vec<EventCounts> = process(a, n)
            .into_iter()
            .map(|x| EventCounts {
                seconds: 0.1,
                counts: BTreeMap::from([
                    (CounterEvent::Cycles, base),
                    (CounterEvent::L2Misses, base + x),
                ]),
                counted: 1.0,
            })
            .collect();
        let of = |quanta| Autocorrelation::of_events(&intervals, quanta)[&CounterEvent::L2Misses];
        // Bartlett's standard error of r is at most sqrt((1 - a²) / n): four of them.
        let error = |n: usize| 4.0 * ((1.0 - a * a) / n as f64).sqrt();
        assert!((of(1).coefficient - a).abs() < error(n), "{:?}", of(1));
        // The covariance of neighbouring sums of k values over the variance of one of them.
        let k = 6;
        let pairs = |distance: i32| (0..k).flat_map(move |i| (0..k).map(move |j| distance + j - i));
        let covariance = |distance| pairs(distance).map(|lag| a.powi(lag.abs())).sum::<f64>();
        let expected = covariance(k) / covariance(0);
        let summed = of(k as usize);
        assert_eq!(summed.n, n / k as usize);
        assert!((summed.coefficient - expected).abs() < error(summed.n) * 2.0, "{summed:?}");
        // Cycles never change: nothing can be said.
        assert!(!Autocorrelation::of_events(&intervals, 1).contains_key(&CounterEvent::Cycles));
    }

    #[test]
    fn a_series_has_one_unit_and_intervals_without_a_value_break_it() {
        use CounterEvent::{Cycles, L2Misses, TaskClock};
        let interval = |counts: &[(CounterEvent, f64)]| EventCounts {
            seconds: 1.0,
            counts: counts.iter().copied().collect(),
            counted: 1.0,
        };
        let busy = |count| interval(&[(Cycles, 100.0), (L2Misses, count)]);
        let hand = Autocorrelation { coefficient: 0.4, n: 5 };
        let mut intervals: Vec<EventCounts> = [1.0, 2.0, 3.0, 4.0, 5.0].map(busy).into();
        // Counts without cycles have no rate, and neither has an idle interval.
        let idle = interval(&[(Cycles, 0.0), (L2Misses, 0.0)]);
        for without in [interval(&[(L2Misses, 900.0)]), EventCounts::default(), idle] {
            intervals.extend([without, busy(7.0)]);
            let found = Autocorrelation::of_events(&intervals, 1);
            assert_eq!(found.get(&L2Misses), Some(&hand), "{intervals:?}");
        }
        // The last interval lacks the event.
        intervals.push(EventCounts::default());
        assert_eq!(Autocorrelation::of_events(&intervals, 1)[&L2Misses], hand);
        let seconds = [9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|count| match count {
            0.0 => EventCounts::default(),
            _ => interval(&[(TaskClock, count)]),
        });
        assert_eq!(Autocorrelation::of_events(&seconds, 1)[&TaskClock], hand);
        assert_eq!(Autocorrelation::of_events(&seconds, 0)[&TaskClock], hand);
        assert!(Autocorrelation::of_events(&[], 1).is_empty());
    }

    proptest! {
        #[test]
        fn a_coefficient_is_between_minus_one_and_one_and_knows_no_unit(
            series in proptest::collection::vec(-1e3..1e3f64, 3..60),
            lag in 1usize..4,
            scale in 0.1..10f64,
        ) {
            if let Some(found) = Autocorrelation::of(&series, lag) {
                prop_assert!(found.coefficient.abs() <= 1.0 + 1e-12);
                let scaled: Vec<f64> = series.iter().map(|x| scale * x + 7.0).collect();
                let scaled = Autocorrelation::of(&scaled, lag).unwrap();
                prop_assert!((scaled.coefficient - found.coefficient).abs() < 1e-6);
            }
        }
    }
}

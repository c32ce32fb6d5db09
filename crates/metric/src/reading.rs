//! The arithmetic of readings: from numbers with times to a performance.
//!
//! A *counter* grows while the program works, and its rate is the performance. A *value* is already
//! a rate, or another quantity such as a latency, and its mean is the performance. Everything here
//! is a pure function of readings.

use pinwise_measure::{MeasureError, Retry};

/// A number and its time, in seconds of any clock that does not jump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The number.
    pub value: f64,
    /// Its time.
    pub seconds: f64,
}

/// How to interpret a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// It grows with the work done; its rate is the performance.
    Counter,
    /// It is the performance (or cost) itself.
    Value,
}

/// The summary of several readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadingSummary {
    /// The rate of a counter, per second; the mean of a value.
    pub value: f64,
    /// Standard deviation of the parts, where there are two or more.
    pub spread: Option<f64>,
    /// How many parts: readings of a value, stretches between those of a counter.
    pub parts: usize,
}

impl ReadingSummary {
    /// Standard error of the value, as if its parts were independent; `None` for a single part.
    pub fn error(&self) -> Option<f64> {
        self.spread.map(|spread| spread / (self.parts as f64).sqrt())
    }
}

/// Why readings give no rate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RateError {
    /// A counter cannot fall.
    #[error(
        "the counter fell from {from} to {to}: the program was restarted or its statistics reset; \
         give --gauge if it is no counter"
    )]
    Fell {
        /// The earlier reading.
        from: f64,
        /// The later one.
        to: f64,
    },
    /// Time must pass between readings.
    #[error(
        "two readings at the same time ({seconds} s): the program's clock is too coarse for the \
         window"
    )]
    NoTime {
        /// The time of both.
        seconds: f64,
    },
    /// A rate needs two readings.
    #[error("a rate needs two readings")]
    TooFew,
}

impl From<RateError> for MeasureError {
    fn from(error: RateError) -> Self {
        Self::new(Retry::Same, error.to_string())
    }
}

/// The rate of a counter from the first reading to the last.
///
/// The spread is that of the rates between neighbours, each weighted with its duration, times
/// n/(n-1). For equal durations this is the sample standard deviation. An interval of twice the
/// length has half the variance. It does not matter whether the noise comes from its ends or from
/// independent parts.
///
/// # Errors
/// [`RateError`]: fewer than two readings, a counter that falls, a clock that stands still.
pub fn rate(readings: &[Reading]) -> Result<ReadingSummary, RateError> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Err(RateError::TooFew);
    };
    if readings.len() < 2 {
        return Err(RateError::TooFew);
    }
    for pair in readings.windows(2) {
        if pair[1].value < pair[0].value {
            return Err(RateError::Fell { from: pair[0].value, to: pair[1].value });
        }
        if pair[1].seconds <= pair[0].seconds {
            return Err(RateError::NoTime { seconds: pair[1].seconds });
        }
    }
    let total = last.seconds - first.seconds;
    let value = (last.value - first.value) / total;
    let count = readings.len() - 1;
    let parts = count as f64;
    let variance = readings
        .windows(2)
        .map(|pair| {
            let seconds = pair[1].seconds - pair[0].seconds;
            let deviation = (pair[1].value - pair[0].value) / seconds - value;
            seconds * deviation * deviation
        })
        .sum::<f64>()
        / total;
    let spread = (count >= 2).then(|| (variance * parts / (parts - 1.0)).sqrt());
    Ok(ReadingSummary { value, spread, parts: count })
}

/// Selects readings that are at least `seconds` apart: the first, the last, and as many between
/// them as possible. `readings` are in the order of their times.
///
/// A program stays fast or slow for a while, so short parts resemble their neighbours. The error
/// computed from them, as if they were independent, is then too small.
pub fn apart(readings: &[Reading], seconds: f64) -> Vec<Reading> {
    let Some((last, before)) = readings.split_last() else { return Vec::new() };
    let mut kept: Vec<Reading> = Vec::new();
    for reading in before {
        let far = |other: &Reading| (reading.seconds - other.seconds).abs() >= seconds;
        if kept.last().is_none_or(|other| far(other) && far(last)) {
            kept.push(*reading);
        }
    }
    kept.push(*last);
    kept
}

/// The mean of values that cover equal times, and their sample standard deviation; `None` when
/// there is no value.
pub fn mean(values: &[f64]) -> Option<ReadingSummary> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let value = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - value) * (v - value)).sum::<f64>();
    let spread = (values.len() >= 2).then(|| (squares / (n - 1.0)).sqrt());
    Some(ReadingSummary { value, spread, parts: values.len() })
}

/// Turns a summary into a performance, which is higher-is-better. A quantity that is better when
/// lower becomes its reciprocal, with its spread by the delta method (sd / mean²). `None` if the
/// result is not finite (the reciprocal of zero).
pub fn performance(summary: ReadingSummary, lower_is_better: bool) -> Option<ReadingSummary> {
    let performance = if lower_is_better {
        let square = summary.value * summary.value;
        ReadingSummary {
            value: 1.0 / summary.value,
            spread: summary.spread.map(|spread| spread / square),
            ..summary
        }
    } else {
        summary
    };
    performance.value.is_finite().then_some(performance)
}

/// After this many readings in a row, none smaller than the one before, a number counts as a
/// counter. Readings of a noisy value rise five times in a row once in 120.
pub const RISES_OF_A_COUNTER: usize = 5;

/// Whether `values`, in the order they were read, are those of a counter. `None` while they do not
/// decide it: fewer than [`RISES_OF_A_COUNTER`] different ones, or no change at all.
pub fn interpret(values: &[f64]) -> Option<Interpretation> {
    if values.windows(2).any(|pair| pair[1] < pair[0]) {
        return Some(Interpretation::Value);
    }
    let different = values.windows(2).filter(|pair| pair[1] > pair[0]).count()
        + usize::from(!values.is_empty());
    (different >= RISES_OF_A_COUNTER).then_some(Interpretation::Counter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn readings(pairs: &[(f64, f64)]) -> Vec<Reading> {
        pairs.iter().map(|&(seconds, value)| Reading { value, seconds }).collect()
    }

    #[test]
    fn a_rate_is_growth_over_time() {
        let summary = rate(&readings(&[(10.0, 500.0), (12.0, 900.0)])).unwrap();
        assert_eq!(summary, ReadingSummary { value: 200.0, spread: None, parts: 1 });
    }

    #[test]
    fn the_spread_of_equal_parts_is_their_sample_standard_deviation() {
        // Rates 100, 200, 300: mean 200, sample standard deviation 100.
        let summary =
            rate(&readings(&[(0.0, 0.0), (1.0, 100.0), (2.0, 300.0), (3.0, 600.0)])).unwrap();
        assert_eq!(summary.value, 200.0);
        assert!((summary.spread.unwrap() - 100.0).abs() < 1e-9);
        let mean = mean(&[100.0, 200.0, 300.0]).unwrap();
        assert_eq!(mean, ReadingSummary { value: 200.0, spread: Some(100.0), parts: 3 });
        // The standard error of three is theirs over the root of 3.
        assert!(
            (mean.error().unwrap() - 57.735).abs() < 1e-3
                && (summary.error().unwrap() - 57.735).abs() < 1e-3
        );
        assert_eq!(rate(&readings(&[(0.0, 0.0), (1.0, 100.0)])).unwrap().error(), None);
    }

    #[test]
    fn parts_shorter_than_the_programs_phases_tell_an_error_that_is_too_small() {
        // 80 ms read every 10 ms, the first 40 ms at a rate of 100 and the others at 300.
        let rates = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0];
        let mut all = vec![Reading { value: 0.0, seconds: 0.0 }];
        for (number, step) in rates.into_iter().enumerate() {
            let value = all[number].value + step;
            all.push(Reading { value, seconds: (number + 1) as f64 / 100.0 });
        }
        let times = |seconds: f64| -> Vec<u32> {
            apart(&all, seconds)
                .iter()
                .map(|reading| (reading.seconds * 100.0).round() as u32)
                .collect()
        };
        assert_eq!(times(0.035), [0, 4, 8]);
        // What is left at the end belongs to the last part.
        assert_eq!(times(0.025), [0, 3, 8]);
        assert_eq!((times(0.0).len(), times(1.0)), (9, vec![0, 8]));
        let error = |readings: &[Reading]| rate(readings).unwrap().error().unwrap();
        // Two parts, 100 and 300: 141.4 / sqrt(2). Eight as if they were independent: 106.9 /
        // sqrt(8).
        assert!(
            (error(&apart(&all, 0.035)) - 100.0).abs() < 1e-6 && (error(&all) - 37.8).abs() < 0.01
        );
        assert_eq!((apart(&[], 1.0).len(), apart(&all[..1], 1.0)), (0, all[..1].to_vec()));
    }

    #[test]
    fn readings_that_give_no_rate_say_why() {
        assert_eq!(rate(&readings(&[(0.0, 1.0)])), Err(RateError::TooFew));
        assert_eq!(
            rate(&readings(&[(0.0, 5.0), (1.0, 3.0)])),
            Err(RateError::Fell { from: 5.0, to: 3.0 })
        );
        assert_eq!(
            rate(&readings(&[(1.0, 5.0), (1.0, 6.0)])),
            Err(RateError::NoTime { seconds: 1.0 })
        );
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn a_cost_becomes_its_reciprocal_with_the_spread_of_the_delta_method() {
        let cost = ReadingSummary { value: 4.0, spread: Some(0.4), parts: 5 };
        let performance = performance(cost, true).unwrap();
        assert_eq!(performance.value, 0.25);
        // The relative spread stays the same to first order.
        assert!((performance.spread.unwrap() / performance.value - 0.1).abs() < 1e-12);
        assert_eq!(super::performance(cost, false), Some(cost));
        assert_eq!(
            super::performance(ReadingSummary { value: 0.0, spread: None, parts: 1 }, true),
            None
        );
    }

    #[test]
    fn growth_alone_makes_a_counter_and_one_fall_a_value() {
        assert_eq!(interpret(&[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(interpret(&[1.0, 2.0, 3.0, 3.0, 4.0, 5.0]), Some(Interpretation::Counter));
        assert_eq!(interpret(&[5.0, 4.0]), Some(Interpretation::Value));
        assert_eq!(interpret(&[7.0; 50]), None);
        assert_eq!(interpret(&[]), None);
    }

    proptest! {
        #[test]
        fn the_rate_lies_between_the_slowest_and_the_fastest_part(
            parts in proptest::collection::vec((0.001f64..10.0, 0.0f64..1e6), 1..20),
        ) {
            let mut all = vec![Reading { value: 0.0, seconds: 0.0 }];
            for (seconds, growth) in &parts {
                let last = all[all.len() - 1];
                all.push(Reading { value: last.value + growth, seconds: last.seconds + seconds });
            }
            let summary = rate(&all).unwrap();
            let rates = parts.iter().map(|(seconds, growth)| growth / seconds);
            let (low, high) =
                rates.fold((f64::MAX, 0.0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
            let slack = 1e-6 * high.max(1.0);
            prop_assert!(summary.value >= low - slack && summary.value <= high + slack);
            prop_assert_eq!(summary.spread.is_some(), parts.len() > 1);
        }

        #[test]
        fn a_steady_counter_has_its_rate_and_no_spread_whatever_its_start(
            steps in proptest::collection::vec(1u32..100, 2..20),
            rate_per_second in 1u32..1000,
            start in 0u32..1_000_000,
            origin in 0u32..1000,
        ) {
            let mut seconds = f64::from(origin);
            let mut all = Vec::new();
            for step in &steps {
                all.push(Reading {
                    value: f64::from(start)
                        + (seconds - f64::from(origin)) * f64::from(rate_per_second),
                    seconds,
                });
                seconds += f64::from(*step);
            }
            let summary = rate(&all).unwrap();
            prop_assert!((summary.value / f64::from(rate_per_second) - 1.0).abs() < 1e-9);
            if let Some(spread) = summary.spread {
                prop_assert!(spread < 1e-6 * f64::from(rate_per_second));
            }
        }

        #[test]
        fn a_reset_anywhere_is_noticed(
            values in proptest::collection::vec(1u32..1000, 2..20),
            at in 0usize..18,
        ) {
            let at = at.min(values.len() - 2);
            let mut total = 0.0;
            let mut all = Vec::new();
            for (index, &value) in values.iter().enumerate() {
                total = if index == at + 1 { 0.0 } else { total + f64::from(value) };
                all.push(Reading { value: total, seconds: index as f64 });
            }
            let fell = matches!(rate(&all), Err(RateError::Fell { .. }));
            prop_assert!(fell);
        }
    }
}

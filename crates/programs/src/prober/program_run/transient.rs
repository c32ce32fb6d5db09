//! The rate of a program whose number has just been changed, without the transient.
//!
//! *Problem.* A service that reloads, or starts workers, is slower or idle for a while. A window
//! that begins too early measures the change, not the number.
//!
//! *Method.* The program is measured in stretches, one after the other, until two in a row agree.
//! Only these two count. So a steady program takes no longer than one window of both stretches. A
//! number that hurts the program is also given up by two stretches that agree. A single one may be
//! the transient.
//!
//! *Limit.* A rate that swings more slowly than a stretch may agree by chance. One that never
//! agrees counts by its last two stretches, and the probe says so.

use pinwise_measure::{MeasureError, Measurement};

/// Two stretches agree if their rates differ by at most this share of the greater one. A choice.
const ALIKE: f64 = 0.1;
/// They also agree if they differ by at most this many standard errors of the difference.
const ERRORS: f64 = 3.0;
/// The most stretches of a probe.
const MOST: usize = 8;

/// One stretch: its measurement, and the standard error of its rate if that is known.
pub(super) type Stretch = (Measurement, Option<f64>);

/// What is known about a program after a change.
pub(super) struct AfterChange {
    /// The rate over the stretches that count.
    pub(super) rate: f64,
    /// Its standard error, if it is known.
    pub(super) error: Option<f64>,
    /// The last two stretches agree.
    pub(super) steady: bool,
    /// That rate is below the least that is allowed.
    pub(super) below: bool,
}

/// Measures stretch after stretch with `measure` until two agree, and says whether these are below
/// `least`.
pub(super) fn after_change(
    least: Option<f64>,
    mut measure: impl FnMut() -> Result<Stretch, MeasureError>,
) -> Result<AfterChange, MeasureError> {
    let ([(one, ()), (other, ())], steady) =
        until_steady(|| measure().map(|stretch| (stretch, ())))?;
    let (rate, error) = joined(&one, &other);
    let below = least.is_some_and(|least| rate < least);
    Ok(AfterChange { rate, error, steady, below })
}

/// Measures stretch after stretch with `measure` until two agree. Returns the last two, with what
/// else was seen in them, and whether they agree.
pub(super) fn until_steady<T, E>(
    mut measure: impl FnMut() -> Result<(Stretch, T), E>,
) -> Result<([(Stretch, T); 2], bool), E> {
    let (mut made, mut before, mut last) = (2, measure()?, measure()?);
    while !agree(&before.0, &last.0) && made < MOST {
        (made, before, last) = (made + 1, last, measure()?);
    }
    let steady = agree(&before.0, &last.0);
    Ok(([before, last], steady))
}

fn agree((one, one_error): &Stretch, (other, other_error): &Stretch) -> bool {
    let difference = (one.performance - other.performance).abs();
    let error = one_error.unwrap_or(0.0).hypot(other_error.unwrap_or(0.0));
    difference <= (ALIKE * one.performance.max(other.performance)).max(ERRORS * error)
}

/// The rate over both stretches and its error: by their own errors, else by their difference.
fn joined((one, one_error): &Stretch, (other, other_error): &Stretch) -> (f64, Option<f64>) {
    let [first, second] = [one, other].map(|one| one.duration.as_secs_f64().max(1e-9));
    let share = first / (first + second);
    let rate = share * one.performance + (1.0 - share) * other.performance;
    let by_parts = one_error.zip(*other_error);
    let apart = (one.performance - other.performance).abs() / 2.0;
    let error = by_parts.map(|(a, b)| (share * a).hypot((1.0 - share) * b));
    (rate, Some(error.map_or(apart, |error| error.max(apart))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The rate after a change, and how many stretches that took.
    fn after(rates: &[f64], error: f64, least: Option<f64>) -> (AfterChange, usize) {
        let mut left = rates.iter();
        let measured = after_change(least, || {
            let performance = *left.next().expect("no more stretches than that");
            let duration = Duration::from_millis(50);
            let measurement = Measurement { performance, duration, spread: None, detail: None };
            Ok((measurement, Some(error)))
        });
        (measured.unwrap(), rates.len() - left.len())
    }

    #[test]
    fn what_comes_right_after_a_change_is_left_out() {
        let (seen, made) = after(&[0.1, 40.0, 98.0, 100.0, 1.0], 1.0, None);
        assert_eq!((seen.rate, seen.steady, made), (99.0, true, 4));
        let (seen, made) = after(&[98.0, 100.0, 1.0], 1.0, None);
        assert_eq!((seen.rate, seen.steady, made), (99.0, true, 2));
        assert_eq!(seen.error, Some(1.0));
        // Noise that the stretches themselves show is no change.
        assert_eq!(after(&[70.0, 100.0, 1.0], 10.0, None).1, 2);
    }

    #[test]
    fn a_program_that_is_never_steady_counts_by_its_last_stretches() {
        let swings = [1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0];
        let (seen, made) = after(&swings, 0.1, None);
        assert_eq!((seen.rate, seen.steady, made), (5.0, false, MOST));
        assert_eq!(seen.error, Some(4.0), "as wide as they differ");
    }

    #[test]
    fn a_number_is_below_the_floor_if_two_stretches_that_agree_are() {
        let (seen, made) = after(&[40.0, 42.0, 90.0], 1.0, Some(50.0));
        assert_eq!((seen.rate, seen.below, seen.steady, made), (41.0, true, true, 2));
        // The first stretches are those of a reload.
        let (seen, made) = after(&[5.0, 40.0, 90.0, 90.0, 1.0], 1.0, Some(50.0));
        assert_eq!((seen.rate, seen.below, made), (90.0, false, 4));
        let swings = [1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 90.0];
        let (seen, made) = after(&swings, 0.1, Some(50.0));
        assert_eq!((seen.below, seen.steady, made), (true, false, MOST));
    }

    #[test]
    fn nothing_twice_in_a_row_is_steady() {
        let (seen, made) = after(&[0.0, 0.0], 0.0, None);
        assert_eq!((seen.rate, seen.steady, made), (0.0, true, 2));
    }
}

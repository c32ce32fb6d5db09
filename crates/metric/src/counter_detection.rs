//! Whether a number that is taken for a rate by its name is a total, which only ever grows.
//!
//! This is a pure function of readings. The rates and means of readings are in
//! [`reading`](super::reading).

use crate::reading::Reading;

/// After this many rises without a fall, a value may be a total. A rate that warms up is noisy too:
/// it falls now and then, and more often near its final level.
const RISES_OF_A_TOTAL: usize = 60;

/// After this many rises without a fall, the user gets a warning. Nine readings in any order only
/// rise in one case of 9! = 362,880.
const RISES_OF_A_DOUBT: usize = 8;

/// The value has to rise in this many settings besides the first.
const SETTINGS: usize = 2;

/// The share of its growth that a total makes in a third of the time, at least and at most.
const THIRD: std::ops::RangeInclusive<f64> = 0.2..=0.45;

/// What the interpolation may be off by, as a share of the growth.
const ROUNDING: f64 = 1e-6;

/// What a value did since it was first read, as long as it only grew.
///
/// A total that is taken for a rate grows with time, whatever runs where. A rate that rises while a
/// program warms up nears a level: it grows less and less. So growth that does not slow down is not
/// that of a rate. It may also be the growth of a load that is raised on and on. Then nothing can
/// be measured either. A total whose program was fastest at first looks like a rate here; it
/// remains in doubt.
#[derive(Clone, Debug, Default)]
pub struct CounterDetection {
    /// Every reading that differed from the one before.
    rises: Vec<Reading>,
    fell: bool,
    /// The setting has changed since the last rise.
    moved: bool,
    /// The settings in which it rose, besides the first.
    settings: usize,
}

impl CounterDetection {
    /// Takes the next reading into account.
    pub fn see(&mut self, reading: Reading) {
        match self.rises.last() {
            _ if self.fell => {}
            Some(last) if reading.value < last.value => {
                *self = Self { fell: true, ..Self::default() }
            }
            Some(last) if reading.value == last.value || reading.seconds <= last.seconds => {}
            _ => {
                self.rises.push(reading);
                self.settings += usize::from(std::mem::take(&mut self.moved));
            }
        }
    }

    /// The program runs in another setting from here on.
    pub fn moved(&mut self) {
        self.moved = true;
    }

    /// The first and the last reading if the value is a total. It then rose often enough without a
    /// fall, in several settings, evenly, and without slowing down.
    pub fn of_a_total(&self) -> Option<(Reading, Reading)> {
        let (first, last) = (*self.rises.first()?, *self.rises.last()?);
        let share = |third: f64| {
            let at = first.seconds + (last.seconds - first.seconds) * third / 3.0;
            (self.value(at) - first.value) / (last.value - first.value)
        };
        let even = || {
            let (one, two) = (share(1.0), share(2.0));
            let slows = 1.0 - two < one - ROUNDING;
            !slows && [one, two - one, 1.0 - two].iter().all(|part| THIRD.contains(part))
        };
        let often = self.rises.len() > RISES_OF_A_TOTAL && self.settings >= SETTINGS;
        (often && even()).then_some((first, last))
    }

    /// Whether the value may be a total's: it never fell in many readings.
    pub fn is_doubtful(&self) -> bool {
        self.rises.len() > RISES_OF_A_DOUBT && self.of_a_total().is_none()
    }

    /// The value at a time between the first reading and the last, on the line between its
    /// neighbours.
    fn value(&self, seconds: f64) -> f64 {
        let after = self
            .rises
            .partition_point(|reading| reading.seconds <= seconds)
            .clamp(1, self.rises.len() - 1);
        let (a, b) = (self.rises[after - 1], self.rises[after]);
        a.value + (b.value - a.value) * (seconds - a.seconds) / (b.seconds - a.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What these readings show, at even times and in settings of ten readings each. It is given as
    /// soon as it is a total, else in the end.
    fn counter_detection(values: impl IntoIterator<Item = f64>) -> CounterDetection {
        let mut detection = CounterDetection::default();
        for (value, at) in values.into_iter().zip(0..) {
            if at % 10 == 9 {
                detection.moved();
            }
            detection.see(Reading { value, seconds: f64::from(at) });
            if detection.of_a_total().is_some() {
                break;
            }
        }
        detection
    }

    /// Whether these readings are ever a total's: it is asked after each.
    fn is_total(values: impl IntoIterator<Item = f64>) -> bool {
        counter_detection(values).of_a_total().is_some()
    }

    #[test]
    fn a_total_is_known_after_sixty_rises_and_not_by_standing_still() {
        let total = |rises: i32| (0..=rises).map(|at| 1e9 + f64::from(at));
        assert!(!is_total(total(59)) && is_total(total(60)));
        // It may stand still for a reading, and does not count then.
        assert!(is_total(total(60).flat_map(|value| [value, value])));
        assert!(!is_total([7.0; 100]) && !is_total([]));
    }

    #[test]
    fn a_total_is_known_in_several_settings_only() {
        let mut detection = CounterDetection::default();
        let mut at = 0;
        let mut rise = |detection: &mut CounterDetection| {
            at += 1;
            detection.see(Reading { value: f64::from(at), seconds: f64::from(at) });
            detection.of_a_total().is_some()
        };
        assert!((0..200).all(|_| !rise(&mut detection)));
        detection.moved();
        detection.moved();
        assert!((0..200).all(|_| !rise(&mut detection)), "it did not rise in the first of the two");
        detection.moved();
        assert!(rise(&mut detection));
    }

    #[test]
    fn a_program_that_warms_up_is_no_total_however_long_it_takes() {
        for slowness in [1.0, 5.0, 20.0, 40.0, 60.0, 100.0, 300.0, 1000.0] {
            // It covers 63 % of the way in this many readings, and 63 % of the rest in the next.
            let warming = |at: i32| 100.0 - 50.0 * (-f64::from(at) / slowness).exp();
            assert!(!is_total((0..1000).map(warming)), "{slowness}");
            // The average since a start `slowness` readings before. In half of these it did
            // nothing.
            let average = |at: i32| 100.0 * (1.0 - slowness / 2.0 / (slowness + f64::from(at)));
            assert!(!is_total((0..1000).map(average)), "{slowness}");
        }
        // All of it at once, between readings that creep.
        assert!(!is_total((0..200).map(|at| f64::from(at) + if at < 50 { 0.0 } else { 1000.0 })));
    }

    #[test]
    fn what_never_fell_is_doubted_until_it_is_known() {
        let rising = |rises: i32| (0..=rises).map(|at| f64::from(at).sqrt());
        assert!(
            !counter_detection(rising(7)).is_doubtful()
                && counter_detection(rising(8)).is_doubtful()
        );
        assert!(counter_detection(rising(500)).is_doubtful());
        assert!(!counter_detection(rising(500).chain([1.0])).is_doubtful());
        assert!(!counter_detection((0..100).map(f64::from)).is_doubtful(), "it is known");
    }

    proptest! {
        #[test]
        fn a_total_is_known_whatever_its_start_where_its_program_becomes_faster_by_half(
            start in 0.0f64..1e9,
            mut steps in proptest::collection::vec(1.0f64..1.5, 61..100),
            rate in 1.0f64..1e6,
        ) {
            steps.sort_by(f64::total_cmp);
            let totals = steps.iter().scan(start, |total, step| {
                *total += step * rate;
                Some(*total)
            });
            prop_assert!(is_total(totals));
        }

        #[test]
        fn a_rate_that_warms_up_is_no_total(
            start in 0.0f64..0.9,
            level in 1.0f64..1e9,
            slowness in 1.0f64..5000.0,
            readings in 1i32..400,
        ) {
            let warming =
                |at: i32| level * (1.0 - (1.0 - start) * (-f64::from(at) / slowness).exp());
            prop_assert!(!is_total((0..readings).map(warming)));
        }

        #[test]
        fn a_rate_that_fell_once_is_none_however_it_drifts(
            start in 1.0f64..1e6,
            drift in 0.001f64..0.1,
            readings in 70usize..100,
            at in 0usize..60,
        ) {
            let rate = |reading: usize| start * (1.0 + drift * reading as f64);
            let dip = |reading: usize| {
                if reading == at + 1 { rate(at) * (1.0 - 1e-9) } else { rate(reading) }
            };
            prop_assert!(is_total((0..readings).map(rate)) && !is_total((0..readings).map(dip)));
        }
    }
}

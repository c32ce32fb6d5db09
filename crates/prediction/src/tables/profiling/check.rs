//! The held-out check: forecasts of entries, compared with what these then measured.

use crate::tables::profiling::forecast::{CONFIDENCE, DEVIATIONS, Forecast};

/// Forecasts that have to be checked before what they say of all the others is believed.
pub(super) const ENOUGH: usize = 12;
/// A prior check: off by this many stated deviations. With 19 others or more it is beyond the
/// quantile that counts if these were better.
const ASSUMED: f64 = 4.0;

/// How good the forecasts were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Checked {
    /// Entries drawn, forecast and then measured.
    pub drawn: usize,
    /// How many of these had an interval that held the measured share.
    pub held: usize,
    /// Root mean square of forecast / measured share - 1 over these; 0 without any.
    pub error: f64,
}

/// A forecast that was checked.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Check {
    /// Error in stated deviations, of 1 / share.
    deviations: f64,
    /// Error of the share, relative.
    error: f64,
    /// Whether the interval stated held.
    held: bool,
    /// Drawn, not chosen.
    drawn: bool,
}

/// All so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks(Vec<Check>);

impl Checks {
    /// Compares a forecast with the share measured, above 0, `noise` being the relative deviation
    /// of one measurement. Entries are `drawn` or chosen.
    pub(super) fn enter(&mut self, forecast: &Forecast, share: f64, noise: f64, drawn: bool) {
        // A measured share has noise, from the measurement and from the one it is divided by.
        let noise = 2f64.sqrt() * noise;
        let stray = 1.0 + DEVIATIONS * noise;
        self.0.push(Check {
            deviations: (1.0 / share - 1.0 / forecast.share).abs()
                / forecast.deviation.hypot(noise / share),
            error: forecast.share / share - 1.0,
            held: (forecast.low / stray..=forecast.high * stray).contains(&share),
            drawn,
        });
    }

    /// The factor on stated deviations with which the intervals hold as often as they claim, at
    /// least 1. It is the quantile of split conformal prediction (Lei et al., Distribution-Free
    /// Predictive Inference for Regression, JASA 2018, section 2.2).
    pub(super) fn stretch(&self) -> f64 {
        let mut deviations: Vec<f64> =
            self.0.iter().map(|check| check.deviations).chain([ASSUMED]).collect();
        deviations.sort_by(f64::total_cmp);
        let rank = (CONFIDENCE * deviations.len() as f64).ceil() as usize;
        let quantile = deviations[rank - 1];
        (quantile / DEVIATIONS).max(1.0)
    }

    pub(super) fn checked(&self) -> Checked {
        let drawn: Vec<&Check> = self.0.iter().filter(|check| check.drawn).collect();
        let squares: f64 = drawn.iter().map(|check| check.error * check.error).sum();
        Checked {
            drawn: drawn.len(),
            held: drawn.iter().filter(|check| check.held).count(),
            // A sum of nothing is -0.
            error: (squares.abs() / drawn.len().max(1) as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks of forecasts that are off by these numbers of their deviations.
    fn checks(deviations: impl IntoIterator<Item = f64>) -> Checks {
        let mut checks = Checks::default();
        for off in deviations {
            let forecast = Forecast { share: 0.5, low: 0.4, high: 0.6, deviation: 0.1 };
            checks.enter(&forecast, 1.0 / (2.0 + 0.1 * off), 0.0, true);
        }
        checks
    }

    #[test]
    fn intervals_are_wide_until_checks_say_that_they_need_not_be() {
        let known = [0, 10, 40].map(|count| checks(std::iter::repeat_n(0.5, count)).stretch());
        assert!(
            known[0] == ASSUMED / DEVIATIONS && known[1] == known[0] && known[2] == 1.0,
            "{known:?}"
        );
        // One in eight off by three deviations: the 95 % quantile is there.
        let off = (0..80).map(|number| if number % 8 == 0 { 3.0 } else { 0.5 });
        assert!((checks(off).stretch() - 3.0 / DEVIATIONS).abs() < 1e-9);
    }

    #[test]
    fn what_was_held_out_is_counted() {
        // Measured 0.5, 1 / 2.5 = 0.4 and 1 / 3: the last is outside.
        let checked = checks([0.0, 4.9, 10.0]).checked();
        assert_eq!((checked.drawn, checked.held), (3, 2));
        assert!(
            (checked.error - ((0.245f64.powi(2) + 0.5f64.powi(2)) / 3.0).sqrt()).abs() < 1e-9,
            "{checked:?}"
        );
    }
}

//! The held-out check: forecasts of entries, compared with what these then measured.

use crate::profiling::forecast::{CONFIDENCE, DEVIATIONS, Forecast};

/// Forecasts that were checked from which on their errors stretch the intervals.
pub(super) const ENOUGH: usize = 12;

/// How good the forecasts were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Checked {
    /// Entries drawn, forecast and then measured.
    pub drawn: usize,
    /// Of these, those whose interval held the measured share.
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
    /// Compares a forecast with the share measured, above 0, `noise` being the relative deviation of one measurement. Entries are `drawn`
    /// or chosen.
    pub(super) fn enter(&mut self, forecast: &Forecast, share: f64, noise: f64, drawn: bool) {
        // What was measured has noise of its own, in the share and in what it is a share of.
        let noise = 2f64.sqrt() * noise;
        let stray = 1.0 + DEVIATIONS * noise;
        self.0.push(Check {
            deviations: (1.0 / share - 1.0 / forecast.share).abs() / forecast.deviation.hypot(noise / share),
            error: forecast.share / share - 1.0,
            held: (forecast.low / stray..=forecast.high * stray).contains(&share),
            drawn,
        });
    }

    /// By what stated deviations are multiplied so that the intervals would have held as often as they say.
    pub(super) fn stretch(&self) -> f64 {
        let mut deviations: Vec<f64> = self.0.iter().map(|check| check.deviations).collect();
        if deviations.len() < ENOUGH {
            return 1.0;
        }
        deviations.sort_by(f64::total_cmp);
        let rank = (CONFIDENCE * (deviations.len() + 1) as f64).ceil() as usize;
        let quantile = deviations[rank.min(deviations.len()) - 1];
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

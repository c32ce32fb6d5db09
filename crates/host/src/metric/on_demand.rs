//! Measuring with a counter that is exact whenever it is read.

use super::MetricMeter;
use super::arrivals::read_dated;
use super::reading::{Reading, Summary, rate};
use super::source::{Failure, Source, sleep_until};
use pinwise_testbed::{MeasureError, Retry};
use std::time::{Duration, Instant};

/// The rate of a counter over a window: read at its begin and its end, and in between where reading is cheap, for the spread.
pub(crate) struct OnDemand {
    pub(crate) source: Box<dyn Source>,
    /// What one reading takes.
    pub(crate) cost: Duration,
}

/// Parts of a window, and the shortest that is worth a reading of its own.
const PARTS: u32 = 5;
const SHORTEST_PART: Duration = Duration::from_millis(10);

/// A window is at least this many times as long as a reading takes, so that the time within a reading does not matter.
pub(crate) const WINDOW_TO_READING: u32 = 10;

impl MetricMeter for OnDemand {
    fn summarize(
        &mut self,
        settle: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(Summary, Duration), MeasureError> {
        let start = Instant::now() + settle;
        let window = window.max(self.cost * WINDOW_TO_READING);
        let part = SHORTEST_PART.max(self.cost * WINDOW_TO_READING);
        // As many parts as fit; at least one.
        let parts = (1..=PARTS).rev().find(|&parts| part * parts <= window).unwrap_or(1);
        let mut readings: Vec<Reading> = Vec::new();
        let mut times = Vec::new();
        for index in 0..=parts {
            sleep_until(start + window * index / parts, cancelled).map_err(fail)?;
            let (sample, at) = read_dated(&mut *self.source, cancelled).map_err(fail)?;
            let clock = sample.seconds.unwrap_or_else(|| at.saturating_duration_since(start).as_secs_f64());
            // The same moment on the program's clock is the same reading.
            if readings.last().is_none_or(|last| last.seconds != clock) {
                readings.push(Reading { value: sample.value, seconds: clock });
                times.push(at);
            }
        }
        let summary = rate(&readings).map_err(|error| MeasureError::new(Retry::Same, error.to_string()))?;
        Ok((summary, times[times.len() - 1].duration_since(times[0])))
    }
}

fn fail(failure: Failure) -> MeasureError {
    match failure {
        Failure::Cancelled => MeasureError::interrupted(),
        Failure::Unreadable(why) => MeasureError::new(Retry::Same, why),
    }
}
